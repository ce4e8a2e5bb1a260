/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hashmere::Transaction, call by call: the loop around it is in lib/hashmere/transaction.rb. */
#include "transaction.h"

typedef struct transaction {
    hm_transaction *hm; /* NULL: its block has ended. */
    VALUE store;
    int committing; /* A call without the GVL: other threads must not touch it. */
} transaction;

static VALUE transaction_class;

static void transaction_free(void *data) {
    hm_transaction_close(((transaction *)data)->hm);
    xfree(data);
}
static size_t transaction_size(const void *data) {
    return sizeof(transaction);
}
static void transaction_mark(void *data) {
    rb_gc_mark(((transaction *)data)->store);
}
static const rb_data_type_t transaction_type = {
    .wrap_struct_name = "Hashmere::Transaction",
    .function = {.dmark = transaction_mark, .dfree = transaction_free, .dsize = transaction_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static transaction *open_transaction(VALUE self) {
    transaction *t = RTYPEDDATA_DATA(self);
    if (!t->hm)
        raise_closed("the transaction");
    if (t->committing)
        rb_raise(rb_eThreadError, "the transaction is being committed by another thread");
    return t;
}

/* The bytes of a key that can be nothing but bytes. */
static hm_bytes bytes_of_key(VALUE *key) {
    *key = string_key_of(*key);
    return bytes_of(key);
}

static int check(int result, const hm_error *error) {
    if (result > 0)
        raise_error(error);
    return result;
}

/* _begin: a transaction that has read and written nothing. */
static VALUE store_begin(VALUE self) {
    transaction *t;
    VALUE object = TypedData_Make_Struct(transaction_class, transaction, &transaction_type, t);
    hm_error error;
    t->store = self;
    check(hm_transaction_open(open_store(self)->hm, &t->hm, &error), &error);
    return object;
}

static VALUE transaction_get(VALUE self, VALUE key) {
    transaction *t = open_transaction(self);
    hm_bytes k = bytes_of_key(&key);
    VALUE value = rb_str_new(NULL, 128);
    for (;;) {
        size_t len;
        hm_error error;
        int result = check(hm_transaction_get(t->hm, k.data, k.len, RSTRING_PTR(value), (size_t)RSTRING_LEN(value), &len, &error), &error);
        if (result == HM_ABSENT)
            return Qnil;
        rb_str_resize(value, (long)len);
        if (result == HM_OK) {
            RB_GC_GUARD(key);
            return tag((store *)RTYPEDDATA_DATA(t->store), value);
        }
    }
}

static VALUE transaction_has(VALUE self, VALUE key) {
    transaction *t = open_transaction(self);
    hm_bytes k = bytes_of_key(&key);
    hm_error error;
    VALUE has = RBOOL(check(hm_transaction_contains(t->hm, k.data, k.len, &error), &error) == HM_OK);
    RB_GC_GUARD(key);
    return has;
}

/* _set(key, value, flags, expiry, ms) */
static VALUE transaction_set(VALUE self, VALUE key, VALUE value, VALUE flags, VALUE expiry, VALUE ms) {
    hm_attributes with = to_attributes(flags, expiry, ms);
    hm_error error;
    StringValue(value);
    hm_bytes k = bytes_of_key(&key);
    transaction *t = open_transaction(self);
    check(hm_transaction_set(t->hm, k.data, k.len, RSTRING_PTR(value), (size_t)RSTRING_LEN(value), &with, &error), &error);
    RB_GC_GUARD(key);
    RB_GC_GUARD(value);
    return self;
}

static VALUE transaction_delete(VALUE self, VALUE key) {
    hm_bytes k = bytes_of_key(&key);
    hm_error error;
    transaction *t = open_transaction(self);
    check(hm_transaction_delete(t->hm, k.data, k.len, &error), &error);
    RB_GC_GUARD(key);
    return self;
}

/* _incr(key, by, initial or nil, flags, expiry, ms) */
static VALUE transaction_incr(VALUE self, VALUE key, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    int64_t step = to_i64(by, "the step");
    hm_counter create;
    if (!NIL_P(initial))
        create = (hm_counter){to_u64(initial, "initial"), to_attributes(flags, expiry, ms)};
    hm_bytes k = bytes_of_key(&key);
    uint64_t now;
    hm_error error;
    transaction *t = open_transaction(self);
    int result = check(hm_transaction_incr_by(t->hm, k.data, k.len, step, NIL_P(initial) ? NULL : &create, &now, &error), &error);
    RB_GC_GUARD(key);
    return result == HM_OK ? ULL2NUM(now) : Qnil;
}

/* _incr_signed(key, by, initial or nil, flags, expiry, ms) */
static VALUE transaction_incr_signed(VALUE self, VALUE key, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    int64_t step = to_i64(by, "the step");
    hm_signed_counter create;
    if (!NIL_P(initial))
        create = (hm_signed_counter){to_i64(initial, "initial"), to_attributes(flags, expiry, ms)};
    hm_bytes k = bytes_of_key(&key);
    int64_t now;
    hm_error error;
    transaction *t = open_transaction(self);
    int result = check(hm_transaction_incr_signed(t->hm, k.data, k.len, step, NIL_P(initial) ? NULL : &create, &now, &error), &error);
    RB_GC_GUARD(key);
    return result == HM_OK ? LL2NUM(now) : Qnil;
}

/* _incr_float(key, by, initial or nil, flags, expiry, ms) */
static VALUE transaction_incr_float(VALUE self, VALUE key, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    double step = NUM2DBL(by);
    hm_float_counter create;
    if (!NIL_P(initial))
        create = (hm_float_counter){NUM2DBL(initial), to_attributes(flags, expiry, ms)};
    hm_bytes k = bytes_of_key(&key);
    double now;
    hm_error error;
    transaction *t = open_transaction(self);
    int result = check(hm_transaction_incr_float(t->hm, k.data, k.len, step, NIL_P(initial) ? NULL : &create, &now, &error), &error);
    RB_GC_GUARD(key);
    return result == HM_OK ? DBL2NUM(now) : Qnil;
}

#define JOIN(NAME)                                                                                                               \
    static VALUE transaction_##NAME(VALUE self, VALUE key, VALUE more) {                                                         \
        StringValue(more);                                                                                                       \
        hm_bytes k = bytes_of_key(&key);                                                                                             \
        hm_error error;                                                                                                          \
        transaction *t = open_transaction(self);                                                                                 \
        int result = hm_transaction_##NAME(t->hm, k.data, k.len, RSTRING_PTR(more), (size_t)RSTRING_LEN(more), &error);          \
        VALUE is = RBOOL(check(result, &error) == HM_OK);                                                                        \
        RB_GC_GUARD(key);                                                                                                        \
        RB_GC_GUARD(more);                                                                                                       \
        return is;                                                                                                               \
    }
JOIN(append)
JOIN(prepend)

/* _touch(key, expiry, ms) */
static VALUE transaction_touch(VALUE self, VALUE key, VALUE expiry, VALUE ms) {
    int kind = NUM2INT(expiry);
    int64_t time = NUM2LL(ms);
    hm_bytes k = bytes_of_key(&key);
    hm_error error;
    transaction *t = open_transaction(self);
    VALUE is = RBOOL(check(hm_transaction_touch(t->hm, k.data, k.len, kind, time, &error), &error) == HM_OK);
    RB_GC_GUARD(key);
    return is;
}

static int run_commit(call *c) {
    return hm_transaction_commit(c->output, &c->error);
}
static int run_rollback(call *c) {
    return hm_transaction_rollback(c->output, &c->error);
}

typedef struct ending {
    transaction *transaction;
    call call;
} ending;

static VALUE perform_end(VALUE argument) {
    ending *e = (ending *)argument;
    store *s = open_store(e->transaction->store);
    e->call.hm = s->hm;
    return RBOOL(perform(s, &e->call, 1) == HM_OK);
}
static VALUE ended(VALUE argument) {
    ((ending *)argument)->transaction->committing = 0;
    return Qnil;
}

/* Whether it was done; false: others have changed what it read, and it begins again. */
static VALUE finish(VALUE self, int (*run)(call *)) {
    ending e = {.transaction = open_transaction(self)};
    e.call.run = run;
    e.call.output = e.transaction->hm;
    e.transaction->committing = 1;
    VALUE done = rb_ensure(perform_end, (VALUE)&e, ended, (VALUE)&e);
    RB_GC_GUARD(self);
    return done;
}
static VALUE transaction_commit(VALUE self) {
    return finish(self, run_commit);
}
static VALUE transaction_rollback(VALUE self) {
    return finish(self, run_rollback);
}

/* Behind its block it is of no use any more. */
static VALUE transaction_close(VALUE self) {
    transaction *t = RTYPEDDATA_DATA(self);
    if (!t->committing) {
        hm_transaction_close(t->hm);
        t->hm = NULL;
    }
    return Qnil;
}

void init_transaction(void) {
    transaction_class = sealed_class(hashmere_module, "Transaction");
    rb_define_private_method(store_class, "_begin", store_begin, 0);
    rb_define_method(transaction_class, "[]", transaction_get, 1);
    rb_define_method(transaction_class, "key?", transaction_has, 1);
    rb_define_method(transaction_class, "delete", transaction_delete, 1);
    rb_define_method(transaction_class, "append", transaction_append, 2);
    rb_define_method(transaction_class, "prepend", transaction_prepend, 2);
    rb_define_private_method(transaction_class, "_set", transaction_set, 5);
    rb_define_private_method(transaction_class, "_incr", transaction_incr, 6);
    rb_define_private_method(transaction_class, "_incr_signed", transaction_incr_signed, 6);
    rb_define_private_method(transaction_class, "_incr_float", transaction_incr_float, 6);
    rb_define_private_method(transaction_class, "_touch", transaction_touch, 3);
    rb_define_private_method(transaction_class, "_commit", transaction_commit, 0);
    rb_define_private_method(transaction_class, "_rollback", transaction_rollback, 0);
    rb_define_private_method(transaction_class, "_close", transaction_close, 0);
    init_write_batch();
}
