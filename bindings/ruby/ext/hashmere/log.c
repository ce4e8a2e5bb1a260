/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The log: hashmere_log.h. A line is logged with the GVL held, for it takes less time than letting go of it; but not if the ring is full, nor
 * if this thread may have to write to standard output. */
#include "log.h"
#include <time.h>
#include <unistd.h>

/* How long the library itself waits for room with the GVL held; in_slices waits the rest. And how long it is believed who drains. */
enum { FULL_MS = 2, BELIEVED_MS = 100 };

static VALUE log_class;

static void log_free(void *data) {
    hm_log_close(((logbook *)data)->hm);
    hm_log_close(((logbook *)data)->closing);
    xfree(data);
}
static const rb_data_type_t log_type = {
    .wrap_struct_name = "Hashmere::Log",
    .function = {.dfree = log_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
logbook *log_of(VALUE self) {
    logbook *log = rb_check_typeddata(self, &log_type);
    if (RB_UNLIKELY(!log->hm))
        raise_closed("the log");
    return log;
}

/* Log._open(store, name, [flags, rings, ring_bytes, history_bytes, level, on_full, full_timeout_ms, on_no_drainer, on_too_long]) */
static VALUE log_open(VALUE class, VALUE in, VALUE name, VALUE numbers) {
    hm_log_options options = {.size = sizeof options, .full_timeout_ms = FULL_MS};
    const char *text = StringValueCStr(name);
    rb_check_typeddata(in, &store_type);
    options.flags = to_u64(rb_ary_entry(numbers, 0), "flags");
    options.rings = to_u64(rb_ary_entry(numbers, 1), "rings");
    options.ring_bytes = to_u64(rb_ary_entry(numbers, 2), "ring_bytes");
    options.history_bytes = to_u64(rb_ary_entry(numbers, 3), "history_bytes");
    options.level = to_u64(rb_ary_entry(numbers, 4), "level");
    options.on_full = to_u64(rb_ary_entry(numbers, 5), "on_full");
    uint64_t timeout_ms = to_u64(rb_ary_entry(numbers, 6), "full_timeout");
    options.on_no_drainer = to_u64(rb_ary_entry(numbers, 7), "on_no_drainer");
    options.on_too_long = to_u64(rb_ary_entry(numbers, 8), "on_too_long");
    logbook *made;
    VALUE object = TypedData_Make_Struct(class, logbook, &log_type, made);
    made->timeout_ms = timeout_ms;
    made->writes = made->alone = options.on_no_drainer == HM_LOG_STDOUT;
    hm_error error;
    checked(hm_log_open(open_store(in)->hm, text, &options, &made->hm, &error), &error);
    RB_GC_GUARD(name);
    return object;
}

/* Log._remove(store, name) */
static VALUE log_remove(VALUE class, VALUE in, VALUE name) {
    hm_error error;
    const char *text = StringValueCStr(name);
    rb_check_typeddata(in, &store_type);
    VALUE removed = RBOOL(checked(hm_log_remove(open_store(in)->hm, text, &error), &error) == HM_OK);
    RB_GC_GUARD(name);
    return removed;
}

/* Closing while another thread is in a call lets that finish; the last one out closes. */
static VALUE log_close(VALUE self) {
    logbook *log = rb_check_typeddata(self, &log_type);
    hm_log *hm = log->hm;
    log->hm = NULL;
    if (hm && log->in_use > 0 && log->pid == getpid())
        log->closing = hm;
    else
        hm_log_close(hm);
    return Qnil;
}

static VALUE log_closed(VALUE self) {
    return RBOOL(!((logbook *)rb_check_typeddata(self, &log_type))->hm);
}

/* A line, or a wait until all lines are delivered. */
typedef struct entry {
    slice slice;
    logbook *log;
    hm_log *hm;
    int level;
    hm_bytes text;
    const hm_field *fields;
    size_t count;
} entry;

static int append(slice *s) {
    entry *e = (entry *)s;
    if (e->count == 0)
        return hm_log_line(e->hm, e->level, e->text.data, e->text.len, &s->error);
    return hm_log_line_fields(e->hm, e->level, e->text.data, e->text.len, e->fields, e->count, &s->error);
}
/* The same for as long as a slice. */
static int append_in_slice(slice *s) {
    int result = append(s);
    for (uint64_t waited = FULL_MS; result == HM_E_LOG_FULL && waited < s->ms; waited += FULL_MS)
        result = append(s);
    return result;
}
static int flush(slice *s) {
    return hm_log_flush(((entry *)s)->hm, s->ms, &s->error);
}

typedef struct attempt {
    entry *entry;
    int again; /* The result for which it is tried again. */
} attempt;

static VALUE run_slices(VALUE argument) {
    attempt *a = (attempt *)argument;
    return INT2FIX(in_slices(&a->entry->slice, a->again));
}
static VALUE leave_log(VALUE argument) {
    logbook *log = ((attempt *)argument)->entry->log;
    if (--log->in_use == 0) {
        hm_log_close(log->closing);
        log->closing = NULL;
    }
    return Qnil;
}
/* Makes the call without the GVL, again and again as long as the result is that one and the time is not over. */
static int patiently(entry *e, int again) {
    attempt a = {e, again};
    if (e->log->pid != getpid()) { /* the threads of the parent are not in this process */
        e->log->pid = getpid();
        e->log->in_use = 0;
    }
    e->log->in_use++;
    return FIX2INT(rb_ensure(run_slices, (VALUE)&a, leave_log, (VALUE)&a));
}

/* Whether this thread may have to write the line to standard output by itself. */
static int is_alone(logbook *log) {
    if (!log->writes)
        return 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (now_ms - log->looked_ms >= BELIEVED_MS) {
        hm_log_stats stats = {.size = sizeof stats};
        log->looked_ms = now_ms;
        log->alone = hm_log_get_stats(log->hm, &stats, NULL) != HM_OK || stats.drainer_pid == 0;
    }
    return log->alone;
}

/* Whether it was logged. */
static VALUE enter(entry *e) {
    int result = HM_E_LOG_FULL;
    e->hm = e->log->hm;
    e->slice.run = append_in_slice;
    e->slice.left_ms = e->log->timeout_ms;
    if (!is_alone(e->log))
        result = append(&e->slice);
    if (RB_UNLIKELY(result == HM_E_LOG_FULL))
        result = patiently(e, HM_E_LOG_FULL);
    return RBOOL(checked(result, &e->slice.error) == HM_OK);
}

/* _line(level, text) */
static VALUE log_line(VALUE self, VALUE level, VALUE text) {
    entry e = {.level = NUM2INT(level)};
    StringValue(text);
    e.text = frozen_bytes_of(&text);
    e.log = log_of(self);
    VALUE logged = enter(&e);
    RB_GC_GUARD(text);
    return logged;
}

static hm_field field_of(VALUE key, VALUE value) {
    hm_field field = {.key = {RSTRING_PTR(key), (size_t)RSTRING_LEN(key)}};
    if (RB_FIXNUM_P(value) || (RB_INTEGER_TYPE_P(value) && RBIGNUM_NEGATIVE_P(value))) {
        field.kind = HM_FIELD_INTEGER;
        field.integer = NUM2LL(value);
    } else if (RB_INTEGER_TYPE_P(value)) {
        field.kind = HM_FIELD_NATURAL;
        field.natural = NUM2ULL(value);
    } else if (RB_FLOAT_TYPE_P(value)) {
        field.kind = HM_FIELD_REAL;
        field.real = RFLOAT_VALUE(value);
    } else if (value == Qtrue || value == Qfalse) {
        field.kind = HM_FIELD_TRUTH;
        field.truth = value == Qtrue;
    } else {
        field.kind = HM_FIELD_TEXT;
        field.text = (hm_bytes){RSTRING_PTR(value), (size_t)RSTRING_LEN(value)};
    }
    return field;
}

/* _line_fields(level, text, [key, value, ...]): the keys are frozen Strings, the values too, or numbers of 64 bits, or true or false. */
static VALUE log_line_fields(VALUE self, VALUE level, VALUE text, VALUE parts) {
    VALUE room = 0;
    entry e = {.level = NUM2INT(level)};
    StringValue(text);
    e.text = frozen_bytes_of(&text);
    e.count = (size_t)RARRAY_LEN(parts) / 2;
    hm_field *fields = rb_alloc_tmp_buffer2(&room, (long)e.count + 1, sizeof(hm_field) + 2 * sizeof(VALUE));
    VALUE *pinned = (VALUE *)(fields + e.count + 1); /* a compaction of the heap moves nothing that is on the stack */
    for (size_t i = 0; i < e.count; i++, pinned += 2) {
        pinned[0] = RARRAY_AREF(parts, (long)i * 2);
        pinned[1] = RARRAY_AREF(parts, (long)i * 2 + 1);
        fields[i] = field_of(pinned[0], pinned[1]);
    }
    e.fields = fields;
    e.log = log_of(self);
    VALUE logged = enter(&e);
    rb_free_tmp_buffer(&room);
    RB_GC_GUARD(text);
    RB_GC_GUARD(parts);
    return logged;
}

/* _flush(milliseconds): false: the time is up. */
static VALUE log_flush(VALUE self, VALUE ms) {
    entry e = {.slice = {.run = flush, .left_ms = to_u64(ms, "timeout")}, .log = log_of(self)};
    e.hm = e.log->hm;
    return RBOOL(checked(patiently(&e, HM_TIMEOUT), &e.slice.error) == HM_OK);
}

static VALUE log_enabled(VALUE self, VALUE level) {
    return RBOOL(hm_log_enabled(log_of(self)->hm, NUM2INT(level)));
}
static VALUE log_get_level(VALUE self) {
    int level;
    hm_error error;
    checked(hm_log_get_level(log_of(self)->hm, &level, &error), &error);
    return INT2FIX(level);
}
static VALUE log_set_level(VALUE self, VALUE level) {
    hm_error error;
    checked(hm_log_set_level(log_of(self)->hm, NUM2INT(level), &error), &error);
    return level;
}

static VALUE log_stats(VALUE self) {
    hm_log_stats stats = {.size = sizeof stats};
    hm_error error;
    checked(hm_log_get_stats(log_of(self)->hm, &stats, &error), &error);
    VALUE hash = rb_hash_new();
#define F(NAME) rb_hash_aset(hash, ID2SYM(rb_intern(#NAME)), ULL2NUM(stats.NAME));
    F(bytes) F(rings) F(ring_bytes) F(history_bytes) F(line_max) F(rings_used) F(bytes_waiting) F(bytes_undelivered)
    F(lines) F(lost) F(halves) F(threads) F(drainer_pid)
#undef F
    return hash;
}

void init_log(void) {
    log_class = sealed_class(hashmere_module, "Log");
    init_log_drain(log_class);
    init_log_manual_drainer(log_class);
    init_log_list(log_class);
    rb_define_singleton_method(log_class, "_open", log_open, 3);
    rb_define_singleton_method(log_class, "_remove", log_remove, 2);
    rb_define_private_method(log_class, "_line", log_line, 2);
    rb_define_private_method(log_class, "_line_fields", log_line_fields, 3);
    rb_define_private_method(log_class, "_flush", log_flush, 1);
    rb_define_private_method(log_class, "_enabled?", log_enabled, 1);
    rb_define_private_method(log_class, "_level", log_get_level, 0);
    rb_define_private_method(log_class, "_set_level", log_set_level, 1);
    rb_define_method(log_class, "stats", log_stats, 0);
    rb_define_method(log_class, "close", log_close, 0);
    rb_define_method(log_class, "closed?", log_closed, 0);
}
