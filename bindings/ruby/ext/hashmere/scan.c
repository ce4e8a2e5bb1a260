/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hashmere::Scan, and a random pair. */
#include "binding.h"
#include <pthread.h>
#include <stdlib.h>

/* A scan keeps the file open by itself, so it needs no reference to its store. */
typedef struct scan {
    hm_scan *hm;
    int encoding;
    int yields; /* enum yields */
} scan;

/* What a scan returns for each key. */
enum yields { PAIRS, KEYS, KEYS_AND_UIDS };

static VALUE scan_class;

static void scan_free(void *data) {
    hm_scan_close(((scan *)data)->hm);
    xfree(data);
}

static size_t scan_size(const void *data) {
    return sizeof(scan);
}

static const rb_data_type_t scan_type = {
    .wrap_struct_name = "Hashmere::Scan",
    .function = {.dfree = scan_free, .dsize = scan_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE text_of(int encoding, hm_bytes bytes) {
    store s = {.encoding = encoding};
    return new_string(&s, bytes.data, bytes.len);
}

/* Entry `at` of an Array, as bytes that stay while the Array does; none: the pointer is NULL. */
static hm_bytes kept_bytes(VALUE array, long at) {
    VALUE string = rb_ary_entry(array, at);
    if (NIL_P(string))
        return (hm_bytes){NULL, 0};
    hm_bytes bytes = frozen_bytes_of(&string);
    rb_ary_store(array, at, string);
    if (!bytes.data)
        bytes.data = "";
    return bytes;
}

hm_filter filter_of(VALUE *which) {
    hm_filter filter = {.size = sizeof filter};
    *which = rb_ary_dup(*which);
    filter.prefix = kept_bytes(*which, 0);
    filter.glob = kept_bytes(*which, 1);
    filter.regex = kept_bytes(*which, 2);
    filter.part = to_u32(rb_ary_entry(*which, 3), "part");
    filter.parts = to_u32(rb_ary_entry(*which, 4), "parts");
    return filter;
}

/* _scan(filter, cursor, yields) */
static VALUE store_scan(VALUE self, VALUE which, VALUE cursor, VALUE yields) {
    hm_filter filter = filter_of(&which);
    filter.flags = NUM2INT(yields) == PAIRS ? 0 : HM_KEYS_ONLY;
    uint64_t from = to_u64(cursor, "cursor");
    scan *made;
    VALUE object = TypedData_Make_Struct(scan_class, scan, &scan_type, made);
    store *s = open_store(self);
    hm_error error;
    if (hm_scan_open(s->hm, &filter, from, &made->hm, &error) > 0)
        raise_error(&error);
    made->encoding = s->encoding;
    made->yields = NUM2INT(yields);
    RB_GC_GUARD(which);
    return object;
}

/* The next pair (or key, or key and UID), nil at the end. */
static VALUE scan_next(VALUE self) {
    scan *s = RTYPEDDATA_DATA(self);
    if (!s->hm)
        raise_closed("the scan");
    hm_pair pair;
    hm_error error;
    int result = hm_scan_next(s->hm, &pair, &error);
    if (result > 0)
        raise_error(&error);
    if (result == HM_END)
        return Qnil;
    VALUE key = text_of(s->encoding, pair.key);
    if (s->yields == KEYS)
        return key;
    return rb_assoc_new(key, s->yields == PAIRS ? text_of(s->encoding, pair.value) : UINT2NUM(pair.metadata.uid));
}

/* Where to go on at any later time, nil at the end. */
static VALUE scan_cursor(VALUE self) {
    scan *s = RTYPEDDATA_DATA(self);
    if (!s->hm)
        raise_closed("the scan");
    uint64_t cursor;
    hm_error error;
    int result = hm_scan_cursor(s->hm, &cursor, &error);
    if (result > 0)
        raise_error(&error);
    return result == HM_OK ? ULL2NUM(cursor) : Qnil;
}

static VALUE scan_close(VALUE self) {
    scan *s = RTYPEDDATA_DATA(self);
    hm_scan_close(s->hm);
    s->hm = NULL;
    return Qnil;
}

/* A pair copied aside: Strings cannot be made while the library is on the stack. */
typedef struct copy {
    char *bytes;
    size_t key_len, value_len;
    hm_metadata metadata;
    int failed;
} copy;

static int keep_pair(void *user, const hm_pair *pair) {
    copy *c = user;
    c->key_len = pair->key.len;
    c->value_len = pair->value.len;
    c->metadata = pair->metadata;
    c->bytes = malloc(c->key_len + c->value_len + 1);
    if (!c->bytes) {
        c->failed = 1;
        return 1;
    }
    memcpy(c->bytes, pair->key.data, c->key_len);
    memcpy(c->bytes + c->key_len, pair->value.data, c->value_len);
    return 0;
}

typedef struct drawn {
    store *store;
    copy copy;
} drawn;

static VALUE pair_of(VALUE argument) {
    drawn *d = (drawn *)argument;
    VALUE key = new_string(d->store, d->copy.bytes, d->copy.key_len);
    return rb_assoc_new(key, new_string(d->store, d->copy.bytes + d->copy.key_len, d->copy.value_len));
}

static VALUE release_copy(VALUE argument) {
    free(((drawn *)argument)->copy.bytes);
    return Qnil;
}

static VALUE draw(VALUE self, VALUE (*make)(VALUE)) {
    drawn d = {.store = open_store(self)};
    hm_error error;
    int result = hm_random(d.store->hm, keep_pair, &d.copy, &error);
    if (result > 0)
        raise_error(&error);
    if (d.copy.failed)
        rb_memerror();
    if (result != HM_OK)
        return Qnil;
    return rb_ensure(make, (VALUE)&d, release_copy, (VALUE)&d);
}

/* [key, value], each with nearly the same chance; nil if the store is empty. */
static VALUE store_random(VALUE self) {
    return draw(self, pair_of);
}

static VALUE item_and_key(VALUE argument) {
    drawn *d = (drawn *)argument;
    VALUE pair = pair_of(argument);
    return rb_assoc_new(rb_ary_entry(pair, 0), from_meta(&d->copy.metadata, rb_ary_entry(pair, 1)));
}

/* [key, parts of the record], or nil. */
static VALUE store_random_item(VALUE self) {
    return draw(self, item_and_key);
}

/* What several threads collect: lengths and bytes of each pair, one behind the other. */
typedef struct found {
    pthread_mutex_t lock;
    char *bytes;
    size_t len, room, threads;
    hm_filter filter;
    int failed;
} found;

static int collect(void *user, const hm_pair *pair) {
    found *f = user;
    const size_t lens[2] = {pair->key.len, pair->value.len}, all = sizeof lens + lens[0] + lens[1];
    pthread_mutex_lock(&f->lock);
    if (!f->failed && f->room - f->len < all) {
        size_t room = f->room * 2 + all + 4096;
        char *larger = realloc(f->bytes, room);
        f->failed = !larger;
        if (larger) {
            f->bytes = larger;
            f->room = room;
        }
    }
    if (!f->failed) {
        char *at = f->bytes + f->len;
        memcpy(at, lens, sizeof lens);
        memcpy(at + sizeof lens, pair->key.data, lens[0]);
        memcpy(at + sizeof lens + lens[0], pair->value.data, lens[1]);
        f->len += all;
    }
    const int failed = f->failed;
    pthread_mutex_unlock(&f->lock);
    return failed;
}

static int run_parallel(call *c) {
    found *f = c->output;
    f->len = 0;
    return hm_parallel_scan(c->hm, f->threads, &f->filter, collect, f, &c->error);
}

typedef struct parallel {
    VALUE self;
    found found;
} parallel;

static VALUE parallel_scan(VALUE argument) {
    parallel *p = (parallel *)argument;
    store *s = open_store(p->self);
    call c;
    c.run = run_parallel;
    c.hm = s->hm;
    c.output = &p->found;
    perform(s, &c, 1);
    if (p->found.failed)
        rb_memerror();
    VALUE pairs = rb_ary_new();
    for (size_t at = 0; at < p->found.len;) {
        size_t lens[2];
        memcpy(lens, p->found.bytes + at, sizeof lens);
        at += sizeof lens;
        VALUE key = new_string(s, p->found.bytes + at, lens[0]);
        rb_ary_push(pairs, rb_assoc_new(key, new_string(s, p->found.bytes + at + lens[0], lens[1])));
        at += lens[0] + lens[1];
    }
    return pairs;
}

static VALUE release_found(VALUE argument) {
    parallel *p = (parallel *)argument;
    free(p->found.bytes);
    pthread_mutex_destroy(&p->found.lock);
    return Qnil;
}

/* _parallel_scan(threads, filter): all pairs. */
static VALUE store_parallel_scan(VALUE self, VALUE threads, VALUE which) {
    parallel p = {.self = self};
    p.found.threads = (size_t)to_u64(threads, "threads");
    p.found.filter = filter_of(&which);
    pthread_mutex_init(&p.found.lock, NULL);
    VALUE pairs = rb_ensure(parallel_scan, (VALUE)&p, release_found, (VALUE)&p);
    RB_GC_GUARD(which);
    return pairs;
}

static int run_cursor_of(call *c) {
    return hm_cursor_of_at(c->hm, &c->key, c->output, &c->error);
}

/* Where a scan begins with this key; nil: it is absent. */
static VALUE store_cursor_of(VALUE self, VALUE key) {
    call c;
    c.run = run_cursor_of;
    c.key = frozen_key_of(&key);
    store *s = open_store(self);
    uint64_t cursor;
    c.hm = s->hm;
    c.output = &cursor;
    int result = perform(s, &c, 0);
    RB_GC_GUARD(key);
    return result == HM_OK ? ULL2NUM(cursor) : Qnil;
}

void init_scan(void) {
    scan_class = rb_define_class_under(hashmere_module, "Scan", rb_cObject);
    rb_undef_alloc_func(scan_class);
    rb_define_method(scan_class, "next", scan_next, 0);
    rb_define_method(scan_class, "cursor", scan_cursor, 0);
    rb_define_method(scan_class, "close", scan_close, 0);
    rb_define_private_method(store_class, "_scan", store_scan, 3);
    rb_define_method(store_class, "random", store_random, 0);
    rb_define_private_method(store_class, "_random_item", store_random_item, 0);
    rb_define_private_method(store_class, "_parallel_scan", store_parallel_scan, 2);
    rb_define_method(store_class, "cursor_of", store_cursor_of, 1);
}
