/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keys with a hash of the caller's. */
#include "binding.h"

/* Sets up a call on a key with its hash, and on a value unless it is Qundef. */
static store *prepare_hashed(VALUE self, call *c, VALUE *key, VALUE hash, VALUE *value) {
    c->number = to_u64(hash, "the hash");
    return prepare(self, c, key, value);
}

static int run_item(call *c) {
    return hm_hashed_get_item(c->hm, c->key.data, c->key.len, c->number, c->output, c->room, (hm_metadata *)c->input, &c->error);
}

/* _hashed_item(key, hash): the parts of a record, or nil. */
static VALUE store_hashed_item(VALUE self, VALUE key, VALUE hash) {
    call c;
    VALUE none = Qundef;
    c.run = run_item;
    prepare_hashed(self, &c, &key, hash, &none);
    VALUE parts = item_of(self, &c);
    RB_GC_GUARD(key);
    return parts;
}

static int run_exists(call *c) {
    return hm_hashed_contains(c->hm, c->key.data, c->key.len, c->number, &c->error);
}
static int run_delete(call *c) {
    return hm_hashed_delete(c->hm, c->key.data, c->key.len, c->number, &c->error);
}
static int run_uid(call *c) {
    return hm_hashed_uid_of(c->hm, c->key.data, c->key.len, c->number, c->output, &c->error);
}
static int run_set(call *c) {
    return hm_hashed_set(c->hm, c->key.data, c->key.len, c->number, c->value.data, c->value.len, &c->attributes, &c->stored,
                         &c->error);
}
static int run_add(call *c) {
    return hm_hashed_add(c->hm, c->key.data, c->key.len, c->number, c->value.data, c->value.len, &c->attributes, &c->stored,
                         &c->error);
}

static int plain(VALUE self, VALUE key, VALUE hash, int (*run)(call *), void *output) {
    call c;
    VALUE none = Qundef;
    c.run = run;
    c.output = output;
    store *s = prepare_hashed(self, &c, &key, hash, &none);
    int result = perform(s, &c, 0);
    RB_GC_GUARD(key);
    return result;
}

static VALUE store_hashed_key(VALUE self, VALUE key, VALUE hash) {
    return RBOOL(plain(self, key, hash, run_exists, NULL) == HM_OK);
}
static VALUE store_hashed_remove(VALUE self, VALUE key, VALUE hash) {
    return RBOOL(plain(self, key, hash, run_delete, NULL) == HM_OK);
}
static VALUE store_hashed_uid(VALUE self, VALUE key, VALUE hash) {
    uint32_t uid;
    return plain(self, key, hash, run_uid, &uid) == HM_OK ? UINT2NUM(uid) : Qnil;
}

static VALUE put(VALUE self, VALUE key, VALUE hash, VALUE value, hm_attributes with, int (*run)(call *)) {
    call c;
    c.run = run;
    c.attributes = with;
    store *s = prepare_hashed(self, &c, &key, hash, &value);
    int result = perform(s, &c, c.value.len >= LONG_VALUE);
    RB_GC_GUARD(key);
    RB_GC_GUARD(value);
    return result == HM_OK ? ULL2NUM(c.stored.version) : Qnil;
}

/* _hashed_set(key, hash, value, flags, expiry, ms) */
static VALUE store_hashed_set(VALUE self, VALUE key, VALUE hash, VALUE value, VALUE flags, VALUE expiry, VALUE ms) {
    return put(self, key, hash, value, to_attributes(flags, expiry, ms), run_set);
}
static VALUE store_hashed_add(VALUE self, VALUE key, VALUE hash, VALUE value, VALUE flags, VALUE expiry, VALUE ms) {
    return put(self, key, hash, value, to_attributes(flags, expiry, ms), run_add);
}

/* A counter: how it is created, and what it is afterwards. */
typedef struct counting {
    uint64_t hash, now;
    hm_counter create;
    int creates;
} counting;

static int run_incr(call *c) {
    counting *n = c->output;
    return hm_hashed_incr(c->hm, c->key.data, c->key.len, n->hash, c->number, n->creates ? &n->create : NULL, &n->now, &c->error);
}

/* _hashed_incr(key, hash, by, initial or nil, flags, expiry, ms) */
static VALUE store_hashed_incr(VALUE self, VALUE key, VALUE hash, VALUE by, VALUE initial, VALUE flags, VALUE expiry, VALUE ms) {
    call c;
    counting n = {.creates = !NIL_P(initial)};
    VALUE none = Qundef;
    if (n.creates)
        n.create = (hm_counter){to_u64(initial, "initial"), to_attributes(flags, expiry, ms)};
    c.run = run_incr;
    c.output = &n;
    store *s = prepare_hashed(self, &c, &key, hash, &none);
    n.hash = c.number;
    c.number = to_u64(by, "the step");
    int result = perform(s, &c, 0);
    RB_GC_GUARD(key);
    return result == HM_OK ? ULL2NUM(n.now) : Qnil;
}

/* What a visitor sees and answers. The library asks it while it is on the stack: no exception may pass, so the block runs protected; and if
 * it closes the store, that goes when the call has ended. */
typedef struct visit {
    store *store;
    const hm_pair *old;
    VALUE parts, value;
    int state;
    /* What `with` says; the rest stays as it is. */
    int has_flags, has_expiry;
    hm_attributes with;
} visit;

static VALUE old_value(const visit *v) {
    return v->old ? new_string(v->store, v->old->value.data, v->old->value.len) : Qnil;
}

