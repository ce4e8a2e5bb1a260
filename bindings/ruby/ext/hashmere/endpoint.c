/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Endpoints, elements and batches. What waits does so without the GVL, in slices between which signals are heard. */
#include "queue.h"

static VALUE element_class;
VALUE endpoint_class;

typedef struct element {
    hm_element hm;
    VALUE endpoint;
} element;

static void endpoint_free(void *data) {
    hm_endpoint_close(((endpoint *)data)->hm);
    xfree(data);
}
const rb_data_type_t endpoint_type = {
    .wrap_struct_name = "Hashmere::Endpoint",
    .function = {.dfree = endpoint_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static endpoint *endpoint_of(VALUE self) {
    endpoint *h = rb_check_typeddata(self, &endpoint_type);
    if (!h->hm)
        raise_closed("the endpoint");
    if (h->busy)
        rb_raise(rb_eThreadError, "another thread waits with this endpoint; each thread needs one of its own");
    return h;
}
static VALUE endpoint_close(VALUE self) {
    endpoint *h = rb_check_typeddata(self, &endpoint_type);
    if (h->hm)
        endpoint_of(self);
    hm_endpoint_close(h->hm);
    h->hm = NULL;
    return Qnil;
}

static void element_mark(void *data) {
    rb_gc_mark(((element *)data)->endpoint);
}
static const rb_data_type_t element_type = {
    .wrap_struct_name = "Hashmere::Element",
    .function = {.dmark = element_mark, .dfree = RUBY_TYPED_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

/* A pop that waits, of one element or of a batch. */
typedef struct pop {
    slice slice;
    endpoint *endpoint;
    queue *queue;
    hm_queue *from;
    hm_element element;
    uint64_t max, count;
} pop;

static int wait_for_element(slice *s) {
    pop *p = (pop *)s;
    return hm_queue_pop_wait(p->endpoint->hm, p->from, s->ms, &p->element, &s->error);
}

static int pop_batch(pop *p) {
    int result = hm_queue_pop_many(p->endpoint->hm, p->from, p->max, &p->count, &p->slice.error);
    return result == HM_OK && p->count == 0 ? HM_ABSENT : result;
}
static int wait_for_batch(slice *s) {
    pop *p = (pop *)s;
    int result = hm_queue_wait(p->endpoint->hm, p->from, s->ms, &s->error);
    if (result == HM_OK)
        result = pop_batch(p);
    return result == HM_ABSENT ? HM_TIMEOUT : result; /* others took them first: it waits on */
}

static VALUE run_pop(VALUE argument) {
    pop *p = (pop *)argument;
    return INT2FIX(in_slices(&p->slice, HM_TIMEOUT));
}
static VALUE end_pop(VALUE argument) {
    pop *p = (pop *)argument;
    p->endpoint->busy = 0;
    leave_queue(p->queue);
    return Qnil;
}
static int wait_to_pop(pop *p) {
    p->endpoint->busy = 1;
    enter_queue(p->queue);
    return checked(FIX2INT(rb_ensure(run_pop, (VALUE)p, end_pop, (VALUE)p)), &p->slice.error);
}

static VALUE element_made(VALUE endpoint, const hm_element *popped) {
    element *made;
    VALUE object = TypedData_Make_Struct(element_class, element, &element_type, made);
    made->hm = *popped;
    RB_OBJ_WRITE(object, &made->endpoint, endpoint);
    return object;
}

/* _pop(queue, milliseconds): an element, or nil. */
static VALUE endpoint_pop(VALUE self, VALUE from, VALUE ms) {
    pop p = {.slice = {.run = wait_for_element, .left_ms = to_u64(ms, "timeout")}, .endpoint = endpoint_of(self), .queue = queue_of(from)};
    p.from = p.queue->hm;
    int result = checked(hm_queue_pop(p.endpoint->hm, p.from, &p.element, &p.slice.error), &p.slice.error);
    if (result == HM_ABSENT && p.slice.left_ms > 0)
        result = wait_to_pop(&p);
    if (result != HM_OK)
        found_nothing(p.queue);
    VALUE popped = result != HM_OK ? Qnil : element_made(self, &p.element);
    RB_GC_GUARD(from);
    return popped;
}

static uint64_t batch_size(endpoint *h) {
    uint64_t count;
    hm_error error;
    checked(hm_batch_len(h->hm, &count, &error), &error);
    return count;
}

/* _pop_many(queue, max, milliseconds): how many. It waits only with an empty batch, which has room for one at least. */
static VALUE endpoint_pop_many(VALUE self, VALUE from, VALUE max, VALUE ms) {
    pop p = {.slice = {.run = wait_for_batch, .left_ms = to_u64(ms, "timeout")}, .max = to_u64(max, "max")};
    p.endpoint = endpoint_of(self);
    p.queue = queue_of(from);
    p.from = p.queue->hm;
    int result = checked(pop_batch(&p), &p.slice.error);
    if (result == HM_ABSENT && p.slice.left_ms > 0 && p.max > 0 && batch_size(p.endpoint) == 0)
        result = wait_to_pop(&p);
    if (result != HM_OK)
        found_nothing(p.queue);
    RB_GC_GUARD(from);
    return ULL2NUM(result == HM_OK ? p.count : 0);
}

/* _push_many(queue, max): how many. */
static VALUE endpoint_push_many(VALUE self, VALUE to, VALUE max) {
    uint64_t most = to_u64(max, "max"), count;
    hm_error error;
    checked(hm_queue_push_many(endpoint_of(self)->hm, queue_of(to)->hm, most, &count, &error), &error);
    return ULL2NUM(count);
}

/* [pushed, popped] */
static VALUE endpoint_push_pop_many(VALUE self, VALUE to, VALUE from, VALUE max) {
    uint64_t most = to_u64(max, "max"), pushed, popped;
    queue *source = queue_of(from);
    hm_error error;
    checked(hm_queue_push_pop_many(endpoint_of(self)->hm, queue_of(to)->hm, source->hm, most, &pushed, &popped, &error), &error);
    if (popped == 0)
        found_nothing(source);
    return rb_assoc_new(ULL2NUM(pushed), ULL2NUM(popped));
}

static VALUE endpoint_drain(VALUE self, VALUE from, VALUE to) {
    uint64_t moved;
    queue *source = queue_of(from);
    hm_error error;
    checked(hm_queue_drain(endpoint_of(self)->hm, source->hm, queue_of(to)->hm, &moved, &error), &error);
    found_nothing(source);
    return ULL2NUM(moved);
}

/* An element that is held, with its endpoint. */
static element *element_of(VALUE self, endpoint **by) {
    element *e = rb_check_typeddata(self, &element_type);
    *by = endpoint_of(e->endpoint);
    if (e->hm.slot == 0)
        raise_closed("the element");
    return e;
}

/* Whether it was pushed; false: the queue has reached its bound. */
static VALUE element_push(VALUE self, VALUE to) {
    endpoint *h;
    element *e = element_of(self, &h);
    hm_error error;
    return RBOOL(checked(hm_queue_push(h->hm, &e->hm, queue_of(to)->hm, &error), &error) == HM_OK);
}

/* The next element; nil: it was pushed, and there is none; false: it could not be pushed. */
static VALUE element_push_pop(VALUE self, VALUE to, VALUE from) {
    endpoint *h;
    element *e = element_of(self, &h);
    queue *source = queue_of(from);
    hm_element passed = e->hm;
    hm_error error;
    int result = hm_queue_push_pop(h->hm, &passed, queue_of(to)->hm, source->hm, &error);
    if (result == HM_QUEUE_FULL)
        return Qfalse;
    e->hm = (hm_element){NULL, 0, 0, 0};
    if (checked(result, &error) == HM_OK)
        return element_made(e->endpoint, &passed);
    found_nothing(source);
    return Qnil;
}

static VALUE element_give_back(VALUE self) {
    endpoint *h;
    element *e = element_of(self, &h);
    hm_error error;
    checked(hm_queue_give_back(h->hm, &e->hm, &error), &error);
    return Qnil;
}

static void check_range(size_t start, size_t len, size_t of) {
    if (start > of || len > of - start)
        rb_raise(rb_eIndexError, "%zu bytes from %zu on of an element of %zu", len, start, of);
}

/* _read(start, count) */
static VALUE element_read(VALUE self, VALUE start, VALUE count) {
    endpoint *h;
    size_t at = (size_t)to_u64(start, "start"), len = (size_t)to_u64(count, "count");
    element *e = element_of(self, &h);
    check_range(at, len, e->hm.len);
    return rb_str_new((char *)e->hm.data + at, (long)len);
}

static VALUE element_write(VALUE self, VALUE start, VALUE bytes) {
    endpoint *h;
    size_t at = (size_t)to_u64(start, "start");
    StringValue(bytes);
    element *e = element_of(self, &h);
    check_range(at, (size_t)RSTRING_LEN(bytes), e->hm.len);
    memcpy((char *)e->hm.data + at, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes));
    RB_GC_GUARD(bytes);
    return self;
}

static VALUE element_size(VALUE self) {
    endpoint *h;
    return SIZET2NUM(element_of(self, &h)->hm.len);
}
static VALUE element_index(VALUE self) {
    endpoint *h;
    return UINT2NUM(element_of(self, &h)->hm.index);
}

/* The bytes of element `index` of the batch. */
static char *batch_at(VALUE self, VALUE index, size_t *len) {
    uint64_t number = to_u64(index, "index");
    endpoint *h = endpoint_of(self);
    void *data;
    hm_error error;
    if (checked(hm_batch_at(h->hm, number, &data, len, &error), &error) == HM_ABSENT)
        rb_raise(rb_eIndexError, "element %" PRIu64 " of a batch of %" PRIu64, number, batch_size(h));
    return data;
}

static VALUE endpoint_batch_size(VALUE self) {
    return ULL2NUM(batch_size(endpoint_of(self)));
}

/* _batch_read(index, start, count or nil: up to the end) */
static VALUE endpoint_batch_read(VALUE self, VALUE index, VALUE start, VALUE count) {
    size_t at = (size_t)to_u64(start, "start"), len = NIL_P(count) ? 0 : (size_t)to_u64(count, "count"), all;
    const char *bytes = batch_at(self, index, &all);
    if (NIL_P(count) && at <= all)
        len = all - at;
    check_range(at, len, all);
    return rb_str_new(bytes + at, (long)len);
}

/* _batch_write(index, start, bytes) */
static VALUE endpoint_batch_write(VALUE self, VALUE index, VALUE start, VALUE bytes) {
    size_t at = (size_t)to_u64(start, "start"), all;
    StringValue(bytes);
    char *to = batch_at(self, index, &all);
    check_range(at, (size_t)RSTRING_LEN(bytes), all);
    memcpy(to + at, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes));
    RB_GC_GUARD(bytes);
    return Qnil;
}

void init_endpoint(void) {
    endpoint_class = sealed_class(hashmere_module, "Endpoint");
    rb_define_private_method(endpoint_class, "_pop", endpoint_pop, 2);
    rb_define_private_method(endpoint_class, "_pop_many", endpoint_pop_many, 3);
    rb_define_private_method(endpoint_class, "_push_many", endpoint_push_many, 2);
    rb_define_method(endpoint_class, "push_pop_many", endpoint_push_pop_many, 3);
    rb_define_method(endpoint_class, "drain", endpoint_drain, 2);
    rb_define_method(endpoint_class, "close", endpoint_close, 0);
    rb_define_private_method(endpoint_class, "_batch_size", endpoint_batch_size, 0);
    rb_define_private_method(endpoint_class, "_batch_read", endpoint_batch_read, 3);
    rb_define_private_method(endpoint_class, "_batch_write", endpoint_batch_write, 3);
    element_class = sealed_class(hashmere_module, "Element");
    rb_define_method(element_class, "push", element_push, 1);
    rb_define_method(element_class, "push_pop", element_push_pop, 2);
    rb_define_method(element_class, "give_back", element_give_back, 0);
    rb_define_private_method(element_class, "_read", element_read, 2);
    rb_define_method(element_class, "write", element_write, 2);
    rb_define_method(element_class, "size", element_size, 0);
    rb_define_method(element_class, "index", element_index, 0);
}
