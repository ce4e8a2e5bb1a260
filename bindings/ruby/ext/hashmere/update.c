/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Changing a value by a block. */
#include "binding.h"

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
    hm_key k = frozen_key_of(&key);
    hm_error error;
    enter_store(v.store);
    int result = hm_update_with_at(v.store->hm, &k, shown, &v, NULL, &error);
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
    hm_key k = frozen_key_of(&key);
    hm_error error;
    enter_store(v.store);
    int result = hm_update_with_at(v.store->hm, &k, visitor, &v, NULL, &error);
    end_visit(&v, result == HM_E_BUSY ? HM_OK : result, &error);
    RB_GC_GUARD(key);
    RB_GC_GUARD(v.value);
    if (result == HM_E_BUSY)
        return Qfalse;
    return result == HM_UNCHANGED ? Qtrue : result == HM_REMOVED ? Qnil : v.value;
}

void init_update(void) {
    rb_define_private_method(store_class, "_show", store_show, 1);
    rb_define_private_method(store_class, "_update_first", store_update_first, 4);
}
