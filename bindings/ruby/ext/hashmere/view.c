/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hashmere::View, a value in place, and Hashmere::Reservation, room for a value that is written in place. */
#include "binding.h"

typedef struct view {
    hm_view hm;
    int held;
    int encoding;
} view;

typedef struct reservation {
    hm_reservation hm;
    int live;
} reservation;

static VALUE view_class, reservation_class;

static void view_free(void *data) {
    if (((view *)data)->held)
        hm_view_release(&((view *)data)->hm);
    xfree(data);
}
static size_t view_size_of(const void *data) {
    return sizeof(view);
}
static const rb_data_type_t view_type = {
    .wrap_struct_name = "Hashmere::View",
    .function = {.dfree = view_free, .dsize = view_size_of},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

/* The block form ends every reservation in its own thread; this is for a fiber that was dropped in the middle of one. */
static void reservation_free(void *data) {
    if (((reservation *)data)->live)
        hm_reservation_abandon(&((reservation *)data)->hm, NULL);
    xfree(data);
}
static size_t reservation_size_of(const void *data) {
    return sizeof(reservation);
}
static const rb_data_type_t reservation_type = {
    .wrap_struct_name = "Hashmere::Reservation",
    .function = {.dfree = reservation_free, .dsize = reservation_size_of},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE store_acquire(VALUE self, VALUE key) {
    view *v;
    VALUE object = TypedData_Make_Struct(view_class, view, &view_type, v);
    hm_key k = key_of(&key);
    store *s = open_store(self);
    hm_error error;
    int result = hm_view_acquire_at(s->hm, &k, &v->hm, &error);
    RB_GC_GUARD(key);
    if (result > 0)
        raise_error(&error);
    if (result == HM_ABSENT)
        return Qnil;
    v->held = 1;
    v->encoding = s->encoding;
    return object;
}

static view *held(VALUE self) {
    view *v = RTYPEDDATA_DATA(self);
    if (!v->held)
        raise_closed("the view");
    return v;
}

static VALUE view_size(VALUE self) {
    return SIZET2NUM(held(self)->hm.len);
}

/* A range of positions within `len` bytes, as String#byteslice counts them. */
static int within(size_t len, long *start, long *count) {
    long size = (long)len;
    if (*start < 0)
        *start += size;
    if (*start < 0 || *start > size || *count < 0)
        return 0;
    if (*count > size - *start)
        *count = size - *start;
    return 1;
}

static VALUE view_byteslice(VALUE self, VALUE from, VALUE count) {
    long start = NUM2LONG(from), bytes = NUM2LONG(count);
    view *v = held(self);
    if (!within(v->hm.len, &start, &bytes))
        return Qnil;
    store s = {.encoding = v->encoding};
    return new_string(&s, (const char *)v->hm.data + start, (size_t)bytes);
}

static VALUE view_getbyte(VALUE self, VALUE at) {
    long start = NUM2LONG(at), one = 1;
    view *v = held(self);
    if (!within(v->hm.len, &start, &one) || one == 0)
        return Qnil;
    return INT2FIX(((const unsigned char *)v->hm.data)[start]);
}

static VALUE view_zero_copy(VALUE self) {
    return RBOOL(held(self)->hm.zero_copy);
}

static VALUE view_up_to_date(VALUE self) {
    hm_error error;
    int result = hm_view_is_up_to_date(&held(self)->hm, &error);
    if (result > 0)
        raise_error(&error);
    return RBOOL(result == HM_OK);
}

static VALUE view_meta(VALUE self) {
    return from_meta(&held(self)->hm.metadata, Qnil);
}

static VALUE view_release(VALUE self) {
    view *v = RTYPEDDATA_DATA(self);
    if (v->held)
        hm_view_release(&v->hm);
    v->held = 0;
    return Qnil;
}

static int run_reserve(call *c) {
    return hm_reserve_at(c->hm, &c->key, c->number, &c->attributes, c->output, &c->error);
}

/* _reserve(key, size, flags, expiry, ms) */
static VALUE store_reserve(VALUE self, VALUE key, VALUE size, VALUE flags, VALUE expiry, VALUE ms) {
    reservation *r;
    VALUE object = TypedData_Make_Struct(reservation_class, reservation, &reservation_type, r);
    call c;
    c.run = run_reserve;
    c.number = to_u64(size, "size");
    c.attributes = to_attributes(flags, expiry, ms);
    c.output = &r->hm;
    c.key = frozen_key_of(&key);
    store *s = open_store(self);
    c.hm = s->hm;
    perform(s, &c, 0);
    r->live = 1;
    memset(r->hm.data, 0, r->hm.len); /* the bytes of an earlier record are not shown */
    RB_GC_GUARD(key);
    return object;
}

static reservation *live(VALUE self) {
    reservation *r = RTYPEDDATA_DATA(self);
    if (!r->live)
        raise_closed("the reservation");
    return r;
}

static VALUE reservation_size(VALUE self) {
    return SIZET2NUM(live(self)->hm.len);
}

/* Puts the bytes of a String at a position; they have to fit. */
static VALUE reservation_write(VALUE self, VALUE at, VALUE string) {
    uint64_t start = to_u64(at, "the position");
    StringValue(string);
    reservation *r = live(self);
    size_t len = (size_t)RSTRING_LEN(string);
    if (start > r->hm.len || len > r->hm.len - start)
        rb_raise(rb_eIndexError, "%zu bytes at %llu do not fit the %zu bytes reserved", len, (unsigned long long)start, r->hm.len);
    memcpy((char *)r->hm.data + start, RSTRING_PTR(string), len);
    return SIZET2NUM(len);
}

static VALUE reservation_setbyte(VALUE self, VALUE at, VALUE byte) {
    uint64_t start = to_u64(at, "the position");
    uint64_t value = to_u64(byte, "the byte");
    reservation *r = live(self);
    if (start >= r->hm.len)
        rb_raise(rb_eIndexError, "byte %llu is behind the %zu bytes reserved", (unsigned long long)start, r->hm.len);
    if (value > 255)
        rb_raise(rb_eRangeError, "a byte is at most 255, not %llu", (unsigned long long)value);
    ((unsigned char *)r->hm.data)[start] = (unsigned char)value;
    return byte;
}

static VALUE reservation_commit(VALUE self) {
    reservation *r = live(self);
    hm_stored stored;
    hm_error error;
    int result = hm_reservation_commit(&r->hm, &stored, &error);
    r->live = 0;
    if (result > 0)
        raise_error(&error);
    return ULL2NUM(stored.version);
}

static VALUE reservation_abandon(VALUE self) {
    reservation *r = RTYPEDDATA_DATA(self);
    if (r->live)
        hm_reservation_abandon(&r->hm, NULL);
    r->live = 0;
    return Qnil;
}

void init_view(void) {
    view_class = rb_define_class_under(hashmere_module, "View", rb_cObject);
    rb_undef_alloc_func(view_class);
    rb_define_method(view_class, "bytesize", view_size, 0);
    rb_define_method(view_class, "byteslice", view_byteslice, 2);
    rb_define_method(view_class, "getbyte", view_getbyte, 1);
    rb_define_method(view_class, "zero_copy?", view_zero_copy, 0);
    rb_define_method(view_class, "up_to_date?", view_up_to_date, 0);
    rb_define_method(view_class, "release", view_release, 0);
    rb_define_private_method(view_class, "_meta", view_meta, 0);
    reservation_class = rb_define_class_under(hashmere_module, "Reservation", rb_cObject);
    rb_undef_alloc_func(reservation_class);
    rb_define_method(reservation_class, "bytesize", reservation_size, 0);
    rb_define_method(reservation_class, "write", reservation_write, 2);
    rb_define_method(reservation_class, "setbyte", reservation_setbyte, 2);
    rb_define_private_method(reservation_class, "_commit", reservation_commit, 0);
    rb_define_private_method(reservation_class, "_abandon", reservation_abandon, 0);
    rb_define_private_method(store_class, "_acquire", store_acquire, 1);
    rb_define_private_method(store_class, "_reserve", store_reserve, 5);
}
