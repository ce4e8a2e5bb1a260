/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keys by their number: UIDs, and entry ids, which notice when the key is gone. */
#include "binding.h"

static VALUE store_uid_of(VALUE self, VALUE key) {
    store *s = open_store(self);
    hm_bytes k = bytes_of(&key);
    uint32_t uid;
    hm_error error;
    int result = hm_uid_of(s->hm, k.data, k.len, &uid, &error);
    if (result > 0)
        raise_error(&error);
    return result == HM_OK ? UINT2NUM(uid) : Qnil;
}

static VALUE store_id_of(VALUE self, VALUE key) {
    store *s = open_store(self);
    hm_bytes k = bytes_of(&key);
    uint64_t id;
    hm_error error;
    int result = hm_id_of(s->hm, k.data, k.len, &id, &error);
    if (result > 0)
        raise_error(&error);
    return result == HM_OK ? ULL2NUM(id) : Qnil;
}

static int run_uid_get(call *c) {
    return hm_uid_get(c->hm, (uint32_t)c->number, c->output, c->room, &c->len, NULL, &c->error);
}
static int run_uid_key(call *c) {
    return hm_uid_key(c->hm, (uint32_t)c->number, c->output, c->room, &c->len, &c->error);
}
static int run_uid_set(call *c) {
    return hm_uid_set(c->hm, (uint32_t)c->number, c->value.data, c->value.len, &c->stored, &c->error);
}
static int run_uid_delete(call *c) {
    return hm_uid_delete(c->hm, (uint32_t)c->number, &c->error);
}
static int run_id_get(call *c) {
    return hm_id_get(c->hm, c->number, c->output, c->room, &c->len, NULL, &c->error);
}
static int run_id_key(call *c) {
    return hm_id_key(c->hm, c->number, c->output, c->room, &c->len, &c->error);
}
static int run_id_set(call *c) {
    return hm_id_set(c->hm, c->number, c->value.data, c->value.len, &c->stored, &c->error);
}
static int run_id_delete(call *c) {
    return hm_id_delete(c->hm, c->number, &c->error);
}

static VALUE read_by(VALUE self, uint64_t number, int (*run)(call *)) {
    call c;
    c.run = run;
    c.number = number;
    VALUE string = rb_str_new(NULL, 128);
    for (;;) {
        store *s = open_store(self);
        c.hm = s->hm;
        c.output = RSTRING_PTR(string);
        c.room = (size_t)RSTRING_LEN(string);
        int result = perform(s, &c, c.room >= LONG_VALUE);
        rb_str_resize(string, (long)c.len);
        if (result == HM_OK)
            return tag(s, string);
    }
}

static VALUE write_by(VALUE self, uint64_t number, VALUE value, int (*run)(call *)) {
    call c;
    c.run = run;
    c.number = number;
    StringValue(value);
    c.value = frozen_bytes_of(&value);
    store *s = open_store(self);
    c.hm = s->hm;
    perform(s, &c, c.value.len >= LONG_VALUE);
    RB_GC_GUARD(value);
    return ULL2NUM(c.stored.version);
}

static VALUE delete_by(VALUE self, uint64_t number, int (*run)(call *)) {
    call c;
    c.run = run;
    c.number = number;
    store *s = open_store(self);
    c.hm = s->hm;
    perform(s, &c, 0);
    return Qnil;
}

#define BY(KIND, CONVERT)                                                                                               \
    static VALUE store_##KIND##_get(VALUE self, VALUE number) {                                                         \
        return read_by(self, CONVERT(number, #KIND), run_##KIND##_get);                                                 \
    }                                                                                                                   \
    static VALUE store_##KIND##_key(VALUE self, VALUE number) {                                                         \
        return read_by(self, CONVERT(number, #KIND), run_##KIND##_key);                                                 \
    }                                                                                                                   \
    static VALUE store_##KIND##_set(VALUE self, VALUE number, VALUE value) {                                            \
        return write_by(self, CONVERT(number, #KIND), value, run_##KIND##_set);                                         \
    }                                                                                                                   \
    static VALUE store_##KIND##_delete(VALUE self, VALUE number) {                                                      \
        return delete_by(self, CONVERT(number, #KIND), run_##KIND##_delete);                                            \
    }
BY(uid, to_u32)
BY(id, to_u64)

void init_number(void) {
    rb_define_method(store_class, "uid_of", store_uid_of, 1);
    rb_define_method(store_class, "id_of", store_id_of, 1);
    rb_define_method(store_class, "uid_get", store_uid_get, 1);
    rb_define_method(store_class, "uid_key", store_uid_key, 1);
    rb_define_method(store_class, "uid_set", store_uid_set, 2);
    rb_define_method(store_class, "uid_delete", store_uid_delete, 1);
    rb_define_method(store_class, "id_get", store_id_get, 1);
    rb_define_method(store_class, "id_key", store_id_key, 1);
    rb_define_method(store_class, "id_set", store_id_set, 2);
    rb_define_method(store_class, "id_delete", store_id_delete, 1);
}
