/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What logs a store has, and who writes to one: Hashmere::Log.list and Log#rings. */
#include "log.h"
#include <string.h>

/* A name: its length, its bytes. */
static int keep_name(void *user, hm_bytes name) {
    collected *into = user;
    return collect_bytes(into, &name.len, sizeof name.len) || collect_bytes(into, name.data, name.len);
}
static VALUE list_names(VALUE argument) {
    listing *l = (listing *)argument;
    hm_error error;
    checked(hm_each_log(open_store(l->self)->hm, keep_name, &l->bytes, &error), &error);
    raise_if_failed(&l->bytes);
    VALUE all = rb_ary_new();
    for (size_t at = 0; at < l->bytes.len;) {
        size_t len;
        memcpy(&len, l->bytes.data + at, sizeof len);
        at += sizeof len;
        rb_ary_push(all, rb_utf8_str_new(l->bytes.data + at, (long)len));
        at += len;
    }
    return all;
}
/* Log._list(store) */
static VALUE log_list(VALUE class, VALUE in) {
    rb_check_typeddata(in, &store_type);
    return make_list(list_names, in);
}

/* A ring: the structure, the name of its process. */
static int keep_ring(void *user, const hm_ring *ring) {
    collected *into = user;
    return collect_bytes(into, ring, sizeof *ring) || collect_bytes(into, ring->process.data, ring->process.len);
}
static VALUE list_rings(VALUE argument) {
    listing *l = (listing *)argument;
    hm_error error;
    checked(hm_each_ring(log_of(l->self)->hm, keep_ring, &l->bytes, &error), &error);
    raise_if_failed(&l->bytes);
    VALUE all = rb_ary_new();
    for (size_t at = 0; at < l->bytes.len;) {
        hm_ring ring;
        memcpy(&ring, l->bytes.data + at, sizeof ring);
        at += sizeof ring;
        VALUE one = rb_hash_new();
#define F(NAME) rb_hash_aset(one, ID2SYM(rb_intern(#NAME)), ULL2NUM(ring.NAME));
        F(ring) F(thread) F(pid) F(bytes_waiting) F(unreported_drops)
#undef F
        rb_hash_aset(one, ID2SYM(rb_intern("owned")), RBOOL(ring.is_owned));
        rb_hash_aset(one, ID2SYM(rb_intern("process")), rb_utf8_str_new(l->bytes.data + at, (long)ring.process.len));
        at += ring.process.len;
        rb_ary_push(all, one);
    }
    return all;
}
static VALUE log_rings(VALUE self) {
    return make_list(list_rings, self);
}

void init_log_list(VALUE log_class) {
    rb_define_singleton_method(log_class, "_list", log_list, 1);
    rb_define_method(log_class, "rings", log_rings, 0);
}
