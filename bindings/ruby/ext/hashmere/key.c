/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keys: bytes, bytes with a hash of the caller's, UIDs, entry ids. lib/hashmere/key.rb has what their objects can do. */
#include "binding.h"

static VALUE uid_class, entry_id_class, hashed_key_class;
static ID number_ivar, bytes_ivar;

hm_key other_key_of(VALUE *key) {
    VALUE class = rb_obj_class(*key);
    if (class == uid_class)
        return hm_key_uid(to_u32(rb_ivar_get(*key, number_ivar), "a UID"));
    if (class == entry_id_class)
        return hm_key_id(to_u64(rb_ivar_get(*key, number_ivar), "an entry id"));
    if (class == hashed_key_class) {
        uint64_t hash = to_u64(rb_ivar_get(*key, number_ivar), "a hash");
        *key = rb_ivar_get(*key, bytes_ivar);
        hm_bytes bytes = bytes_of(key);
        return hm_key_hashed(bytes.data, bytes.len, hash);
    }
    VALUE string = RB_SYMBOL_P(*key) ? rb_sym2str(*key) : rb_check_string_type(*key);
    if (NIL_P(string))
        rb_raise(rb_eTypeError, "a key has to be a String, a Symbol, or a Hashmere::Uid, EntryId or HashedKey, not %" PRIsVALUE, class);
    *key = string;
    hm_bytes bytes = bytes_of(key);
    return hm_key_bytes(bytes.data, bytes.len);
}

VALUE string_key_of(VALUE key) {
    VALUE string = RB_SYMBOL_P(key) ? rb_sym2str(key) : rb_check_string_type(key);
    if (NIL_P(string))
        rb_raise(rb_eTypeError, "a key in a call of several has to be a String or a Symbol, not %" PRIsVALUE, rb_obj_class(key));
    return string;
}

hm_key frozen_key_of(VALUE *key) {
    hm_key found = key_of(key);
    if (found.kind == HM_KEY_UID || found.kind == HM_KEY_ID)
        return found;
    hm_bytes bytes = frozen_bytes_of(key);
    found.data = bytes.data;
    found.len = bytes.len;
    return found;
}

VALUE new_uid(uint32_t uid) {
    VALUE number = UINT2NUM(uid);
    return rb_class_new_instance(1, &number, uid_class);
}

VALUE new_entry_id(uint64_t id) {
    VALUE number = ULL2NUM(id);
    return rb_class_new_instance(1, &number, entry_id_class);
}

/* Uid._check(number), EntryId._check(number), HashedKey._check(hash): raises what is wrong with a number. */
static VALUE check_uid(VALUE class, VALUE number) {
    (void)class;
    to_u32(number, "a UID");
    return number;
}
static VALUE check_entry_id(VALUE class, VALUE number) {
    (void)class;
    to_u64(number, "an entry id");
    return number;
}
static VALUE check_hash(VALUE class, VALUE number) {
    (void)class;
    to_u64(number, "a hash");
    return number;
}

static VALUE store_uid_of(VALUE self, VALUE key) {
    store *s = open_store(self);
    hm_key k = key_of(&key);
    uint32_t uid;
    hm_error error;
    int result = hm_uid_of_at(s->hm, &k, &uid, &error);
    RB_GC_GUARD(key);
    if (result > 0)
        raise_error(&error);
    return result == HM_OK ? new_uid(uid) : Qnil;
}

static VALUE store_id_of(VALUE self, VALUE key) {
    store *s = open_store(self);
    hm_key k = key_of(&key);
    uint64_t id;
    hm_error error;
    int result = hm_id_of_at(s->hm, &k, &id, &error);
    RB_GC_GUARD(key);
    if (result > 0)
        raise_error(&error);
    return result == HM_OK ? new_entry_id(id) : Qnil;
}

static int run_key_of(call *c) {
    return hm_key_of_at(c->hm, &c->key, c->output, c->room, &c->len, &c->error);
}

static VALUE store_key_of(VALUE self, VALUE key) {
    call c;
    VALUE none = Qundef;
    c.run = run_key_of;
    prepare(self, &c, &key, &none);
    VALUE string = rb_str_new(NULL, 128);
    for (;;) {
        store *s = open_store(self); /* which another thread may have closed while this one waited */
        c.hm = s->hm;
        c.output = RSTRING_PTR(string);
        c.room = (size_t)RSTRING_LEN(string);
        int result = perform(s, &c, c.room >= LONG_VALUE);
        RB_GC_GUARD(key);
        if (result == HM_ABSENT)
            return Qnil;
        rb_str_resize(string, (long)c.len);
        if (result == HM_OK)
            return tag(s, string);
    }
}

static VALUE key_class(const char *name, VALUE (*check)(VALUE, VALUE)) {
    VALUE class = rb_define_class_under(hashmere_module, name, rb_cObject);
    rb_gc_register_mark_object(class);
    rb_define_singleton_method(class, "_check", check, 1);
    return class;
}

void init_key(void) {
    number_ivar = rb_intern("@number");
    bytes_ivar = rb_intern("@key");
    uid_class = key_class("Uid", check_uid);
    entry_id_class = key_class("EntryId", check_entry_id);
    hashed_key_class = key_class("HashedKey", check_hash);
    rb_define_method(store_class, "uid_of", store_uid_of, 1);
    rb_define_method(store_class, "id_of", store_id_of, 1);
    rb_define_method(store_class, "key_of", store_key_of, 1);
}
