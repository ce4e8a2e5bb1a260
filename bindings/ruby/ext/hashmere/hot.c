/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The calls of inner loops: one call of the library each, with the GVL held as long as the value is short. */
#include "binding.h"

/* Values up to here are read onto the stack and become a String from there; longer ones are read into the String itself. */
enum { ROOM = 512 };

/* A key that is converted again, because the call is repeated, is converted from what the caller gave: `key_of` leaves the bytes of a
 * HashedKey in its place, which alone are another key. */
static int run_get(call *c) {
    return hm_get_at(c->hm, &c->key, c->output, c->room, &c->len, &c->error);
}

static int run_set(call *c) {
    return hm_set_at(c->hm, &c->key, c->value.data, c->value.len, &c->error);
}

static int run_take(call *c) {
    return hm_take_at(c->hm, &c->key, c->output, c->room, &c->len, NULL, &c->error);
}

/* A value of about `len` bytes, into a String of its own. nil: it is gone. */
static VALUE read_long(store *s, VALUE key, size_t len, int (*run)(call *)) {
    call c;
    c.run = run;
    c.key = frozen_key_of(&key);
    VALUE string = rb_str_new(NULL, (long)len);
    int result;
    for (;;) {
        c.hm = s->hm;
        c.output = RSTRING_PTR(string);
        c.room = len;
        result = perform(s, &c, len >= LONG_VALUE);
        if (result != HM_BUFFER_TOO_SMALL)
            break;
        len = c.len;
        rb_str_resize(string, (long)len);
    }
    RB_GC_GUARD(key);
    if (result == HM_ABSENT)
        return Qnil;
    rb_str_set_len(string, (long)c.len);
    return tag(s, string);
}

static VALUE store_aref(VALUE self, VALUE key) {
    store *s = open_store(self);
    char room[ROOM];
    size_t len;
    hm_error error;
    int result;
    if (RB_LIKELY(RB_TYPE_P(key, T_STRING))) {
        result = hm_get(s->hm, RSTRING_PTR(key), (size_t)RSTRING_LEN(key), room, sizeof room, &len, &error);
    } else {
        VALUE name = key;
        hm_key k = key_of(&name);
        result = hm_get_at(s->hm, &k, room, sizeof room, &len, &error);
        RB_GC_GUARD(name);
    }
    if (RB_LIKELY(result == HM_OK))
        return new_string(s, room, len);
    if (result == HM_ABSENT)
        return Qnil;
    if (result == HM_BUFFER_TOO_SMALL)
        return read_long(s, key, len, run_get);
    raise_error(&error);
}

static void set_slowly(store *s, VALUE key, VALUE value) {
    call c;
    c.run = run_set;
    c.hm = s->hm;
    c.key = frozen_key_of(&key);
    c.value = frozen_bytes_of(&value);
    perform(s, &c, 1);
    RB_GC_GUARD(key);
    RB_GC_GUARD(value);
}

static VALUE store_aset(VALUE self, VALUE key, VALUE value) {
    store *s = open_store(self);
    VALUE name = key;
    hm_key k = key_of(&name); /* refused before anything is asked of the value */
    StringValue(value); /* a value that is a Symbol or a number would come back as something else */
    hm_bytes v = bytes_of(&value);
    name = key; /* again: to_str may have run anything */
    k = key_of(&name);
    hm_error error;
    if (RB_UNLIKELY(v.len >= LONG_VALUE)) {
        set_slowly(s, key, value);
        return value;
    }
    int result = RB_LIKELY(k.kind == HM_KEY_BYTES) ? hm_set(s->hm, k.data, k.len, v.data, v.len, &error)
                                                   : hm_set_at(s->hm, &k, v.data, v.len, &error);
    RB_GC_GUARD(name);
    if (RB_UNLIKELY(result != HM_OK)) {
        if (result != HM_E_BUSY)
            raise_error(&error);
        set_slowly(s, key, value);
    }
    return value;
}

static VALUE store_has_key(VALUE self, VALUE key) {
    store *s = open_store(self);
    hm_key k = key_of(&key);
    hm_error error;
    int result = RB_LIKELY(k.kind == HM_KEY_BYTES) ? hm_contains(s->hm, k.data, k.len, &error) : hm_contains_at(s->hm, &k, &error);
    RB_GC_GUARD(key);
    if (result > 0)
        raise_error(&error);
    return RBOOL(result == HM_OK);
}

/* Takes the value: of several callers one gets it. */
static VALUE store_take(VALUE self, VALUE key) {
    store *s = open_store(self);
    char room[ROOM];
    VALUE name = key;
    call c;
    c.run = run_take;
    c.hm = s->hm;
    c.key = frozen_key_of(&name);
    c.output = room;
    c.room = sizeof room;
    int result = perform(s, &c, 0);
    if (result == HM_BUFFER_TOO_SMALL)
        return read_long(s, key, c.len, run_take);
    VALUE taken = result == HM_OK ? new_string(s, room, c.len) : Qnil;
    RB_GC_GUARD(name);
    return taken;
}

void init_hot(void) {
    rb_define_method(store_class, "[]", store_aref, 1);
    rb_define_method(store_class, "[]=", store_aset, 2);
    rb_define_method(store_class, "key?", store_has_key, 1);
    rb_define_private_method(store_class, "_take", store_take, 1);
}
