/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ruby's objects to those of the library and back; wrong ones raise TypeError, RangeError or ArgumentError. */
#include "binding.h"

VALUE string_of(VALUE key) {
    if (RB_SYMBOL_P(key))
        return rb_sym2str(key);
    return rb_string_value(&key);
}

uint64_t to_u64(VALUE number, const char *what) {
    if (!RB_INTEGER_TYPE_P(number))
        rb_raise(rb_eTypeError, "%s has to be an Integer, not %" PRIsVALUE, what, rb_obj_class(number));
    if (RB_FIXNUM_P(number) ? FIX2LONG(number) < 0 : RBIGNUM_NEGATIVE_P(number))
        rb_raise(rb_eRangeError, "%s must not be negative: %" PRIsVALUE, what, number);
    if (!RB_FIXNUM_P(number) && rb_absint_size(number, NULL) > sizeof(uint64_t))
        rb_raise(rb_eRangeError, "%s has to be below 2**64: %" PRIsVALUE, what, number);
    return NUM2ULL(number);
}

int64_t to_i64(VALUE number, const char *what) {
    if (!RB_INTEGER_TYPE_P(number))
        rb_raise(rb_eTypeError, "%s has to be an Integer, not %" PRIsVALUE, what, rb_obj_class(number));
    return NUM2LL(number);
}

uint32_t to_u32(VALUE number, const char *what) {
    uint64_t wide = to_u64(number, what);
    if (wide > UINT32_MAX)
        rb_raise(rb_eRangeError, "%s has to be below 2**32: %" PRIsVALUE, what, number);
    return (uint32_t)wide;
}

hm_attributes to_attributes(VALUE flags, VALUE expiry, VALUE ms) {
    return (hm_attributes){.flags = to_u32(flags, "flags"), .expiry = NUM2INT(expiry), .expiry_ms = NUM2LL(ms)};
}

VALUE from_meta(const hm_metadata *meta, VALUE value) {
    VALUE parts[] = {value, ULL2NUM(meta->version), UINT2NUM(meta->uid), UINT2NUM(meta->flags),
                     ULL2NUM(meta->expires_at_ms), ULL2NUM(meta->value_len)};
    return rb_ary_new_from_values(6, parts);
}
