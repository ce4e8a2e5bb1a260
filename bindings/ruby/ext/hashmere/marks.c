/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reading with a touch, and marks: what says something about one value of a key. */
#include "binding.h"

static int run_get_and_touch(call *c) {
    return hm_get_and_touch(c->hm, c->key.data, c->key.len, c->attributes.expiry, c->attributes.expiry_ms, c->output, c->room,
                            (hm_metadata *)c->input, &c->error);
}

/* _get_and_touch(key, expiry, ms): the parts of a record with its marks, or nil. */
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

/* The marks of a key, nil if it is absent. */
static VALUE store_marks(VALUE self, VALUE key) {
    store *s = open_store(self);
    hm_bytes k = bytes_of(&key);
    hm_metadata meta;
    hm_error error;
    int result = hm_get_metadata(s->hm, k.data, k.len, &meta, &error);
    if (result > 0)
        raise_error(&error);
    return result == HM_OK ? UINT2NUM(meta.marks) : Qnil;
}

/* What a call on marks has beside key and value. */
typedef struct marking {
    hm_metadata seen;
    int was_there;
    uint32_t marks;
} marking;

static int run_set_marked(call *c) {
    const marking *m = c->input;
    return hm_set_marked(c->hm, c->key.data, c->key.len, c->value.data, c->value.len, &c->attributes, m->marks,
                         m->was_there ? &m->seen : NULL, &c->stored, &c->error);
}
static int run_remark(call *c) {
    const marking *m = c->input;
    return hm_remark(c->hm, c->key.data, c->key.len, c->value.data, c->value.len, &m->seen, m->marks, &c->error);
}

static int mark(VALUE self, call *c, VALUE key, VALUE value) {
    c->key = frozen_bytes_of(&key);
    StringValue(value);
    c->value = frozen_bytes_of(&value);
    store *s = open_store(self);
    c->hm = s->hm;
    int result = perform(s, c, c->value.len >= LONG_VALUE);
    RB_GC_GUARD(key);
    RB_GC_GUARD(value);
    return result;
}

/* What was seen of a key, as [version, marks, flags, expiry in ms]. */
static hm_metadata seen_of(VALUE seen) {
    Check_Type(seen, T_ARRAY);
    return (hm_metadata){.version = to_u64(rb_ary_entry(seen, 0), "version"), .marks = to_u32(rb_ary_entry(seen, 1), "marks"),
                     .flags = to_u32(rb_ary_entry(seen, 2), "flags"),
                     .expires_at_ms = to_u64(rb_ary_entry(seen, 3), "expires_at")};
}

/* _set_marked(key, value, marks, seen or nil, flags, expiry, ms): its version, or nil. */
static VALUE store_set_marked(VALUE self, VALUE key, VALUE value, VALUE marks, VALUE seen, VALUE flags, VALUE expiry, VALUE ms) {
    call c;
    marking m = {.was_there = !NIL_P(seen), .marks = to_u32(marks, "marks")};
    if (m.was_there)
        m.seen = seen_of(seen);
    c.run = run_set_marked;
    c.input = &m;
    c.attributes = to_attributes(flags, expiry, ms);
    return mark(self, &c, key, value) == HM_OK ? ULL2NUM(c.stored.version) : Qnil;
}

/* _remark(key, value seen, marks, seen): whether it was still so. */
static VALUE store_remark(VALUE self, VALUE key, VALUE value, VALUE marks, VALUE seen) {
    call c;
    marking m = {.seen = seen_of(seen), .marks = to_u32(marks, "marks"), .was_there = 1};
    c.run = run_remark;
    c.input = &m;
    return RBOOL(mark(self, &c, key, value) == HM_OK);
}

void init_marks(void) {
    rb_define_private_method(store_class, "_get_and_touch", store_get_and_touch, 3);
    rb_define_private_method(store_class, "_set_marked", store_set_marked, 7);
    rb_define_private_method(store_class, "_remark", store_remark, 4);
    rb_define_method(store_class, "marks", store_marks, 1);
}
