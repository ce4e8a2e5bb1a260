/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pools and queues: hashmere_queue.h. */
#include "queue.h"

static VALUE pool_class, queue_class;

typedef struct pool {
    hm_pool *hm;
} pool;

static void pool_free(void *data) {
    hm_pool_close(((pool *)data)->hm);
    xfree(data);
}
static const rb_data_type_t pool_type = {
    .wrap_struct_name = "Hashmere::Pool",
    .function = {.dfree = pool_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static pool *pool_of(VALUE self) {
    pool *opened = rb_check_typeddata(self, &pool_type);
    if (!opened->hm)
        raise_closed("the pool");
    return opened;
}
static VALUE pool_close(VALUE self) {
    pool *opened = rb_check_typeddata(self, &pool_type);
    hm_pool_close(opened->hm);
    opened->hm = NULL;
    return Qnil;
}

static void queue_mark(void *data) {
    rb_gc_mark(((queue *)data)->io);
}
static void queue_free(void *data) {
    queue *q = data;
    hm_ready_fd_close(q->ready);
    hm_queue_close(q->hm);
    hm_queue_close(q->closing);
    xfree(q);
}
static const rb_data_type_t queue_type = {
    .wrap_struct_name = "Hashmere::Queue",
    .function = {.dmark = queue_mark, .dfree = queue_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
queue *queue_of(VALUE self) {
    queue *q = rb_check_typeddata(self, &queue_type);
    if (!q->hm)
        raise_closed("the queue");
    return q;
}

void enter_queue(queue *q) {
    q->waiting++;
}
void leave_queue(queue *q) {
    if (--q->waiting == 0) {
        hm_queue_close(q->closing);
        q->closing = NULL;
    }
}

static VALUE queue_close(VALUE self) {
    queue *q = rb_check_typeddata(self, &queue_type);
    hm_queue *hm = q->hm;
    hm_ready_fd *ready = q->ready;
    VALUE io = q->io;
    q->hm = NULL;
    q->ready = NULL;
    q->io = Qnil;
    hm_ready_fd_close(ready);
    if (hm && q->waiting > 0)
        q->closing = hm;
    else
        hm_queue_close(hm);
    return NIL_P(io) ? Qnil : rb_io_close(io);
}

/* Pool._open(store, name, nil or [elements, bytes, max_queues, max_endpoints, batch], name of the queue for elements of crashed processes, or nil) */
static VALUE pool_open(VALUE class, VALUE in, VALUE name, VALUE sizes, VALUE on_death) {
    hm_pool_options options = {.size = sizeof options};
    const char *text = StringValueCStr(name);
    rb_check_typeddata(in, &store_type);
    if (!NIL_P(sizes)) {
        Check_Type(sizes, T_ARRAY);
        options.elements = to_u64(rb_ary_entry(sizes, 0), "elements");
        options.bytes = to_u64(rb_ary_entry(sizes, 1), "bytes");
        options.max_queues = to_u64(rb_ary_entry(sizes, 2), "max_queues");
        options.max_endpoints = to_u64(rb_ary_entry(sizes, 3), "max_endpoints");
        options.batch = to_u64(rb_ary_entry(sizes, 4), "batch");
        options.on_death = NIL_P(on_death) ? NULL : StringValueCStr(on_death);
    }
    pool *made;
    VALUE object = TypedData_Make_Struct(class, pool, &pool_type, made);
    hm_error error;
    checked(hm_pool_open(open_store(in)->hm, text, NIL_P(sizes) ? NULL : &options, &made->hm, &error), &error);
    RB_GC_GUARD(name);
    RB_GC_GUARD(on_death);
    return object;
}

/* Pool._remove(store, name) */
static VALUE pool_remove(VALUE class, VALUE in, VALUE name) {
    hm_error error;
    const char *text = StringValueCStr(name);
    rb_check_typeddata(in, &store_type);
    VALUE removed = RBOOL(checked(hm_pool_remove(open_store(in)->hm, text, &error), &error) == HM_OK);
    RB_GC_GUARD(name);
    return removed;
}

/* _queue(name, kind, bound) */
static VALUE pool_queue(VALUE self, VALUE name, VALUE kind, VALUE bound) {
    hm_queue_options options = {.size = sizeof options, .kind = to_u64(kind, "kind"), .bound = to_u64(bound, "bound")};
    const char *text = StringValueCStr(name);
    queue *made;
    VALUE object = TypedData_Make_Struct(queue_class, queue, &queue_type, made);
    made->io = Qnil;
    hm_error error;
    checked(hm_queue_open(pool_of(self)->hm, text, &options, &made->hm, &error), &error);
    RB_GC_GUARD(name);
    return object;
}

static VALUE pool_endpoint(VALUE self) {
    endpoint *made;
    VALUE object = TypedData_Make_Struct(endpoint_class, endpoint, &endpoint_type, made);
    hm_error error;
    checked(hm_endpoint_open(pool_of(self)->hm, &made->hm, &error), &error);
    return object;
}

/* How many elements of crashed processes were given back. */
static VALUE pool_recover(VALUE self) {
    uint64_t given_back;
    hm_error error;
    checked(hm_pool_recover(pool_of(self)->hm, &given_back, &error), &error);
    return ULL2NUM(given_back);
}

static VALUE pool_stats(VALUE self) {
    hm_pool_stats stats = {.size = sizeof stats};
    hm_error error;
    checked(hm_pool_get_stats(pool_of(self)->hm, &stats, &error), &error);
    VALUE hash = rb_hash_new();
#define F(NAME) rb_hash_aset(hash, ID2SYM(rb_intern(#NAME)), ULL2NUM(stats.NAME));
    F(elements) F(bytes) F(bytes_all) F(endpoints) F(max_endpoints) F(queues) F(max_queues) F(held) F(recovered)
#undef F
    return hash;
}

static VALUE queue_size(VALUE self) {
    uint64_t count;
    hm_error error;
    checked(hm_queue_len(queue_of(self)->hm, &count, &error), &error);
    return ULL2NUM(count);
}

/* A copy of the first element, which stays where it is; nil: the queue is empty. */
static VALUE queue_peek(VALUE self) {
    VALUE bytes = rb_str_new(NULL, 128);
    hm_error error;
    for (;;) {
        size_t len;
        int result = checked(hm_queue_peek(queue_of(self)->hm, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes), &len, &error), &error);
        if (result == HM_ABSENT)
            return Qnil;
        rb_str_resize(bytes, (long)len);
        if (result == HM_OK)
            return bytes;
    }
}

/* An IO that is readable when there may be something to pop. Its descriptor is a second one of the same event, so that it stays a
 * descriptor of that when the queue is closed. */
static VALUE queue_to_io(VALUE self) {
    queue *q = queue_of(self);
    if (!NIL_P(q->io))
        return q->io;
    int event;
    hm_error error;
    checked(hm_ready_fd_open(q->hm, &q->ready, &event, &error), &error);
    int fd = rb_cloexec_dup(event);
    if (fd < 0) {
        hm_ready_fd_close(q->ready);
        q->ready = NULL;
        rb_sys_fail("dup of the event descriptor of a queue");
    }
    rb_update_max_fd(fd);
    q->io = rb_funcall(rb_cIO, rb_intern("for_fd"), 2, INT2FIX(fd), rb_str_new_cstr("r"));
    return q->io;
}

void init_queue(void) {
    pool_class = sealed_class(hashmere_module, "Pool");
    queue_class = sealed_class(hashmere_module, "Queue");
    rb_define_singleton_method(pool_class, "_open", pool_open, 4);
    rb_define_singleton_method(pool_class, "_remove", pool_remove, 2);
    rb_define_private_method(pool_class, "_queue", pool_queue, 3);
    rb_define_method(pool_class, "endpoint", pool_endpoint, 0);
    rb_define_method(pool_class, "recover", pool_recover, 0);
    rb_define_method(pool_class, "stats", pool_stats, 0);
    rb_define_method(pool_class, "close", pool_close, 0);
    rb_define_method(queue_class, "size", queue_size, 0);
    rb_define_method(queue_class, "peek", queue_peek, 0);
    rb_define_method(queue_class, "to_io", queue_to_io, 0);
    rb_define_method(queue_class, "close", queue_close, 0);
}
