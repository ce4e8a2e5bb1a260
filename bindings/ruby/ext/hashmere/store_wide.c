/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The store as a whole: count, clear, sync, statistics, clients, check. All but the count let go of the GVL. */
#include "binding.h"
#include <ruby/thread.h>

static VALUE store_size(VALUE self) {
    uint64_t count;
    hm_error error;
    if (hm_len(open_store(self)->hm, &count, &error) > 0)
        raise_error(&error);
    return ULL2NUM(count);
}

static int run_len_exact(call *c) {
    return hm_len_exact(c->hm, c->output, &c->error);
}
static int run_clear(call *c) {
    return hm_clear(c->hm, &c->error);
}
static int run_sync(call *c) {
    return hm_sync(c->hm, &c->error);
}
static int run_compact(call *c) {
    return hm_compact(c->hm, c->output, &c->error);
}
static int run_stats(call *c) {
    return hm_get_stats(c->hm, c->output, &c->error);
}

static int whole(VALUE self, int (*run)(call *), void *output) {
    store *s = open_store(self);
    call c;
    c.run = run;
    c.hm = s->hm;
    c.output = output;
    return perform(s, &c, 1);
}

static VALUE store_clear(VALUE self) {
    whole(self, run_clear, NULL);
    return self;
}

static VALUE store_sync(VALUE self) {
    whole(self, run_sync, NULL);
    return self;
}

/* @return [Integer] how many keys a scan returns now: those that have expired do not count. It looks at every key. */
static VALUE store_len_exact(VALUE self) {
    uint64_t count;
    whole(self, run_len_exact, &count);
    return ULL2NUM(count);
}

/* How many bytes became free. */
static VALUE store_compact(VALUE self) {
    uint64_t freed = 0;
    whole(self, run_compact, &freed);
    return ULL2NUM(freed);
}

#define FIELDS(F)                                                                                                     \
    F(is_cache)     F(items)     F(bytes_live)     F(bytes_dead)     F(bytes_free)     F(bytes_file)                  \
    F(bytes_allocated)     F(bytes_max)     F(segments_total)     F(segments_log)     F(segments_index)               \
    F(segments_large)     F(segments_free)     F(segments_waiting)     F(segments_offline)     F(segment_bytes)         \
    F(index_slots)     F(index_used)     F(index_depth)     F(index_overflow)     F(splits)     F(segments_cleaned)   \
    F(records_moved)     F(evictions)     F(expiries)     F(hits)     F(misses)     F(sets)     F(deletes)            \
    F(lock_waits)     F(takeovers)     F(read_retries)     F(clears)     F(recycle_epoch)     F(is_durable)           \
    F(syncs)     F(last_sync_ms)     F(is_poisoned)     F(clients)     F(no_space_since_ms)                           

static VALUE store_stats(VALUE self) {
    hm_stats stats = {.size = sizeof stats};
    whole(self, run_stats, &stats);
    VALUE hash = rb_hash_new();
#define F(NAME) rb_hash_aset(hash, ID2SYM(rb_intern(#NAME)), ULL2NUM(stats.NAME));
    FIELDS(F)
#undef F
    return hash;
}

static int keep_problem(void *user, hm_bytes code, uint64_t offset, hm_bytes text) {
    collected *into = user;
    char at[48];
    int len = snprintf(at, sizeof at, " at %llu: ", (unsigned long long)offset);
    return collect_bytes(into, code.data, code.len) || collect_bytes(into, at, (size_t)len) || collect_bytes(into, text.data, text.len) ||
           collect_bytes(into, "\n", 1);
}

static int run_check(call *c) {
    collected *into = c->output;
    into->len = 0;
    return hm_check(c->hm, NULL, keep_problem, into, &c->error);
}

static VALUE check(VALUE argument) {
    listing *l = (listing *)argument;
    whole(l->self, run_check, &l->bytes);
    raise_if_failed(&l->bytes);
    VALUE text = rb_utf8_str_new(l->bytes.data, (long)l->bytes.len);
    return rb_str_split(text, "\n");
}

