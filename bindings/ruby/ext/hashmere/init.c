/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The extension, file by file. It is not declared safe for Ractors: Ruby raises Ractor::UnsafeError outside of the main one. */
#include "binding.h"

VALUE hashmere_module;

VALUE sealed_class(VALUE outer, const char *name) {
    VALUE class = rb_define_class_under(outer, name, rb_cObject);
    rb_undef_alloc_func(class);
    return class;
}

RUBY_FUNC_EXPORTED void Init_hashmere_ext(void) {
    hashmere_module = rb_define_module("Hashmere");
    init_errors();
    init_store();
    init_key();
    init_hot();
    init_write();
    init_bulk();
    init_update();
    init_transaction();
    init_scan();
    init_store_wide();
    init_dump();
    init_view();
    init_endpoint();
    init_queue();
    init_locks();
    init_atomic();
    init_waiting();
    init_log();
    init_feed();
    uint32_t version = hm_version();
    rb_define_const(hashmere_module, "LIBRARY_VERSION",
                    rb_sprintf("%u.%u.%u", version / 10000, version / 100 % 100, version % 100));
}