/* A visit is over: raises what the block, or the library, raised. */
static void end_visit(visit *v, int result, const hm_error *error) {
    leave_store(v->store);
    if (v->state)
        rb_jump_tag(v->state);
    if (result > 0)
        raise_error(error);
}

static VALUE show(VALUE argument) {
    visit *v = (visit *)argument;
    if (v->old)
        v->parts = from_meta(&v->old->metadata, old_value(v));
    return rb_yield(old_value(v));
}

static void shown(void *user, const hm_pair *old, hm_change *change) {
    visit *v = user;
    v->old = old;
    v->parts = Qnil;
    v->value = rb_protect(show, (VALUE)v, &v->state);
    change->action = HM_KEEP;
}

/* _show(key) { |old| }: [parts of the record or nil, what the block returned]. Until it returns this thread cannot write the key; nothing is
 * written here, for that may have to wait, without the GVL. */
static VALUE store_show(VALUE self, VALUE key) {
    visit v = {.store = open_store(self), .parts = Qnil, .value = Qnil};
    hm_bytes k = frozen_bytes_of(&key);
    hm_error error;
    enter_store(v.store);
    int result = hm_update_with(v.store->hm, k.data, k.len, shown, &v, NULL, &error);
    end_visit(&v, result, &error);
    RB_GC_GUARD(key);
    VALUE answer = rb_assoc_new(v.parts, v.value);
    RB_GC_GUARD(v.parts);
    RB_GC_GUARD(v.value);
    return answer;
}

static VALUE ask(VALUE argument) {
    visit *v = (visit *)argument;
    VALUE value = rb_yield(old_value(v));
    if (NIL_P(value) || value == rb_const_get(hashmere_module, rb_intern("REMOVE")))
        return value;
    StringValue(value);
    return rb_str_new_frozen(value);
}

static void visitor(void *user, const hm_pair *old, hm_change *change) {
    visit *v = user;
    v->old = old;
    v->value = Qnil;
    VALUE answer = rb_protect(ask, (VALUE)v, &v->state);
    if (v->state || NIL_P(answer))
        return; /* left as it is */
    v->value = answer;
    if (!RB_TYPE_P(answer, T_STRING)) {
        change->action = HM_REMOVE;
        return;
    }
    change->action = HM_SET;
    change->value = (hm_bytes){RSTRING_PTR(answer), (size_t)RSTRING_LEN(answer)};
    if (!v->has_flags && !v->has_expiry)
        return;
    change->action = HM_SET_WITH;
    change->attributes = v->with;
    if (!v->has_flags && old)
        change->attributes.flags = old->metadata.flags;
    if (!v->has_expiry && old && old->metadata.expires_at_ms) {
        change->attributes.expiry = HM_AT;
        change->attributes.expiry_ms = (int64_t)old->metadata.expires_at_ms;
    }
}

/* _update_first(key, flags, expiry, ms) { |old| }: writers of the key let this one go first when it was beaten often enough. What was
 * stored; nil: removed; true: left as it is; false: a lock does not come, which is waited for elsewhere, without the GVL. */
static VALUE store_update_first(VALUE self, VALUE key, VALUE flags, VALUE expiry, VALUE ms) {
    visit v = {.store = open_store(self), .parts = Qnil, .value = Qnil, .has_flags = !NIL_P(flags), .has_expiry = !NIL_P(expiry)};
    v.with = to_attributes(v.has_flags ? flags : INT2FIX(0), v.has_expiry ? expiry : INT2FIX(HM_NEVER), ms);
    hm_bytes k = frozen_bytes_of(&key);
    hm_error error;
    enter_store(v.store);
    int result = hm_update_with(v.store->hm, k.data, k.len, visitor, &v, NULL, &error);
    end_visit(&v, result == HM_E_BUSY ? HM_OK : result, &error);
    RB_GC_GUARD(key);
    RB_GC_GUARD(v.value);
    if (result == HM_E_BUSY)
        return Qfalse;
    return result == HM_UNCHANGED ? Qtrue : result == HM_REMOVED ? Qnil : v.value;
}

/* _hashed_update(key, hash) { |old| }: true if something was stored or removed. */
static VALUE store_hashed_update(VALUE self, VALUE key, VALUE hash) {
    visit v = {.store = open_store(self), .value = Qnil};
    uint64_t number = to_u64(hash, "the hash");
    hm_bytes k = frozen_bytes_of(&key);
    hm_error error;
    enter_store(v.store);
    int result = hm_hashed_update_with(v.store->hm, k.data, k.len, number, visitor, &v, NULL, &error);
    end_visit(&v, result, &error);
    RB_GC_GUARD(key);
    RB_GC_GUARD(v.value);
    return RBOOL(result != HM_UNCHANGED);
}

void init_hashed(void) {
    rb_define_private_method(store_class, "_hashed_item", store_hashed_item, 2);
    rb_define_private_method(store_class, "_hashed_key?", store_hashed_key, 2);
    rb_define_private_method(store_class, "_hashed_remove", store_hashed_remove, 2);
    rb_define_private_method(store_class, "_hashed_uid", store_hashed_uid, 2);
    rb_define_private_method(store_class, "_hashed_set", store_hashed_set, 6);
    rb_define_private_method(store_class, "_hashed_add", store_hashed_add, 6);
    rb_define_private_method(store_class, "_hashed_incr", store_hashed_incr, 7);
    rb_define_private_method(store_class, "_hashed_update", store_hashed_update, 2);
    rb_define_private_method(store_class, "_show", store_show, 1);
    rb_define_private_method(store_class, "_update_first", store_update_first, 4);
}
