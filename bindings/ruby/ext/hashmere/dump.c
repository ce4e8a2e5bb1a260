/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stores as text. */
#include "binding.h"
#include <hashmere_dump.h>

typedef struct text {
    const char *path;
    int format;
    hm_filter filter;
    uint64_t records;
} text;

static int run_dump(call *c) {
    text *t = c->output;
    return hm_dump(c->hm, t->path, t->format, &t->filter, &t->records, &c->error);
}

static int run_load(call *c) {
    text *t = c->output;
    return hm_load(c->hm, t->path, t->format, &t->records, &c->error);
}

static VALUE records(VALUE self, VALUE path, text *t, int (*run)(call *)) {
    StringValueCStr(path); /* a name with a NUL in it would mean another one to C */
    path = rb_str_new_frozen(path);
    t->path = StringValueCStr(path);
    store *s = open_store(self);
    call c;
    c.run = run;
    c.hm = s->hm;
    c.output = t;
    perform(s, &c, 1);
    RB_GC_GUARD(path);
    return ULL2NUM(t->records);
}

/* _dump_to(path, format, filter) */
static VALUE store_dump(VALUE self, VALUE path, VALUE format, VALUE which) {
    text t = {.format = NUM2INT(format), .filter = filter_of(&which)};
    VALUE found = records(self, path, &t, run_dump);
    RB_GC_GUARD(which);
    return found;
}

/* _load_from(path, format) */
static VALUE store_load(VALUE self, VALUE path, VALUE format) {
    text t = {.format = NUM2INT(format)};
    return records(self, path, &t, run_load);
}

void init_dump(void) {
    rb_define_private_method(store_class, "_dump_to", store_dump, 3);
    rb_define_private_method(store_class, "_load_from", store_load, 2);
}
