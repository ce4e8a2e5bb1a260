/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What logs a store has, and who writes to one: Hashmere::Log.list and Log#rings. */
#include "log.h"
#include <stdlib.h>
#include <string.h>

typedef struct collection {
    VALUE of;
    texts texts;
} collection;

static VALUE release(VALUE argument) {
    free(((collection *)argument)->texts.bytes);
    return Qnil;
}
/* Not while the library was on the stack. */
static void collected(int result, const hm_error *error, const texts *t) {
    settle(result, error);
    if (t->failed)
        rb_memerror();
}

/* A name: its length, its bytes. */
static int keep_name(void *user, hm_bytes name) {
    texts *t = user;
    return texts_append(t, &name.len, sizeof name.len) || texts_append(t, name.data, name.len);
}
static VALUE list_names(VALUE argument) {
    collection *c = (collection *)argument;
    hm_error error;
    collected(hm_each_log(open_store(c->of)->hm, keep_name, &c->texts, &error), &error, &c->texts);
    VALUE all = rb_ary_new();
    for (size_t at = 0; at < c->texts.len;) {
        size_t len;
        memcpy(&len, c->texts.bytes + at, sizeof len);
        at += sizeof len;
        rb_ary_push(all, rb_utf8_str_new(c->texts.bytes + at, (long)len));
        at += len;
    }
    return all;
}
/* Log._list(store) */
static VALUE log_list(VALUE class, VALUE in) {
    rb_check_typeddata(in, &store_type);
    collection c = {.of = in};
    return rb_ensure(list_names, (VALUE)&c, release, (VALUE)&c);
}

/* A ring: the structure, the name of its process. */
static int keep_ring(void *user, const hm_ring *ring) {
    texts *t = user;
    return texts_append(t, ring, sizeof *ring) || texts_append(t, ring->process.data, ring->process.len);
}
static VALUE list_rings(VALUE argument) {
    collection *c = (collection *)argument;
    hm_error error;
    collected(hm_each_ring(log_of(c->of)->hm, keep_ring, &c->texts, &error), &error, &c->texts);
    VALUE all = rb_ary_new();
    for (size_t at = 0; at < c->texts.len;) {
        hm_ring ring;
        memcpy(&ring, c->texts.bytes + at, sizeof ring);
        at += sizeof ring;
        VALUE one = rb_hash_new();
#define F(NAME) rb_hash_aset(one, ID2SYM(rb_intern(#NAME)), ULL2NUM(ring.NAME));
        F(ring) F(thread) F(pid) F(bytes_waiting) F(untold)
#undef F
        rb_hash_aset(one, ID2SYM(rb_intern("owned")), RBOOL(ring.is_owned));
        rb_hash_aset(one, ID2SYM(rb_intern("process")), rb_utf8_str_new(c->texts.bytes + at, (long)ring.process.len));
        at += ring.process.len;
        rb_ary_push(all, one);
    }
    return all;
}
static VALUE log_rings(VALUE self) {
    collection c = {.of = self};
    return rb_ensure(list_rings, (VALUE)&c, release, (VALUE)&c);
}

void init_log_list(VALUE log_class) {
    rb_define_singleton_method(log_class, "_list", log_list, 1);
    rb_define_method(log_class, "rings", log_rings, 0);
}
