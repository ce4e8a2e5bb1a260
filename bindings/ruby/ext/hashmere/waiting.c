/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Waiting for keys, for mutexes and at barriers. */
#include "waiting.h"
#include <ruby/thread.h>

/* How long a signal may have to wait. */
enum { SLICE_MS = 20 };

static void *run(void *argument) {
    slice *s = argument;
    s->ran = 1;
    s->result = s->run(s);
    return NULL;
}

int in_slices(slice *s, int again) {
    for (;;) {
        s->ms = s->left_ms < SLICE_MS ? s->left_ms : SLICE_MS;
        s->ran = 0;
        rb_thread_call_without_gvl2(run, s, NULL, NULL);
        if (s->ran && s->result != again)
            return s->result;
        if (s->ran)
            s->left_ms -= s->ms;
        rb_thread_check_ints();
        if (s->ran && s->left_ms == 0)
            return again;
    }
}

/* A call on a key of a store that another thread may close: the store is asked for again each time. */
typedef struct keyed {
    slice slice;
    hm_store *hm;
    hm_bytes key;
    uint64_t seen, now;
    hm_mutex_guard *guard;
    uint32_t abandoned;
} keyed;

static int wait_for_key(slice *s) {
    keyed *k = (keyed *)s;
    return hm_wait(k->hm, k->key.data, k->key.len, k->seen, s->ms, &k->now, &s->error);
}

static int wait_for_lock(slice *s) {
    keyed *k = (keyed *)s;
    return hm_mutex_lock(k->hm, k->key.data, k->key.len, s->ms, &k->guard, &k->abandoned, &s->error);
}

typedef struct held {
    store *store;
    keyed *keyed;
} held;

static VALUE run_keyed(VALUE argument) {
    held *h = (held *)argument;
    return INT2FIX(in_slices(&h->keyed->slice, HM_TIMEOUT));
}

static VALUE leave(VALUE argument) {
    leave_store(((held *)argument)->store);
    return Qnil;
}

static int held_wait(VALUE self, keyed *k) {
    held h = {open_store(self), k};
    k->hm = h.store->hm;
    enter_store(h.store);
    return checked(FIX2INT(rb_ensure(run_keyed, (VALUE)&h, leave, (VALUE)&h)), &k->slice.error);
}

static int keyed_wait(VALUE self, keyed *k, VALUE *key) {
    k->key = frozen_bytes_of(key);
    return held_wait(self, k);
}

/* What has become of a key that was waited for. */
static VALUE now_of(int result, uint64_t version) {
    return result == HM_REMOVED ? ID2SYM(rb_intern("removed")) : ULL2NUM(version);
}

/* _wait(key, version seen, milliseconds): its version then, :removed, nil: the time is up. */
static VALUE store_wait(VALUE self, VALUE key, VALUE seen, VALUE ms) {
    keyed k = {.slice = {.run = wait_for_key, .left_ms = to_u64(ms, "timeout")}, .seen = to_u64(seen, "version")};
    int result = keyed_wait(self, &k, &key);
    RB_GC_GUARD(key);
    return result == HM_TIMEOUT ? Qnil : now_of(result, k.now);
}

/* The same on several keys. */
typedef struct several {
    keyed keyed;
    hm_bytes *keys;
    uint64_t *seen;
    size_t count, which;
} several;

static int wait_for_any(slice *s) {
    several *all = (several *)s;
    return hm_wait_any(all->keyed.hm, all->keys, all->seen, all->count, s->ms, &all->which, &all->keyed.now, &s->error);
}

/* _wait_any(keys, versions seen, milliseconds): the index of the key that changed and its version then or :removed, nil: the time is up. */
static VALUE store_wait_any(VALUE self, VALUE keys, VALUE seen, VALUE ms) {
    several all = {.keyed = {.slice = {.run = wait_for_any, .left_ms = to_u64(ms, "timeout")}}};
    VALUE keys_room = 0, seen_room = 0, kept;
    all.keys = bytes_of_all(keys, &kept, &keys_room, 1);
    all.count = (size_t)RARRAY_LEN(kept);
    all.seen = rb_alloc_tmp_buffer2(&seen_room, (long)all.count + 1, sizeof(uint64_t));
    for (size_t i = 0; i < all.count; i++)
        all.seen[i] = to_u64(rb_ary_entry(seen, (long)i), "version");
    int result = held_wait(self, &all.keyed);
    rb_free_tmp_buffer(&keys_room);
    rb_free_tmp_buffer(&seen_room);
    RB_GC_GUARD(kept);
    return result == HM_TIMEOUT ? Qnil : rb_assoc_new(SIZET2NUM(all.which), now_of(result, all.keyed.now));
}

typedef struct guard {
    hm_mutex_guard *hm;
} guard;