/* A client as bytes: the numbers, the length of its name, the name. */
static int keep_client(void *user, const hm_client *client) {
    collected *into = user;
    return collect_bytes(into, client, sizeof *client) || collect_bytes(into, client->name.data, client->name.len);
}

static int run_clients(call *c) {
    collected *into = c->output;
    into->len = 0;
    return hm_each_client(c->hm, keep_client, into, &c->error);
}

static VALUE clients(VALUE argument) {
    listing *l = (listing *)argument;
    whole(l->self, run_clients, &l->bytes);
    raise_if_failed(&l->bytes);
    VALUE all = rb_ary_new();
    for (size_t at = 0; at < l->bytes.len;) {
        hm_client client;
        memcpy(&client, l->bytes.data + at, sizeof client);
        at += sizeof client;
        VALUE one = rb_hash_new();
#define F(NAME) rb_hash_aset(one, ID2SYM(rb_intern(#NAME)), ULL2NUM(client.NAME));
        F(slot) F(pid) F(since_ms) F(hits) F(misses) F(sets) F(deletes) F(pins)
#undef F
        rb_hash_aset(one, ID2SYM(rb_intern("name")), rb_utf8_str_new(l->bytes.data + at, (long)client.name.len));
        at += client.name.len;
        rb_ary_push(all, one);
    }
    return all;
}

/* A backup, and the block that is called with its progress: with the GVL again, and protected, for the library is on the stack. */
typedef struct backup {
    const char *path;
    uint64_t flags;
    VALUE progress;
    uint64_t done, of;
    int state;
    hm_backup_report report;
} backup;

static VALUE call_progress(VALUE argument) {
    backup *b = (backup *)argument;
    return rb_funcall(b->progress, rb_intern("call"), 2, ULL2NUM(b->done), ULL2NUM(b->of));
}

static void *tell_with_gvl(void *argument) {
    backup *b = argument;
    rb_protect(call_progress, (VALUE)b, &b->state);
    return NULL;
}

static void tell(void *user, uint64_t done, uint64_t of) {
    backup *b = user;
    b->done = done;
    b->of = of;
    if (!NIL_P(b->progress) && !b->state)
        rb_thread_call_with_gvl(tell_with_gvl, b);
}

static int run_backup(call *c) {
    backup *b = c->output;
    return hm_backup(c->hm, b->path, b->flags, tell, b, &b->report, &c->error);
}

/* _backup(path, replace, progress or nil) */
static VALUE store_backup(VALUE self, VALUE path, VALUE replace, VALUE progress) {
    StringValueCStr(path); /* a name with a NUL in it would mean another one to C */
    path = rb_str_new_frozen(path);
    backup b = {.path = StringValueCStr(path), .flags = RTEST(replace) ? HM_REPLACE : 0, .progress = progress};
    b.report.size = sizeof b.report;
    whole(self, run_backup, &b);
    if (b.state)
        rb_jump_tag(b.state);
    VALUE report = rb_hash_new();
    rb_hash_aset(report, ID2SYM(rb_intern("items")), ULL2NUM(b.report.items));
    rb_hash_aset(report, ID2SYM(rb_intern("bytes_file")), ULL2NUM(b.report.bytes_file));
    rb_hash_aset(report, ID2SYM(rb_intern("thinned")), RBOOL(b.report.is_thinned));
    RB_GC_GUARD(path);
    RB_GC_GUARD(progress);
    return report;
}

static VALUE store_check(VALUE self) {
    return make_list(check, self);
}

static VALUE store_clients(VALUE self) {
    return make_list(clients, self);
}

void init_store_wide(void) {
    rb_define_method(store_class, "size", store_size, 0);
    rb_define_method(store_class, "len_exact", store_len_exact, 0);
    rb_define_method(store_class, "clear", store_clear, 0);
    rb_define_method(store_class, "sync", store_sync, 0);
    rb_define_method(store_class, "compact", store_compact, 0);
    rb_define_method(store_class, "stats", store_stats, 0);
    rb_define_method(store_class, "check", store_check, 0);
    rb_define_method(store_class, "clients", store_clients, 0);
    rb_define_private_method(store_class, "_backup", store_backup, 3);
}
