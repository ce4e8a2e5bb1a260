/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared atomics. */
#include "waiting.h"

static VALUE set_class, atomic_class;

static void set_free(void *set) {
    hm_atomics_close(set);
}
static const rb_data_type_t set_type = {
    .wrap_struct_name = "Hashmere::Atomics",
    .function = {.dfree = set_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static void atomic_free(void *atomic) {
    hm_atomic_close(atomic);
}
static const rb_data_type_t atomic_type = {
    .wrap_struct_name = "Hashmere::Atomic",
    .function = {.dfree = atomic_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static hm_atomic *atomic_of(VALUE self) {
    return rb_check_typeddata(self, &atomic_type);
}

static store *store_of(VALUE in) {
    rb_check_typeddata(in, &store_type);
    return open_store(in);
}

/* open(store, name) */
static VALUE set_open(VALUE class, VALUE in, VALUE name) {
    store *s = store_of(in);
    VALUE self = TypedData_Wrap_Struct(set_class, &set_type, NULL);
    hm_atomics *set;
    hm_error error;
    (void)class;
    checked(hm_atomics_open(s->hm, StringValueCStr(name), &set, &error), &error);
    RTYPEDDATA_DATA(self) = set;
    RB_GC_GUARD(name);
    return self;
}

/* remove(store, name) */
static VALUE set_remove(VALUE class, VALUE in, VALUE name) {
    store *s = store_of(in);
    hm_error error;
    (void)class;
    int result = checked(hm_atomics_remove(s->hm, StringValueCStr(name), &error), &error);
    RB_GC_GUARD(name);
    return RBOOL(result == HM_OK);
}

static VALUE set_atomic(VALUE self, VALUE name) {
    VALUE object = TypedData_Wrap_Struct(atomic_class, &atomic_type, NULL);
    hm_atomic *atomic;
    hm_error error;
    checked(hm_atomic_open(rb_check_typeddata(self, &set_type), StringValueCStr(name), &atomic, &error), &error);
    RTYPEDDATA_DATA(object) = atomic;
    RB_GC_GUARD(name);
    return object;
}

static VALUE atomic_load(VALUE self) {
    uint64_t value;
    hm_error error;
    checked(hm_atomic_load(atomic_of(self), &value, &error), &error);
    return ULL2NUM(value);
}

static VALUE atomic_store(VALUE self, VALUE value) {
    hm_error error;
    checked(hm_atomic_store(atomic_of(self), to_u64(value, "value"), &error), &error);
    return Qnil;
}

typedef int change_call(hm_atomic *, uint64_t, uint64_t *, hm_error *);

static VALUE changed(VALUE self, uint64_t value, change_call *change) {
    uint64_t before;
    hm_error error;
    checked(change(atomic_of(self), value, &before, &error), &error);
    return ULL2NUM(before);
}
static VALUE atomic_swap(VALUE self, VALUE value) {
    return changed(self, to_u64(value, "value"), hm_atomic_swap);
}
static VALUE atomic_fetch_and(VALUE self, VALUE value) {
    return changed(self, to_u64(value, "value"), hm_atomic_fetch_and);
}
static VALUE atomic_fetch_or(VALUE self, VALUE value) {
    return changed(self, to_u64(value, "value"), hm_atomic_fetch_or);
}
static VALUE atomic_fetch_xor(VALUE self, VALUE value) {
    return changed(self, to_u64(value, "value"), hm_atomic_fetch_xor);
}

/* fetch_add(by = 1): a negative one too. */
static VALUE atomic_fetch_add(int argc, VALUE *argv, VALUE self) {
    VALUE by;
    rb_scan_args(argc, argv, "01", &by);
    if (NIL_P(by))
        return changed(self, 1, hm_atomic_fetch_add);
    int is_negative = RB_INTEGER_TYPE_P(by) && RTEST(rb_funcall(by, rb_intern("negative?"), 0));
    return changed(self, is_negative ? (uint64_t)NUM2LL(by) : to_u64(by, "by"), hm_atomic_fetch_add);
}

static VALUE atomic_compare_exchange(VALUE self, VALUE current, VALUE value) {
    uint64_t before;
    hm_error error;
    checked(hm_atomic_compare_exchange(atomic_of(self), to_u64(current, "current"), to_u64(value, "value"), &before, &error), &error);
    return ULL2NUM(before);
}

typedef struct wait {
    slice slice;
    hm_atomic *atomic;
    uint64_t seen, value;
} wait;

static int wait_for_change(slice *s) {
    wait *w = (wait *)s;
    return hm_atomic_wait(w->atomic, w->seen, s->ms, &w->value, &s->error);
}

/* _wait(seen, milliseconds): the value, or nil. */
static VALUE atomic_wait(VALUE self, VALUE seen, VALUE ms) {
    wait w = {.slice = {.run = wait_for_change, .left_ms = to_u64(ms, "timeout")}};
    w.atomic = atomic_of(self);
    w.seen = to_u64(seen, "seen");
    int result = checked(in_slices(&w.slice, HM_TIMEOUT), &w.slice.error);
    RB_GC_GUARD(self);
    return result == HM_OK ? ULL2NUM(w.value) : Qnil;
}

void init_atomic(void) {
    set_class = sealed_class(hashmere_module, "Atomics");
    rb_define_singleton_method(set_class, "open", set_open, 2);
    rb_define_singleton_method(set_class, "remove", set_remove, 2);
    rb_define_method(set_class, "atomic", set_atomic, 1);
    atomic_class = sealed_class(hashmere_module, "Atomic");
    rb_define_method(atomic_class, "load", atomic_load, 0);
    rb_define_method(atomic_class, "store", atomic_store, 1);
    rb_define_method(atomic_class, "swap", atomic_swap, 1);
    rb_define_method(atomic_class, "fetch_add", atomic_fetch_add, -1);
    rb_define_method(atomic_class, "fetch_and", atomic_fetch_and, 1);
    rb_define_method(atomic_class, "fetch_or", atomic_fetch_or, 1);
    rb_define_method(atomic_class, "fetch_xor", atomic_fetch_xor, 1);
    rb_define_method(atomic_class, "compare_exchange", atomic_compare_exchange, 2);
    rb_define_private_method(atomic_class, "_wait", atomic_wait, 2);
}
