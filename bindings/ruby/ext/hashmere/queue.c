/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pools, queues, hands and elements: hashmere_queue.h. What waits does so without the GVL, in slices between which signals are heard. */
#include "waiting.h"

static VALUE pool_class, queue_class, hand_class, element_class;

typedef struct pool {
    hm_pool *hm;
} pool;
typedef struct queue {
    hm_queue *hm;
} queue;
typedef struct hand {
    hm_hand *hm;
    int busy; /* A thread waits with it, without the GVL. */
} hand;
typedef struct element {
    hm_element hm;
    VALUE hand;
} element;

#define KIND(NAME, CLOSE)                                                                                               \
    static void NAME##_free(void *data) {                                                                               \
        CLOSE(((NAME *)data)->hm);                                                                                      \
        xfree(data);                                                                                                    \
    }                                                                                                                   \
    static const rb_data_type_t NAME##_type = {                                                                         \
        .wrap_struct_name = "Hashmere::" #NAME,                                                                         \
        .function = {.dfree = NAME##_free},                                                                             \
        .flags = RUBY_TYPED_FREE_IMMEDIATELY,                                                                           \
    };                                                                                                                  \
    static NAME *NAME##_of(VALUE self) {                                                                                \
        NAME *opened = rb_check_typeddata(self, &NAME##_type);                                                          \
        if (!opened->hm)                                                                                                \
            raise_closed("the " #NAME);                                                                                 \
        return opened;                                                                                                  \
    }                                                                                                                   \
    static VALUE NAME##_close(VALUE self) {                                                                             \
        NAME *opened = rb_check_typeddata(self, &NAME##_type);                                                          \
        CLOSE(opened->hm);                                                                                              \
        opened->hm = NULL;                                                                                              \
        return Qnil;                                                                                                    \
    }
KIND(pool, hm_pool_close)
KIND(queue, hm_queue_close)

static void hand_free(void *data) {
    hm_hand_close(((hand *)data)->hm);
    xfree(data);
}
static const rb_data_type_t hand_type = {
    .wrap_struct_name = "Hashmere::hand",
    .function = {.dfree = hand_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static hand *hand_of(VALUE self) {
    hand *h = rb_check_typeddata(self, &hand_type);
    if (!h->hm)
        raise_closed("the hand");
    if (h->busy)
        rb_raise(rb_eThreadError, "another thread waits with this hand; each thread needs one of its own");
    return h;
}
static VALUE hand_close(VALUE self) {
    hand *h = rb_check_typeddata(self, &hand_type);
    if (h->hm)
        hand_of(self);
    hm_hand_close(h->hm);
    h->hm = NULL;
    return Qnil;
}

static void element_mark(void *data) {
    rb_gc_mark(((element *)data)->hand);
}
static const rb_data_type_t element_type = {
    .wrap_struct_name = "Hashmere::element",
    .function = {.dmark = element_mark, .dfree = RUBY_TYPED_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static int settle(int result, const hm_error *error) {
    if (result > 0)
        raise_error(error);
    return result;
}

/* Pool._open(store, name, nil or [elements, bytes, queues, hands, batch], name of the queue for the dead or nil) */
static VALUE pool_open(VALUE class, VALUE in, VALUE name, VALUE sizes, VALUE on_death) {
    hm_pool_options options = {.size = sizeof options};
    const char *text = StringValueCStr(name);
    rb_check_typeddata(in, &store_type);
    if (!NIL_P(sizes)) {
        Check_Type(sizes, T_ARRAY);
        options.elements = to_u64(rb_ary_entry(sizes, 0), "elements");
        options.bytes = to_u64(rb_ary_entry(sizes, 1), "bytes");
        options.queues = to_u64(rb_ary_entry(sizes, 2), "queues");
        options.hands = to_u64(rb_ary_entry(sizes, 3), "hands");
        options.batch = to_u64(rb_ary_entry(sizes, 4), "batch");
        options.on_death = NIL_P(on_death) ? NULL : StringValueCStr(on_death);
    }
    pool *made;
    VALUE object = TypedData_Make_Struct(class, pool, &pool_type, made);
    hm_error error;
    settle(hm_pool_open(open_store(in)->hm, text, NIL_P(sizes) ? NULL : &options, &made->hm,
                        &error), &error);
    RB_GC_GUARD(name);
    RB_GC_GUARD(on_death);
    return object;
}

/* Pool._remove(store, name) */
static VALUE pool_remove(VALUE class, VALUE in, VALUE name) {
    hm_error error;
    rb_check_typeddata(in, &store_type);
    return RBOOL(settle(hm_pool_remove(open_store(in)->hm, StringValueCStr(name), &error), &error) == HM_OK);
}

/* _queue(name, kind, bound) */
static VALUE pool_queue(VALUE self, VALUE name, VALUE kind, VALUE bound) {
    hm_queue_options options = {.size = sizeof options, .kind = to_u64(kind, "kind"), .bound = to_u64(bound, "bound")};
    queue *made;
    VALUE object = TypedData_Make_Struct(queue_class, queue, &queue_type, made);
    hm_error error;
    settle(hm_queue_open(pool_of(self)->hm, StringValueCStr(name), &options, &made->hm, &error), &error);
    return object;
}

static VALUE pool_hand(VALUE self) {
    hand *made;
    VALUE object = TypedData_Make_Struct(hand_class, hand, &hand_type, made);
    hm_error error;
    settle(hm_hand_open(pool_of(self)->hm, &made->hm, &error), &error);
    return object;
}

/* How many elements of the dead were given back. */
static VALUE pool_recover(VALUE self) {
    uint64_t given_back;
    hm_error error;
    settle(hm_pool_recover(pool_of(self)->hm, &given_back, &error), &error);
    return ULL2NUM(given_back);
}

static VALUE pool_stats(VALUE self) {
    hm_pool_stats stats = {.size = sizeof stats};
    hm_error error;
    settle(hm_pool_get_stats(pool_of(self)->hm, &stats, &error), &error);
    VALUE hash = rb_hash_new();
#define F(NAME) rb_hash_aset(hash, ID2SYM(rb_intern(#NAME)), ULL2NUM(stats.NAME));
    F(elements) F(bytes) F(bytes_all) F(hands) F(hands_max) F(queues) F(queues_max) F(held) F(recovered)
#undef F
    return hash;
}

static VALUE queue_size(VALUE self) {
    uint64_t count;
    hm_error error;
    settle(hm_queue_count(queue_of(self)->hm, &count, &error), &error);
    return ULL2NUM(count);
}

typedef struct pull {
    slice slice;
    hand *hand;
    hm_queue *from;
    hm_element element;
} pull;

static int wait_for_element(slice *s) {
    pull *p = (pull *)s;
    return hm_pull_wait(p->hand->hm, p->from, s->ms, &p->element, &s->error);
}

static VALUE run_pull(VALUE argument) {
    pull *p = (pull *)argument;
    return INT2FIX(in_slices(&p->slice, HM_ABSENT));
}

static VALUE end_pull(VALUE argument) {
    ((pull *)argument)->hand->busy = 0;
    return Qnil;
}

/* _pull(queue, milliseconds): an element, or nil. */
static VALUE hand_pull(VALUE self, VALUE from, VALUE ms) {
    pull p = {.slice = {.run = wait_for_element, .left_ms = to_u64(ms, "timeout")}, .hand = hand_of(self), .from = queue_of(from)->hm};
    int result = settle(hm_pull(p.hand->hm, p.from, &p.element, &p.slice.error), &p.slice.error);
    if (result == HM_ABSENT && p.slice.left_ms > 0) {
        p.hand->busy = 1;
        result = settle(FIX2INT(rb_ensure(run_pull, (VALUE)&p, end_pull, (VALUE)&p)), &p.slice.error);
    }
    if (result == HM_ABSENT)
        return Qnil;
    element *made;
    VALUE object = TypedData_Make_Struct(element_class, element, &element_type, made);
    made->hm = p.element;
    RB_OBJ_WRITE(object, &made->hand, self);
    RB_GC_GUARD(from);
    return object;
}

/* An element that is held, with its hand. */
static element *element_of(VALUE self, hand **by) {
    element *e = rb_check_typeddata(self, &element_type);
    *by = hand_of(e->hand);
    if (e->hm.place == 0)
        raise_closed("the element");
    return e;
}

/* Whether it was pushed; false: the queue has reached its bound. */
static VALUE element_push(VALUE self, VALUE to) {
    hand *h;
    element *e = element_of(self, &h);
    hm_error error;
    return RBOOL(settle(hm_push(h->hm, &e->hm, queue_of(to)->hm, &error), &error) == HM_OK);
}

static VALUE element_give_back(VALUE self) {
    hand *h;
    element *e = element_of(self, &h);
    hm_error error;
    settle(hm_give_back(h->hm, &e->hm, &error), &error);
    return Qnil;
}

static void check_range(const element *e, size_t start, size_t len) {
    if (start > e->hm.len || len > e->hm.len - start)
        rb_raise(rb_eIndexError, "bytes %zu to %zu of an element of %zu", start, start + len, e->hm.len);
}

/* _read(start, count) */
static VALUE element_read(VALUE self, VALUE start, VALUE count) {
    hand *h;
    element *e = element_of(self, &h);
    size_t at = (size_t)to_u64(start, "start"), len = (size_t)to_u64(count, "count");
    check_range(e, at, len);
    return rb_str_new((char *)e->hm.data + at, (long)len);
}

static VALUE element_write(VALUE self, VALUE start, VALUE bytes) {
    hand *h;
    StringValue(bytes);
    element *e = element_of(self, &h);
    size_t at = (size_t)to_u64(start, "start");
    check_range(e, at, (size_t)RSTRING_LEN(bytes));
    memcpy((char *)e->hm.data + at, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes));
    return self;
}

static VALUE element_size(VALUE self) {
    hand *h;
    return SIZET2NUM(element_of(self, &h)->hm.len);
}
static VALUE element_number(VALUE self) {
    hand *h;
    return UINT2NUM(element_of(self, &h)->hm.number);
}

static VALUE under(const char *name) {
    VALUE class = rb_define_class_under(hashmere_module, name, rb_cObject);
    rb_undef_alloc_func(class);
    return class;
}

void init_queue(void) {
    pool_class = under("Pool");
    queue_class = under("Queue");
    hand_class = under("Hand");
    element_class = under("Element");
    rb_define_singleton_method(pool_class, "_open", pool_open, 4);
    rb_define_singleton_method(pool_class, "_remove", pool_remove, 2);
    rb_define_private_method(pool_class, "_queue", pool_queue, 3);
    rb_define_method(pool_class, "hand", pool_hand, 0);
    rb_define_method(pool_class, "recover", pool_recover, 0);
    rb_define_method(pool_class, "stats", pool_stats, 0);
    rb_define_method(pool_class, "close", pool_close, 0);
    rb_define_method(queue_class, "size", queue_size, 0);
    rb_define_method(queue_class, "close", queue_close, 0);
    rb_define_private_method(hand_class, "_pull", hand_pull, 2);
    rb_define_method(hand_class, "close", hand_close, 0);
    rb_define_method(element_class, "push", element_push, 1);
    rb_define_method(element_class, "give_back", element_give_back, 0);
    rb_define_private_method(element_class, "_read", element_read, 2);
    rb_define_method(element_class, "write", element_write, 2);
    rb_define_method(element_class, "size", element_size, 0);
    rb_define_method(element_class, "number", element_number, 0);
}
