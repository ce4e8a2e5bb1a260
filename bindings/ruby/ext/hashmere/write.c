/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes with attributes and conditions, counters, expiry, records with all that belongs to them. */
#include "binding.h"

static VALUE version_or_nil(int result, const call *c) {
    return result == HM_OK ? ULL2NUM(c->stored.version) : Qnil;
}

#define PUT(NAME)                                                                                                       \
    static int run_##NAME(call *c) {                                                                                    \
        return hm_##NAME##_at(c->hm, &c->key, c->value.data, c->value.len, &c->attributes, &c->stored,       \
                         &c->error);                                                                                    \
    }                                                                                                                   \
    static VALUE store_##NAME(VALUE self, VALUE key, VALUE value, VALUE flags, VALUE expiry, VALUE ms) {                \
        call c;                                                                                                         \
        c.run = run_##NAME;                                                                                             \
        c.attributes = to_attributes(flags, expiry, ms);                                                                \
        store *s = prepare(self, &c, &key, &value);                                                                     \
        VALUE version = version_or_nil(perform(s, &c, c.value.len >= LONG_VALUE), &c);                                  \
        RB_GC_GUARD(key);                                                                                               \
        RB_GC_GUARD(value);                                                                                             \
        return version;                                                                                                 \
    }
PUT(set_with)
PUT(add)
PUT(replace)

#define JOIN(NAME)                                                                                                      \
    static int run_##NAME(call *c) {                                                                                    \
        return hm_##NAME##_at(c->hm, &c->key, c->value.data, c->value.len, &c->stored, &c->error);           \
    }                                                                                                                   \
    static VALUE store_##NAME(VALUE self, VALUE key, VALUE value) {                                                     \
        call c;                                                                                                         \
        c.run = run_##NAME;                                                                                             \
        store *s = prepare(self, &c, &key, &value);                                                                     \
        VALUE version = version_or_nil(perform(s, &c, c.value.len >= LONG_VALUE), &c);                                  \
        RB_GC_GUARD(key);                                                                                               \
        RB_GC_GUARD(value);                                                                                             \
        return version;                                                                                                 \
    }
JOIN(append)
JOIN(prepend)

static int run_cas_version(call *c) {
    return hm_cas_version_at(c->hm, &c->key, c->number, c->value.data, c->value.len, &c->attributes,
                          &c->stored, &c->error);
}

static VALUE store_cas_version(VALUE self, VALUE key, VALUE version, VALUE value, VALUE flags, VALUE expiry, VALUE ms) {
    call c;
    c.run = run_cas_version;
    c.number = to_u64(version, "version");
    c.attributes = to_attributes(flags, expiry, ms);
    store *s = prepare(self, &c, &key, &value);
    VALUE now = version_or_nil(perform(s, &c, c.value.len >= LONG_VALUE), &c);
    RB_GC_GUARD(key);
    RB_GC_GUARD(value);
    return now;
}

static int run_cas_value(call *c) {
    return hm_cas_value_at(c->hm, &c->key, c->old.data, c->old.len, c->value.data, c->value.len,
                        &c->attributes, &c->stored, &c->error);
}

static VALUE store_cas_value(VALUE self, VALUE key, VALUE old, VALUE value, VALUE flags, VALUE expiry, VALUE ms) {
    call c;
    c.run = run_cas_value;
    StringValue(old);
    c.old = frozen_bytes_of(&old);
    c.attributes = to_attributes(flags, expiry, ms);
    store *s = prepare(self, &c, &key, &value);
    VALUE now = version_or_nil(perform(s, &c, c.value.len >= LONG_VALUE), &c);
    RB_GC_GUARD(key);
    RB_GC_GUARD(old);
    RB_GC_GUARD(value);
    return now;
}

static int run_delete(call *c) {
    return hm_delete_at(c->hm, &c->key, &c->error);
}
static int run_delete_version(call *c) {
    return hm_delete_version_at(c->hm, &c->key, c->number, &c->error);
}
static int run_delete_value(call *c) {
    return hm_delete_value_at(c->hm, &c->key, c->value.data, c->value.len, &c->error);
}