static void guard_free(void *data) {
    hm_mutex_unlock(((guard *)data)->hm);
    xfree(data);
}
static const rb_data_type_t guard_type = {
    .wrap_struct_name = "Hashmere::MutexGuard",
    .function = {.dfree = guard_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static VALUE guard_class, barrier_class;

/* _lock(key, milliseconds): [guard, whether it was abandoned], nil: the time is up. */
static VALUE store_lock(VALUE self, VALUE key, VALUE ms) {
    keyed k = {.slice = {.run = wait_for_lock, .left_ms = to_u64(ms, "timeout")}};
    guard *made;
    VALUE object = TypedData_Make_Struct(guard_class, guard, &guard_type, made);
    int result = keyed_wait(self, &k, &key);
    made->hm = result == HM_OK ? k.guard : NULL;
    RB_GC_GUARD(key);
    return result == HM_OK ? rb_assoc_new(object, RBOOL(k.abandoned)) : Qnil;
}

static VALUE holder_of(VALUE self, VALUE key, int (*ask)(hm_store *, const void *, size_t, uint32_t *, hm_error *)) {
    hm_bytes k = frozen_bytes_of(&key);
    uint32_t pid = 0;
    hm_error error;
    int result = checked(ask(open_store(self)->hm, k.data, k.len, &pid, &error), &error);
    RB_GC_GUARD(key);
    return result == HM_OK ? UINT2NUM(pid) : Qnil;
}
static VALUE store_mutex_holder(VALUE self, VALUE key) {
    return holder_of(self, key, hm_mutex_holder);
}
static VALUE store_once_holder(VALUE self, VALUE key) {
    return holder_of(self, key, hm_once_holder);
}

static VALUE guard_release(VALUE self) {
    guard *l = rb_check_typeddata(self, &guard_type);
    hm_mutex_unlock(l->hm);
    l->hm = NULL;
    return Qnil;
}

typedef struct barrier {
    hm_barrier *hm;
    int busy;
} barrier;

static void barrier_free(void *data) {
    hm_barrier_leave(((barrier *)data)->hm);
    xfree(data);
}
static const rb_data_type_t barrier_type = {
    .wrap_struct_name = "Hashmere::Barrier",
    .function = {.dfree = barrier_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

/* Barrier._join(store, key, size) */
static VALUE barrier_join(VALUE class, VALUE in, VALUE key, VALUE size) {
    uint64_t number = to_u64(size, "size");
    rb_check_typeddata(in, &store_type);
    hm_bytes k = frozen_bytes_of(&key);
    barrier *made;
    VALUE object = TypedData_Make_Struct(class, barrier, &barrier_type, made);
    hm_error error;
    checked(hm_barrier_join(open_store(in)->hm, k.data, k.len, number, &made->hm, &error), &error);
    RB_GC_GUARD(key);
    return object;
}

typedef struct arrival {
    slice slice;
    barrier *barrier;
    uint64_t round, lost;
} arrival;

static int wait_for_others(slice *s) {
    arrival *a = (arrival *)s;
    return hm_barrier_wait(a->barrier->hm, s->ms, &a->round, &a->lost, &s->error);
}
static VALUE run_arrival(VALUE argument) {
    return INT2FIX(in_slices(&((arrival *)argument)->slice, HM_TIMEOUT));
}
static VALUE end_arrival(VALUE argument) {
    ((arrival *)argument)->barrier->busy = 0;
    return Qnil;
}

static barrier *idle_barrier(VALUE self) {
    barrier *b = rb_check_typeddata(self, &barrier_type);
    if (!b->hm)
        raise_closed("the barrier");
    if (b->busy)
        rb_raise(rb_eThreadError, "another thread waits at this barrier; each participant has to join");
    return b;
}

/* _wait(milliseconds): [round, lost], nil: a living participant has not arrived yet. */
static VALUE barrier_wait(VALUE self, VALUE ms) {
    arrival a = {.slice = {.run = wait_for_others, .left_ms = to_u64(ms, "timeout")}, .barrier = idle_barrier(self)};
    a.barrier->busy = 1;
    int result = checked(FIX2INT(rb_ensure(run_arrival, (VALUE)&a, end_arrival, (VALUE)&a)), &a.slice.error);
    return result == HM_OK ? rb_assoc_new(ULL2NUM(a.round), ULL2NUM(a.lost)) : Qnil;
}

static VALUE barrier_leave(VALUE self) {
    barrier *b = rb_check_typeddata(self, &barrier_type);
    if (b->hm)
        idle_barrier(self);
    hm_barrier_leave(b->hm);
    b->hm = NULL;
    return Qnil;
}

void init_waiting(void) {
    guard_class = rb_define_class_under(hashmere_module, "MutexGuard", rb_cObject);
    rb_undef_alloc_func(guard_class);
    rb_define_method(guard_class, "release", guard_release, 0);
    barrier_class = rb_define_class_under(hashmere_module, "Barrier", rb_cObject);
    rb_undef_alloc_func(barrier_class);
    rb_define_singleton_method(barrier_class, "_join", barrier_join, 3);
    rb_define_private_method(barrier_class, "_wait", barrier_wait, 1);
    rb_define_method(barrier_class, "leave", barrier_leave, 0);
    rb_define_private_method(store_class, "_wait", store_wait, 3);
    rb_define_private_method(store_class, "_wait_any", store_wait_any, 3);
    rb_define_private_method(store_class, "_lock", store_lock, 2);
    rb_define_method(store_class, "mutex_holder", store_mutex_holder, 1);
    rb_define_method(store_class, "once_holder", store_once_holder, 1);
}
