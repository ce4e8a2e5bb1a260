/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Several keys in one call, whose cache misses overlap. */
#include "binding.h"
#include <stdlib.h>

/* The frozen Strings live in `kept`, and in `room` behind the result as well, where they are not moved by a compaction, as those of an
 * Array are. */
hm_bytes *bytes_of_all(VALUE array, VALUE *kept, VALUE *room, int keys) {
    long count = RARRAY_LEN(array);
    *kept = rb_ary_new_capa(count);
    for (long i = 0; i < count; i++) {
        VALUE string = rb_ary_entry(array, i);
        if (keys)
            string = string_key_of(string);
        else
            StringValue(string);
        frozen_bytes_of(&string);
        rb_ary_push(*kept, string);
    }
    count = RARRAY_LEN(*kept);
    hm_bytes *all = rb_alloc_tmp_buffer2(room, count + 1, sizeof(hm_bytes) + sizeof(VALUE));
    VALUE *pinned = (VALUE *)(all + count + 1);
    for (long i = 0; i < count; i++) {
        VALUE string = pinned[i] = RARRAY_AREF(*kept, i);
        all[i] = (hm_bytes){RSTRING_PTR(string), (size_t)RSTRING_LEN(string)};
    }
    return all;
}

/* What a bulk get found, one value behind the other: Strings cannot be made while the library is on the stack. */
typedef struct found {
    char *bytes;
    size_t len, room;
    size_t *lens; /* of each key; SIZE_MAX: absent */
    int failed;
} found;

static int collect(void *user, size_t index, const hm_bytes *value) {
    found *f = user;
    f->lens[index] = SIZE_MAX;
    if (!value)
        return 0;
    if (f->room - f->len < value->len) {
        size_t room = f->room * 2 + value->len + 4096;
        char *larger = realloc(f->bytes, room);
        if (!larger) {
            f->failed = 1;
            return 1;
        }
        f->bytes = larger;
        f->room = room;
    }
    if (value->len)
        memcpy(f->bytes + f->len, value->data, value->len);
    f->len += value->len;
    f->lens[index] = value->len;
    return 0;
}

static int run_get_many(call *c) {
    found *f = c->output;
    f->len = 0;
    return hm_get_many(c->hm, c->input, c->number, collect, f, &c->error);
}

typedef struct many {
    VALUE self, keys, values, attributes, kept, kept_values, room, room_values;
    found found;
    hm_attributes with;
    size_t removed;
} many;

static VALUE get_many(VALUE argument) {
    many *m = (many *)argument;
    call c;
    c.run = run_get_many;
    c.input = bytes_of_all(m->keys, &m->kept, &m->room, 1);
    c.number = (uint64_t)RARRAY_LEN(m->kept);
    c.output = &m->found;
    m->found.lens = calloc(c.number + 1, sizeof(size_t));
    if (!m->found.lens)
        rb_memerror();
    store *s = open_store(m->self);
    c.hm = s->hm;
    perform(s, &c, c.number >= MANY_KEYS);
    if (m->found.failed)
        rb_memerror();
    VALUE values = rb_ary_new_capa((long)c.number);
    const char *at = m->found.bytes;
    for (size_t i = 0; i < c.number; i++) {
        size_t len = m->found.lens[i];
        rb_ary_push(values, len == SIZE_MAX ? Qnil : new_string(s, at, len));
        at += len == SIZE_MAX ? 0 : len;
    }
    return values;
}

static VALUE release_many(VALUE argument) {
    many *m = (many *)argument;
    free(m->found.bytes);
    free(m->found.lens);
    rb_free_tmp_buffer(&m->room);
    rb_free_tmp_buffer(&m->room_values);
    return Qnil;
}

/* _get_many(keys): the values in order, nil where there is none. */
static VALUE store_get_many(VALUE self, VALUE keys) {
    many m = {.self = self, .keys = rb_Array(keys)};
    return rb_ensure(get_many, (VALUE)&m, release_many, (VALUE)&m);
}

static int run_set_many(call *c) {
    return hm_set_many(c->hm, c->input, c->output, c->number, &c->attributes, &c->error);
}

static VALUE set_many(VALUE argument) {
    many *m = (many *)argument;
    call c;
    c.run = run_set_many;
    c.input = bytes_of_all(m->keys, &m->kept, &m->room, 1);
    c.output = bytes_of_all(m->values, &m->kept_values, &m->room_values, 0);
    c.number = (uint64_t)RARRAY_LEN(m->kept);
    if (RARRAY_LEN(m->kept_values) != RARRAY_LEN(m->kept))
        rb_raise(rb_eArgError, "as many values as keys are needed");
    c.attributes = m->with;
    store *s = open_store(m->self);
    c.hm = s->hm;
    perform(s, &c, c.number >= MANY_KEYS);
    return ULL2NUM(c.number);
}

/* _set_many(keys, values, flags, expiry, ms) */
static VALUE store_set_many(VALUE self, VALUE keys, VALUE values, VALUE flags, VALUE expiry, VALUE ms) {
    many m = {.self = self, .keys = rb_Array(keys), .values = rb_Array(values)};
    m.with = to_attributes(flags, expiry, ms);
    return rb_ensure(set_many, (VALUE)&m, release_many, (VALUE)&m);
}

static int run_delete_many(call *c) {
    return hm_delete_many(c->hm, c->input, c->number, c->output, &c->error);
}

static VALUE delete_many(VALUE argument) {
    many *m = (many *)argument;
    call c;
    c.run = run_delete_many;
    c.input = bytes_of_all(m->keys, &m->kept, &m->room, 1);
    c.number = (uint64_t)RARRAY_LEN(m->kept);
    c.output = &m->removed;
    store *s = open_store(m->self);
    c.hm = s->hm;
    perform(s, &c, c.number >= MANY_KEYS);
    return SIZET2NUM(m->removed);
}

static VALUE store_delete_many(VALUE self, VALUE keys) {
    many m = {.self = self, .keys = rb_Array(keys)};
    return rb_ensure(delete_many, (VALUE)&m, release_many, (VALUE)&m);
}

void init_bulk(void) {
    rb_define_private_method(store_class, "_get_many", store_get_many, 1);
    rb_define_private_method(store_class, "_set_many", store_set_many, 5);
    rb_define_private_method(store_class, "_delete_many", store_delete_many, 1);
}