/* _remove(key, version or nil, expected value or nil) */
static VALUE store_remove(VALUE self, VALUE key, VALUE version, VALUE expected) {
    call c;
    VALUE value = NIL_P(expected) ? Qundef : expected;
    c.run = !NIL_P(version) ? run_delete_version : !NIL_P(expected) ? run_delete_value : run_delete;
    c.number = NIL_P(version) ? 0 : to_u64(version, "version");
    store *s = prepare(self, &c, &key, &value);
    VALUE removed = RBOOL(perform(s, &c, 0) == HM_OK);
    RB_GC_GUARD(key);
    RB_GC_GUARD(value);
    return removed;
}

static int run_incr(call *c) {
    return hm_incr_at(c->hm, &c->key, c->number, c->input, c->output, &c->error);
}
static int run_decr(call *c) {
    return hm_decr_at(c->hm, &c->key, c->number, c->input, c->output, &c->error);
}
static int run_retain(call *c) {
    return hm_inc_ref_at(c->hm, &c->key, c->number, c->output, &c->error);
}
static int run_release(call *c) {
    return hm_dec_ref_at(c->hm, &c->key, c->number, c->output, &c->error);
}
static int run_incr_signed(call *c) {
    return hm_incr_signed_at(c->hm, &c->key, (int64_t)c->number, c->input, c->output, &c->error);
}
static int run_incr_float(call *c) {
    return hm_incr_float_at(c->hm, &c->key, c->fraction, c->input, c->output, &c->error);
}

/* Whether it was counted; `now` is the number then. */
static int counted(VALUE self, VALUE key, call *c, void *now) {
    VALUE none = Qundef;
    c->output = now;
    store *s = prepare(self, c, &key, &none);
    int result = perform(s, c, 0);
    RB_GC_GUARD(key);
    return result == HM_OK;
}

static VALUE count(VALUE self, VALUE key, call *c) {
    uint64_t now;
    return counted(self, key, c, &now) ? ULL2NUM(now) : Qnil;
}

/* _count(key, by, down, initial or nil, flags, expiry, ms) */
static VALUE store_count(VALUE self, VALUE key, VALUE by, VALUE down, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    call c;
    hm_counter create;
    c.run = RTEST(down) ? run_decr : run_incr;
    c.number = to_u64(by, "the step");
    c.input = NULL;
    if (!NIL_P(initial)) {
        create = (hm_counter){to_u64(initial, "initial"), to_attributes(flags, expiry, ms)};
        c.input = &create;
    }
    return count(self, key, &c);
}

/* _incr_signed(key, by, initial or nil, flags, expiry, ms) */
static VALUE store_incr_signed(VALUE self, VALUE key, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    call c;
    hm_signed_counter create;
    int64_t now;
    c.run = run_incr_signed;
    c.number = (uint64_t)to_i64(by, "the step");
    c.input = NULL;
    if (!NIL_P(initial)) {
        create = (hm_signed_counter){to_i64(initial, "initial"), to_attributes(flags, expiry, ms)};
        c.input = &create;
    }
    return counted(self, key, &c, &now) ? LL2NUM(now) : Qnil;
}

/* _incr_float(key, by, initial or nil, flags, expiry, ms) */
static VALUE store_incr_float(VALUE self, VALUE key, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    call c;
    hm_float_counter create;
    double now;
    c.run = run_incr_float;
    c.fraction = NUM2DBL(by);
    c.input = NULL;
    if (!NIL_P(initial)) {
        create = (hm_float_counter){NUM2DBL(initial), to_attributes(flags, expiry, ms)};
        c.input = &create;
    }
    return counted(self, key, &c, &now) ? DBL2NUM(now) : Qnil;
}

static VALUE count_references(int argc, VALUE *argv, VALUE self, int (*run)(call *)) {
    call c;
    VALUE key, by;
    rb_scan_args(argc, argv, "11", &key, &by);
    c.run = run;
    c.number = NIL_P(by) ? 1 : to_u64(by, "the step");
    return count(self, key, &c);
}

static VALUE store_inc_ref(int argc, VALUE *argv, VALUE self) {
    return count_references(argc, argv, self, run_retain);
}

static VALUE store_dec_ref(int argc, VALUE *argv, VALUE self) {
    return count_references(argc, argv, self, run_release);
}

static int run_touch(call *c) {
    return hm_touch_at(c->hm, &c->key, c->attributes.expiry, c->attributes.expiry_ms, &c->error);
}

