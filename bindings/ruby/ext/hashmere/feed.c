/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The change feed: Hashmere::Feed. */
#include "waiting.h"
#include <hashmere_feed.h>

typedef struct consumer {
    hm_feed *hm;
    int busy; /* A thread waits with it. */
} consumer;

static VALUE feed_class;

static void feed_free(void *data) {
    hm_feed_close(((consumer *)data)->hm);
    xfree(data);
}
static const rb_data_type_t feed_type = {
    .wrap_struct_name = "Hashmere::Feed",
    .function = {.dfree = feed_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static consumer *feed_of(VALUE self) {
    consumer *f = rb_check_typeddata(self, &feed_type);
    if (!f->hm)
        raise_closed("the feed");
    if (f->busy)
        rb_raise(rb_eThreadError, "another thread waits with this feed");
    return f;
}

/* Feed._open(store, start, prefix, values) */
static VALUE feed_open(VALUE class, VALUE in, VALUE start, VALUE prefix, VALUE values) {
    const char *from = StringValueCStr(start);
    rb_check_typeddata(in, &store_type);
    hm_feed_options options = {.size = sizeof options, .flags = RTEST(values) ? HM_FEED_WITH_VALUES : 0};
    options.prefix = bytes_of(&prefix);
    consumer *made;
    VALUE object = TypedData_Make_Struct(class, consumer, &feed_type, made);
    hm_error error;
    checked(hm_feed_open(open_store(in)->hm, from, &options, &made->hm, &error), &error);
    RB_GC_GUARD(start);
    RB_GC_GUARD(prefix);
    return object;
}

typedef struct step {
    slice slice;
    consumer *feed;
    hm_feed_event event;
} step;

static int wait_for_event(slice *s) {
    step *n = (step *)s;
    return hm_feed_next(n->feed->hm, s->ms, &n->event, &s->error);
}
static VALUE run_step(VALUE argument) {
    return INT2FIX(in_slices(&((step *)argument)->slice, HM_TIMEOUT));
}
static VALUE end_step(VALUE argument) {
    ((step *)argument)->feed->busy = 0;
    return Qnil;
}

/* Of a key or a value: as text, if it is that. */
static VALUE string_from(const hm_bytes *bytes) {
    return rb_utf8_str_new(bytes->data, (long)bytes->len);
}

/* _next(milliseconds): [kind, operation, reason, value_state, key, value, version, expires_at_ms, ts_ms, value_len, flags, origin,
 * supplied_hash, transaction_id, transaction_index, transaction_len, token], nil: the time is up. */
static VALUE feed_next(VALUE self, VALUE ms) {
    step n = {.slice = {.run = wait_for_event, .left_ms = to_u64(ms, "timeout")}, .feed = feed_of(self)};
    n.feed->busy = 1;
    if (checked(FIX2INT(rb_ensure(run_step, (VALUE)&n, end_step, (VALUE)&n)), &n.slice.error) == HM_TIMEOUT)
        return Qnil;
    const hm_feed_event *e = &n.event;
    int keyed = e->kind == HM_FEED_READ || e->kind == HM_FEED_CHANGE;
    VALUE key = keyed ? string_from(&e->key) : Qnil;
    VALUE value = e->value_state == HM_FEED_VALUE_BYTES ? string_from(&e->value) : Qnil;
    VALUE token = e->token.len ? string_from(&e->token) : Qnil;
    VALUE parts[] = {INT2FIX(e->kind), INT2FIX(e->operation), INT2FIX(e->reason), INT2FIX(e->value_state), key, value,
                     ULL2NUM(e->version), ULL2NUM(e->expires_at_ms), ULL2NUM(e->ts_ms), UINT2NUM(e->value_len), UINT2NUM(e->flags),
                     UINT2NUM(e->origin), e->has_supplied_hash ? ULL2NUM(e->supplied_hash) : Qnil, ULL2NUM(e->transaction_id),
                     UINT2NUM(e->transaction_index), UINT2NUM(e->transaction_len), token};
    return rb_ary_new_from_values(17, parts);
}

static VALUE feed_token(VALUE self) {
    char text[192];
    size_t len;
    hm_error error;
    checked(hm_feed_token(feed_of(self)->hm, text, sizeof text, &len, &error), &error);
    return rb_utf8_str_new(text, (long)len);
}
static VALUE feed_lag(VALUE self) {
    uint64_t lag;
    hm_error error;
    checked(hm_feed_lag(feed_of(self)->hm, &lag, &error), &error);
    return ULL2NUM(lag);
}
/* _fileno: readable while there is an event. */
static VALUE feed_fileno(VALUE self) {
    int fd;
    hm_error error;
    checked(hm_feed_ready_fd(feed_of(self)->hm, &fd, &error), &error);
    return INT2FIX(fd);
}
static VALUE feed_close(VALUE self) {
    consumer *f = rb_check_typeddata(self, &feed_type);
    if (f->hm)
        feed_of(self);
    hm_feed_close(f->hm);
    f->hm = NULL;
    return Qnil;
}
static VALUE feed_closed(VALUE self) {
    return RBOOL(!((consumer *)rb_check_typeddata(self, &feed_type))->hm);
}

/* Both wait for writes that are under way, and the first for room in the file. */
static int run_enable(call *c) {
    return hm_feed_enable(c->hm, c->number, (int)c->len, &c->error);
}
static int run_disable(call *c) {
    return hm_feed_disable(c->hm, &c->error);
}
/* Feed._enable(store, bytes, values) */
static VALUE feed_enable(VALUE class, VALUE in, VALUE bytes, VALUE values) {
    call c = {.run = run_enable, .number = to_u64(bytes, "bytes"), .len = RTEST(values) ? 1 : 0};
    rb_check_typeddata(in, &store_type);
    c.hm = open_store(in)->hm;
    perform(open_store(in), &c, 1);
    return Qnil;
}
/* Feed._disable(store) */
static VALUE feed_disable(VALUE class, VALUE in) {
    call c = {.run = run_disable};
    rb_check_typeddata(in, &store_type);
    c.hm = open_store(in)->hm;
    return RBOOL(perform(open_store(in), &c, 1) == HM_OK);
}
/* Feed._info(store) */
static VALUE feed_info(VALUE class, VALUE in) {
    hm_feed_info info = {.size = sizeof info};
    hm_error error;
    rb_check_typeddata(in, &store_type);
    if (checked(hm_feed_get_info(open_store(in)->hm, &info, &error), &error) == HM_ABSENT)
        return Qnil;
    VALUE all = rb_hash_new();
#define F(NAME) rb_hash_aset(all, ID2SYM(rb_intern(#NAME)), ULL2NUM(info.NAME));
    F(number) F(position) F(oldest) F(bytes)
#undef F
    rb_hash_aset(all, ID2SYM(rb_intern("values")), RBOOL(info.values));
    return all;
}

void init_feed(void) {
    feed_class = sealed_class(hashmere_module, "Feed");
    rb_define_singleton_method(feed_class, "_open", feed_open, 4);
    rb_define_singleton_method(feed_class, "_enable", feed_enable, 3);
    rb_define_singleton_method(feed_class, "_disable", feed_disable, 1);
    rb_define_singleton_method(feed_class, "_info", feed_info, 1);
    rb_define_private_method(feed_class, "_next", feed_next, 1);
    rb_define_private_method(feed_class, "_fileno", feed_fileno, 0);
    rb_define_method(feed_class, "token", feed_token, 0);
    rb_define_method(feed_class, "lag", feed_lag, 0);
    rb_define_method(feed_class, "close", feed_close, 0);
    rb_define_method(feed_class, "closed?", feed_closed, 0);
}
