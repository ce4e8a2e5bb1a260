/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hashmere::Store as an object: open, close, path. */
#include "binding.h"
#include <unistd.h>

/* How long the library itself waits for a lock with the GVL held; call.c waits the rest. */
enum { SLICE_MS = 5 };

VALUE store_class;

static void store_free(void *data) {
    store *s = data;
    hm_close(s->hm, NULL);
    hm_close(s->closing, NULL);
    xfree(s);
}

static size_t store_size(const void *data) {
    return sizeof(store);
}

const rb_data_type_t store_type = {
    .wrap_struct_name = "Hashmere::Store",
    .function = {.dfree = store_free, .dsize = store_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE store_allocate(VALUE class) {
    store *s;
    return TypedData_Make_Struct(class, store, &store_type, s);
}

static int run_open(call *c) {
    return hm_open(c->key.data, c->input, c->output, &c->error);
}

/* _open(name, encoding, timeout_ms, [flags, max_bytes, expected_items, sync_every_ms, segment_bytes, leaf_bytes, fixed_key_len,
 * fixed_value_len, permissions, feed, origin]) */
static VALUE store_open(VALUE self, VALUE name, VALUE encoding, VALUE timeout, VALUE numbers) {
    store *s = RTYPEDDATA_DATA(self);
    if (s->hm)
        rb_raise(rb_eArgError, "the store is open already");
    hm_options options = {.size = sizeof options};
    options.busy_timeout_ms = SLICE_MS;
    options.flags = to_u64(rb_ary_entry(numbers, 0), "flags");
    options.max_bytes = to_u64(rb_ary_entry(numbers, 1), "max_bytes");
    options.expected_items = to_u64(rb_ary_entry(numbers, 2), "expected_items");
    options.sync_every_ms = to_u64(rb_ary_entry(numbers, 3), "sync_every");
    options.segment_bytes = to_u32(rb_ary_entry(numbers, 4), "segment_bytes");
    options.leaf_bytes = to_u32(rb_ary_entry(numbers, 5), "leaf_bytes");
    options.fixed_key_len = to_u32(rb_ary_entry(numbers, 6), "fixed_key_len");
    options.fixed_value_len = to_u32(rb_ary_entry(numbers, 7), "fixed_value_len");
    options.permissions = to_u32(rb_ary_entry(numbers, 8), "permissions");
    options.feed = to_u64(rb_ary_entry(numbers, 9), "feed");
    options.origin = to_u32(rb_ary_entry(numbers, 10), "origin");
    s->timeout_ms = to_u64(timeout, "busy_timeout");
    s->encoding = rb_to_encoding_index(encoding);
    if (s->encoding < 0)
        rb_raise(rb_eArgError, "unknown encoding: %" PRIsVALUE, encoding);
    StringValueCStr(name); /* refuses a NUL */
    name = rb_str_new_frozen(name);

    hm_store *opened = NULL;
    call c;
    c.run = run_open;
    c.hm = NULL;
    c.key.data = RSTRING_PTR(name);
    c.input = &options;
    c.output = &opened;
    perform(s, &c, 1);
    if (s->hm) { /* another thread was opening the same object */
        hm_close(opened, NULL);
        rb_raise(rb_eArgError, "the store is open already");
    }
    s->hm = opened;
    RB_GC_GUARD(name);
    return self;
}

/* Closing while another thread is in a long call lets that call finish; the last one out closes. */
static VALUE store_close(VALUE self) {
    store *s = RTYPEDDATA_DATA(self);
    hm_store *hm = s->hm;
    s->hm = NULL;
    if (hm && s->in_use > 0 && s->pid == getpid())
        s->closing = hm;
    else
        hm_close(hm, NULL);
    return Qnil;
}

static VALUE store_closed(VALUE self) {
    return RBOOL(!((store *)RTYPEDDATA_DATA(self))->hm);
}

/* Asks twice: for the length, then for the text. */
static VALUE path_with(hm_store *hm, const char *name) {
    hm_error error;
    VALUE path = rb_enc_str_new(NULL, 255, rb_filesystem_encoding());
    for (;;) {
        size_t room = (size_t)RSTRING_LEN(path) + 1, len;
        int result = hm ? hm_path(hm, RSTRING_PTR(path), room, &len, &error)
                        : hm_path_of(name, RSTRING_PTR(path), room, &len, &error);
        if (result > 0)
            raise_error(&error);
        rb_str_resize(path, (long)len);
        if (result == HM_OK)
            return path;
    }
}

static VALUE store_path(VALUE self) {
    return path_with(open_store(self)->hm, NULL);
}

static VALUE hashmere_path_of(VALUE self, VALUE name) {
    return path_with(NULL, StringValueCStr(name));
}

static VALUE hashmere_remove(VALUE self, VALUE name) {
    hm_error error;
    int result = hm_remove(StringValueCStr(name), &error);
    if (result > 0)
        raise_error(&error);
    return RBOOL(result == HM_OK);
}

static VALUE store_read_only(VALUE self) {
    return RBOOL(hm_is_read_only(open_store(self)->hm, NULL) == HM_OK);
}

void init_store(void) {
    store_class = rb_define_class_under(hashmere_module, "Store", rb_cObject);
    rb_define_alloc_func(store_class, store_allocate);
    rb_define_private_method(store_class, "_open", store_open, 4);
    rb_define_method(store_class, "close", store_close, 0);
    rb_define_method(store_class, "closed?", store_closed, 0);
    rb_define_method(store_class, "path", store_path, 0);
    rb_define_method(store_class, "read_only?", store_read_only, 0);
    rb_define_singleton_method(hashmere_module, "_path_of", hashmere_path_of, 1);
    rb_define_singleton_method(hashmere_module, "_remove", hashmere_remove, 1);
    const struct {
        const char *name;
        int bit;
    } flags[] = {{"NO_CREATE", HM_NO_CREATE},   {"CREATE_NEW", HM_CREATE_NEW}, {"READ_ONLY", HM_READ_ONLY},
                 {"STRICT", HM_STRICT},       {"CACHE", HM_CACHE},         {"DURABLE", HM_DURABLE},
                 {"DELETE", HM_REMOVE_ON_LAST_CLOSE}, {"FOREIGN", HM_ALLOW_FOREIGN_OWNER}, {"NO_VALUES", HM_NO_VALUES},
                 {"FEED_VALUES", HM_FEED_VALUES}};
    VALUE module = rb_define_module_under(hashmere_module, "OpenFlags");
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        rb_define_const(module, flags[i].name, INT2FIX(flags[i].bit));
}
