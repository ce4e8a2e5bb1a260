/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hashmere::WriteBatch, its calls on a store, and snapshot reads; lib/hashmere/transaction.rb has what they look like. */
#include "transaction.h"
#include <stdlib.h>

typedef struct batch {
    hm_write_batch *hm;
    unsigned users; /* Calls without the GVL that read it: it must not change then. */
} batch;

static VALUE batch_class;

static void batch_free(void *data) {
    hm_write_batch_close(((batch *)data)->hm);
    xfree(data);
}
static size_t batch_size(const void *data) {
    return sizeof(batch);
}
static const rb_data_type_t batch_type = {
    .wrap_struct_name = "Hashmere::WriteBatch",
    .function = {.dfree = batch_free, .dsize = batch_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE batch_make(VALUE class) {
    batch *b;
    VALUE object = TypedData_Make_Struct(class, batch, &batch_type, b);
    hm_error error;
    if (hm_write_batch_open(&b->hm, &error) > 0)
        raise_error(&error);
    return object;
}

/* A batch that may be changed. */
static batch *idle(VALUE self) {
    batch *b = rb_check_typeddata(self, &batch_type);
    if (b->users)
        rb_raise(rb_eThreadError, "the batch is being written by another thread");
    return b;
}

static VALUE added(VALUE self, int result, const hm_error *error) {
    if (result > 0)
        raise_error(error);
    return self;
}

/* _set(key, value, flags, expiry, ms) */
static VALUE batch_set(VALUE self, VALUE key, VALUE value, VALUE flags, VALUE expiry, VALUE ms) {
    hm_attributes with = to_attributes(flags, expiry, ms);
    hm_error error;
    StringValue(value);
    hm_bytes k = bytes_of(&key);
    int result = hm_write_batch_set(idle(self)->hm, k.data, k.len, RSTRING_PTR(value), (size_t)RSTRING_LEN(value), &with, &error);
    RB_GC_GUARD(key);
    RB_GC_GUARD(value);
    return added(self, result, &error);
}

static VALUE batch_delete(VALUE self, VALUE key) {
    hm_bytes k = bytes_of(&key);
    hm_error error;
    int result = hm_write_batch_delete(idle(self)->hm, k.data, k.len, &error);
    RB_GC_GUARD(key);
    return added(self, result, &error);
}

/* _incr(key, by, initial or nil, flags, expiry, ms) */
static VALUE batch_incr(VALUE self, VALUE key, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    int64_t step = to_i64(by, "the step");
    hm_counter create;
    if (!NIL_P(initial))
        create = (hm_counter){to_u64(initial, "initial"), to_attributes(flags, expiry, ms)};
    hm_bytes k = bytes_of(&key);
    hm_error error;
    int result = hm_write_batch_incr_by(idle(self)->hm, k.data, k.len, step, NIL_P(initial) ? NULL : &create, &error);
    RB_GC_GUARD(key);
    return added(self, result, &error);
}

/* _incr_signed(key, by, initial or nil, flags, expiry, ms) */
static VALUE batch_incr_signed(VALUE self, VALUE key, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    int64_t step = to_i64(by, "the step");
    hm_signed_counter create;
    if (!NIL_P(initial))
        create = (hm_signed_counter){to_i64(initial, "initial"), to_attributes(flags, expiry, ms)};
    hm_bytes k = bytes_of(&key);
    hm_error error;
    int result = hm_write_batch_incr_signed(idle(self)->hm, k.data, k.len, step, NIL_P(initial) ? NULL : &create, &error);
    RB_GC_GUARD(key);
    return added(self, result, &error);
}

/* _incr_float(key, by, initial or nil, flags, expiry, ms) */
static VALUE batch_incr_float(VALUE self, VALUE key, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    double step = NUM2DBL(by);
    hm_float_counter create;
    if (!NIL_P(initial))
        create = (hm_float_counter){NUM2DBL(initial), to_attributes(flags, expiry, ms)};
    hm_bytes k = bytes_of(&key);
    hm_error error;
    int result = hm_write_batch_incr_float(idle(self)->hm, k.data, k.len, step, NIL_P(initial) ? NULL : &create, &error);
    RB_GC_GUARD(key);
    return added(self, result, &error);
}

#define JOIN(NAME)                                                                                                               \
    static VALUE batch_##NAME(VALUE self, VALUE key, VALUE more) {                                                               \
        StringValue(more);                                                                                                       \
        hm_bytes k = bytes_of(&key);                                                                                             \
        hm_error error;                                                                                                          \
        int result = hm_write_batch_##NAME(idle(self)->hm, k.data, k.len, RSTRING_PTR(more), (size_t)RSTRING_LEN(more), &error); \
        RB_GC_GUARD(key);                                                                                                        \
        RB_GC_GUARD(more);                                                                                                       \
        return added(self, result, &error);                                                                                      \
    }
JOIN(append)
JOIN(prepend)

/* _touch(key, expiry, ms) */
static VALUE batch_touch(VALUE self, VALUE key, VALUE expiry, VALUE ms) {
    int kind = NUM2INT(expiry);
    int64_t time = NUM2LL(ms);
    hm_bytes k = bytes_of(&key);
    hm_error error;
    int result = hm_write_batch_touch(idle(self)->hm, k.data, k.len, kind, time, &error);
    RB_GC_GUARD(key);
    return added(self, result, &error);
}

static VALUE batch_get(VALUE self, VALUE key) {
    hm_bytes k = bytes_of(&key);
    hm_error error;
    int result = hm_write_batch_get(idle(self)->hm, k.data, k.len, &error);
    RB_GC_GUARD(key);
    return added(self, result, &error);
}

static VALUE batch_clear(VALUE self) {
    hm_error error;
    return added(self, hm_write_batch_clear(idle(self)->hm, &error), &error);
}

/* A call with what it is given and what it shows, one result or item behind the other, each with its value behind it: no Ruby object can
 * be made while the library is on the stack. */
typedef struct doing {
    VALUE self, then, otherwise, kinds, keys, values, versions;
    VALUE kept, kept_values, room, room_values, room_conditions;
    const hm_condition *conditions;
    size_t count;
    int has_conditions;
    batch *batches[2];
    collected shown;
} doing;

static int show_result(void *user, size_t index, const hm_batch_result *result) {
    collected *shown = user;
    return collect_bytes(shown, result, sizeof *result) || (result->value.len && collect_bytes(shown, result->value.data, result->value.len));
}

static int run_write(call *c) {
    doing *d = c->output;
    d->shown.len = 0;
    hm_write_batch *then = d->batches[0]->hm, *otherwise = d->batches[1] ? d->batches[1]->hm : NULL;
    if (!d->has_conditions)
        return hm_write_batch_commit(c->hm, then, show_result, &d->shown, &c->error);
    return hm_write_batch_commit_if(c->hm, d->conditions, d->count, then, otherwise, show_result, &d->shown, &c->error);
}

static void read_conditions(doing *d) {
    const hm_bytes *keys = bytes_of_all(d->keys, &d->kept, &d->room, 1);
    const hm_bytes *values = bytes_of_all(d->values, &d->kept_values, &d->room_values, 0);
    d->count = (size_t)RARRAY_LEN(d->kept);
    hm_condition *all = rb_alloc_tmp_buffer2(&d->room_conditions, (long)d->count + 1, sizeof(hm_condition));
    for (size_t i = 0; i < d->count; i++) {
        uint32_t kind = to_u32(rb_ary_entry(d->kinds, (long)i), "a kind");
        uint64_t version = to_u64(rb_ary_entry(d->versions, (long)i), "a version");
        all[i] = (hm_condition){keys[i], values[i], version, kind, 0};
    }
    d->conditions = all;
}

static VALUE written(const doing *d, const store *s) {
    VALUE results = rb_ary_new();
    for (size_t at = 0; at < d->shown.len;) {
        hm_batch_result one;
        memcpy(&one, d->shown.data + at, sizeof one);
        at += sizeof one;
        VALUE parts = Qnil;
        if (one.value.data)
            parts = from_meta(&one.metadata, new_string(s, d->shown.data + at, one.value.len));
        at += one.value.len;
        VALUE numbers = rb_ary_new_from_args(3, ULL2NUM(one.number), LL2NUM(one.signed_number), DBL2NUM(one.float_number));
        rb_ary_push(results, rb_ary_new_from_args(4, RBOOL(one.result == HM_OK), numbers, ULL2NUM(one.stored.version), parts));
    }
    return results;
}

static VALUE write_now(VALUE argument) {
    doing *d = (doing *)argument;
    call c;
    c.run = run_write;
    c.output = d;
    if (d->has_conditions)
        read_conditions(d);
    store *s = open_store(d->self);
    c.hm = s->hm;
    size_t count;
    int release = hm_write_batch_len(d->batches[0]->hm, &count, NULL) == HM_OK && count >= MANY_KEYS;
    int result = perform(s, &c, release);
    raise_if_failed(&d->shown);
    return rb_assoc_new(RBOOL(result == HM_OK), written(d, s));
}

static VALUE release_doing(VALUE argument) {
    doing *d = (doing *)argument;
    for (int i = 0; i < 2; i++)
        if (d->batches[i])
            d->batches[i]->users--;
    free(d->shown.data);
    rb_free_tmp_buffer(&d->room);
    rb_free_tmp_buffer(&d->room_values);
    rb_free_tmp_buffer(&d->room_conditions);
    return Qnil;
}

static VALUE perform_doing(doing *d) {
    d->batches[0] = rb_check_typeddata(d->then, &batch_type);
    d->batches[1] = NIL_P(d->otherwise) ? NULL : rb_check_typeddata(d->otherwise, &batch_type);
    for (int i = 0; i < 2; i++)
        if (d->batches[i])
            d->batches[i]->users++;
    VALUE done = rb_ensure(write_now, (VALUE)d, release_doing, (VALUE)d);
    RB_GC_GUARD(d->then);
    RB_GC_GUARD(d->otherwise);
    return done;
}

/* _write_batch(batch): [true, results]; a result is [whether it is, numbers of the three kinds of counter, version, parts of an item or nil]. */
static VALUE store_write_batch(VALUE self, VALUE all) {
    doing d = {.self = self, .then = all, .otherwise = Qnil};
    return perform_doing(&d);
}

/* _write_batch_if(kinds, keys, values, versions, then, otherwise or nil): [whether all held, results] */
static VALUE store_write_batch_if(VALUE self, VALUE kinds, VALUE keys, VALUE values, VALUE versions, VALUE then, VALUE otherwise) {
    doing d = {.self = self, .then = then, .otherwise = otherwise, .kinds = kinds, .keys = keys, .values = values, .versions = versions};
    d.has_conditions = 1;
    return perform_doing(&d);
}

/* What a snapshot read shows: whether the key is there, the rest of it, its value. */
typedef struct shown_item {
    int is_there;
    hm_metadata metadata;
} shown_item;

static int show_item(void *user, size_t index, const hm_pair *item) {
    collected *shown = user;
    shown_item one = {.is_there = item != NULL};
    if (item)
        one.metadata = item->metadata;
    return collect_bytes(shown, &one, sizeof one) || (item && item->value.len && collect_bytes(shown, item->value.data, item->value.len));
}

static int run_snapshot(call *c) {
    doing *d = c->output;
    d->shown.len = 0;
    return hm_get_many_snapshot(c->hm, c->input, c->number, show_item, &d->shown, &c->error);
}

static VALUE snapshot(VALUE argument) {
    doing *d = (doing *)argument;
    call c;
    c.run = run_snapshot;
    c.output = d;
    c.input = bytes_of_all(d->keys, &d->kept, &d->room, 1);
    c.number = (uint64_t)RARRAY_LEN(d->kept);
    store *s = open_store(d->self);
    c.hm = s->hm;
    perform(s, &c, c.number >= MANY_KEYS);
    raise_if_failed(&d->shown);
    VALUE items = rb_ary_new_capa((long)c.number);
    for (size_t at = 0; at < d->shown.len;) {
        shown_item one;
        memcpy(&one, d->shown.data + at, sizeof one);
        at += sizeof one;
        VALUE value = one.is_there ? new_string(s, d->shown.data + at, one.metadata.value_len) : Qnil;
        at += one.is_there ? one.metadata.value_len : 0;
        rb_ary_push(items, one.is_there ? from_meta(&one.metadata, value) : Qnil);
    }
    return items;
}

/* _get_many_snapshot(keys): the parts of the items in order, nil where there is none. */
static VALUE store_get_many_snapshot(VALUE self, VALUE keys) {
    doing d = {.self = self, .keys = rb_Array(keys)};
    return rb_ensure(snapshot, (VALUE)&d, release_doing, (VALUE)&d);
}

void init_write_batch(void) {
    batch_class = rb_define_class_under(hashmere_module, "WriteBatch", rb_cObject);
    rb_define_alloc_func(batch_class, batch_make);
    rb_define_private_method(batch_class, "_set", batch_set, 5);
    rb_define_private_method(batch_class, "_delete", batch_delete, 1);
    rb_define_private_method(batch_class, "_incr", batch_incr, 6);
    rb_define_private_method(batch_class, "_incr_signed", batch_incr_signed, 6);
    rb_define_private_method(batch_class, "_incr_float", batch_incr_float, 6);
    rb_define_private_method(batch_class, "_append", batch_append, 2);
    rb_define_private_method(batch_class, "_prepend", batch_prepend, 2);
    rb_define_private_method(batch_class, "_touch", batch_touch, 3);
    rb_define_private_method(batch_class, "_get", batch_get, 1);
    rb_define_private_method(batch_class, "_clear", batch_clear, 0);
    rb_define_private_method(store_class, "_write_batch", store_write_batch, 1);
    rb_define_private_method(store_class, "_write_batch_if", store_write_batch_if, 6);
    rb_define_private_method(store_class, "_get_many_snapshot", store_get_many_snapshot, 1);
}