static VALUE store_touch(VALUE self, VALUE key, VALUE expiry, VALUE ms) {
    call c;
    VALUE none = Qundef;
    c.run = run_touch;
    c.attributes = to_attributes(INT2FIX(0), expiry, ms);
    store *s = prepare(self, &c, &key, &none);
    VALUE touched = RBOOL(perform(s, &c, 0) == HM_OK);
    RB_GC_GUARD(key);
    return touched;
}

static int run_item(call *c) {
    return hm_get_item_at(c->hm, &c->key, c->output, c->room, (hm_metadata *)c->input, &c->error);
}

/* _item(key): [value, version, uid, flags, expiry in ms, length], or nil. */
static VALUE store_item(VALUE self, VALUE key) {
    call c;
    VALUE none = Qundef;
    c.run = run_item;
    prepare(self, &c, &key, &none);
    VALUE parts = item_of(self, &c);
    RB_GC_GUARD(key);
    return parts;
}

static int run_get_and_touch(call *c) {
    return hm_get_and_touch_at(c->hm, &c->key, c->attributes.expiry, c->attributes.expiry_ms, c->output, c->room,
                            (hm_metadata *)c->input, &c->error);
}

/* _get_and_touch(key, expiry, ms): the parts of a record, or nil. */
static VALUE store_get_and_touch(VALUE self, VALUE key, VALUE expiry, VALUE ms) {
    call c;
    VALUE none = Qundef;
    c.run = run_get_and_touch;
    c.attributes = to_attributes(INT2FIX(0), expiry, ms);
    prepare(self, &c, &key, &none);
    VALUE parts = item_of(self, &c);
    RB_GC_GUARD(key);
    return parts;
}

/* _metadata(key): the same without the value. */
static VALUE store_metadata(VALUE self, VALUE key) {
    store *s = open_store(self);
    hm_key k = key_of(&key);
    hm_metadata meta;
    hm_error error;
    int result = hm_get_metadata_at(s->hm, &k, &meta, &error);
    if (result > 0)
        raise_error(&error);
    return result == HM_OK ? from_meta(&meta, Qnil) : Qnil;
}

static VALUE store_up_to_date(VALUE self, VALUE key, VALUE version) {
    store *s = open_store(self);
    hm_key k = key_of(&key);
    hm_error error;
    int result = hm_is_up_to_date_at(s->hm, &k, to_u64(version, "version"), &error);
    if (result > 0)
        raise_error(&error);
    RB_GC_GUARD(key);
    return RBOOL(result == HM_OK);
}

/* _ttl(key): milliseconds, -1 forever, nil absent. */
static VALUE store_ttl(VALUE self, VALUE key) {
    store *s = open_store(self);
    hm_key k = key_of(&key);
    int64_t ms;
    hm_error error;
    int result = hm_ttl_at(s->hm, &k, &ms, &error);
    if (result > 0)
        raise_error(&error);
    return result == HM_OK ? LL2NUM(ms) : Qnil;
}

void init_write(void) {
    rb_define_private_method(store_class, "_set", store_set_with, 5);
    rb_define_private_method(store_class, "_add", store_add, 5);
    rb_define_private_method(store_class, "_replace", store_replace, 5);
    rb_define_method(store_class, "append", store_append, 2);
    rb_define_method(store_class, "prepend", store_prepend, 2);
    rb_define_private_method(store_class, "_cas_version", store_cas_version, 6);
    rb_define_private_method(store_class, "_cas_value", store_cas_value, 6);
    rb_define_private_method(store_class, "_remove", store_remove, 3);
    rb_define_private_method(store_class, "_count", store_count, 7);
    rb_define_private_method(store_class, "_incr_signed", store_incr_signed, 6);
    rb_define_private_method(store_class, "_incr_float", store_incr_float, 6);
    rb_define_method(store_class, "inc_ref", store_inc_ref, -1);
    rb_define_method(store_class, "dec_ref", store_dec_ref, -1);
    rb_define_private_method(store_class, "_touch", store_touch, 3);
    rb_define_private_method(store_class, "_item", store_item, 1);
    rb_define_private_method(store_class, "_get_and_touch", store_get_and_touch, 3);
    rb_define_private_method(store_class, "_metadata", store_metadata, 1);
    rb_define_private_method(store_class, "_ttl", store_ttl, 1);
    rb_define_method(store_class, "up_to_date?", store_up_to_date, 2);
}
