/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Readers-writer locks and semaphores. */
#include "waiting.h"

/* A lock or a permit that is held; the other is NULL. */
typedef struct guard {
    hm_rwlock_guard *lock;
    hm_semaphore_guard *permit;
} guard;

static void guard_let_go(guard *g) {
    hm_rwlock_unlock(g->lock);
    hm_semaphore_release(g->permit);
    *g = (guard){NULL, NULL};
}
static void guard_free(void *data) {
    guard_let_go(data);
    xfree(data);
}
static const rb_data_type_t guard_type = {
    .wrap_struct_name = "Hashmere::LockGuard",
    .function = {.dfree = guard_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static VALUE guard_class;

static VALUE guard_release(VALUE self) {
    guard_let_go(rb_check_typeddata(self, &guard_type));
    return Qnil;
}

/* A wait for one of them, in slices. */
typedef struct attempt {
    slice slice;
    store *store;
    hm_bytes key;
    uint64_t permits;
    hm_rwlock_waiter *waiter;
    guard *guard;
    uint32_t abandoned;
} attempt;

static int wait_for_lock(slice *s) {
    attempt *a = (attempt *)s;
    return hm_rwlock_waiter_wait(a->waiter, s->ms, &a->guard->lock, &a->abandoned, &s->error);
}
static int wait_for_permit(slice *s) {
    attempt *a = (attempt *)s;
    return hm_semaphore_acquire(a->store->hm, a->key.data, a->key.len, a->permits, s->ms, &a->guard->permit, &a->abandoned, &s->error);
}

static VALUE run_attempt(VALUE argument) {
    return INT2FIX(in_slices(&((attempt *)argument)->slice, HM_TIMEOUT));
}
static VALUE end_attempt(VALUE argument) {
    attempt *a = (attempt *)argument;
    hm_rwlock_waiter_close(a->waiter);
    leave_store(a->store);
    return Qnil;
}

/* [guard, whether it was abandoned], nil: the time is up. */
static VALUE attempted(attempt *a) {
    VALUE object = TypedData_Make_Struct(guard_class, guard, &guard_type, a->guard);
    enter_store(a->store);
    int result = FIX2INT(rb_ensure(run_attempt, (VALUE)a, end_attempt, (VALUE)a));
    result = checked(result, &a->slice.error);
    VALUE got = result == HM_OK ? rb_assoc_new(object, RBOOL(a->abandoned)) : Qnil;
    RB_GC_GUARD(object);
    return got;
}

/* _rwlock(key, whether to write, milliseconds) */
static VALUE store_rwlock(VALUE self, VALUE key, VALUE writes, VALUE ms) {
    attempt a = {.slice = {.run = wait_for_lock, .left_ms = to_u64(ms, "timeout")}};
    a.key = frozen_bytes_of(&key);
    a.store = open_store(self);
    hm_error error;
    checked(hm_rwlock_waiter_open(a.store->hm, a.key.data, a.key.len, RTEST(writes), &a.waiter, &error), &error);
    VALUE got = attempted(&a);
    RB_GC_GUARD(key);
    return got;
}

/* _semaphore(key, permits, milliseconds) */
static VALUE store_semaphore(VALUE self, VALUE key, VALUE permits, VALUE ms) {
    attempt a = {.slice = {.run = wait_for_permit, .left_ms = to_u64(ms, "timeout")}, .permits = to_u64(permits, "permits")};
    a.key = frozen_bytes_of(&key);
    a.store = open_store(self);
    VALUE got = attempted(&a);
    RB_GC_GUARD(key);
    return got;
}

static VALUE store_rwlock_writer(VALUE self, VALUE key) {
    hm_bytes k = frozen_bytes_of(&key);
    uint32_t pid = 0;
    hm_error error;
    int result = checked(hm_rwlock_writer(open_store(self)->hm, k.data, k.len, &pid, &error), &error);
    RB_GC_GUARD(key);
    return result == HM_OK ? UINT2NUM(pid) : Qnil;
}

typedef int list_call(hm_store *, const void *, size_t, uint32_t *, size_t, size_t *, hm_error *);

static VALUE pids_of(VALUE self, VALUE key, list_call *ask) {
    hm_bytes k = frozen_bytes_of(&key);
    size_t room = 8, count;
    VALUE buffer = 0;
    for (;;) {
        uint32_t *pids = rb_alloc_tmp_buffer2(&buffer, (long)room, sizeof(uint32_t));
        hm_error error;
        int result = checked(ask(open_store(self)->hm, k.data, k.len, pids, room, &count, &error), &error);
        if (result == HM_OK) {
            VALUE all = rb_ary_new_capa((long)count);
            for (size_t i = 0; i < count; i++)
                rb_ary_push(all, UINT2NUM(pids[i]));
            rb_free_tmp_buffer(&buffer);
            RB_GC_GUARD(key);
            return all;
        }
        rb_free_tmp_buffer(&buffer);
        room = count;
    }
}
static VALUE store_rwlock_readers(VALUE self, VALUE key) {
    return pids_of(self, key, hm_rwlock_readers);
}
static VALUE store_semaphore_holders(VALUE self, VALUE key) {
    return pids_of(self, key, hm_semaphore_holders);
}

void init_locks(void) {
    guard_class = rb_define_class_under(hashmere_module, "LockGuard", rb_cObject);
    rb_undef_alloc_func(guard_class);
    rb_define_method(guard_class, "release", guard_release, 0);
    rb_define_private_method(store_class, "_rwlock", store_rwlock, 3);
    rb_define_private_method(store_class, "_semaphore", store_semaphore, 3);
    rb_define_method(store_class, "rwlock_writer", store_rwlock_writer, 1);
    rb_define_method(store_class, "rwlock_readers", store_rwlock_readers, 1);
    rb_define_method(store_class, "semaphore_holders", store_semaphore_holders, 1);
}
