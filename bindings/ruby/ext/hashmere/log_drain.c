/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who writes the lines of a log out, and who reads them: Hashmere::Log::Drainer and Follower. */
#include "log.h"
#include <ruby/thread.h>
#include <unistd.h>

typedef struct drainer {
    hm_drainer *hm;
    pid_t pid; /* The process that it drains in. */
} drainer;

static VALUE drainer_class, follower_class;

static void drainer_free(void *data) {
    hm_drainer_stop(((drainer *)data)->hm, NULL, NULL);
    xfree(data);
}
static const rb_data_type_t drainer_type = {
    .wrap_struct_name = "Hashmere::Log::Drainer",
    .function = {.dfree = drainer_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

hm_drain_options drain_options(VALUE numbers, VALUE *where) {
    hm_drain_options options = {.size = sizeof options};
    options.to = to_u64(rb_ary_entry(numbers, 0), "to");
    options.format = to_u64(rb_ary_entry(numbers, 1), "format");
    options.level = to_u64(rb_ary_entry(numbers, 2), "level");
    options.max_bytes = to_u64(rb_ary_entry(numbers, 3), "max_bytes");
    options.keep = to_u64(rb_ary_entry(numbers, 4), "keep");
    options.flags = to_u64(rb_ary_entry(numbers, 5), "flags");
    if (options.to == HM_TO_FILE)
        options.path = StringValueCStr(*where);
    else if (options.to == HM_TO_FD)
        options.fd = NUM2INT(*where);
    return options;
}

/* _drain(path or descriptor or nil, [to, format, level, max_bytes, keep, flags]) */
static VALUE log_drain(VALUE self, VALUE where, VALUE numbers) {
    hm_drain_options options = drain_options(numbers, &where);
    drainer *made;
    VALUE object = TypedData_Make_Struct(drainer_class, drainer, &drainer_type, made);
    logbook *log = log_of(self);
    hm_error error;
    checked(hm_log_drain(log->hm, &options, &made->hm, &error), &error);
    made->pid = getpid();
    log->looked_ms = 0;
    RB_GC_GUARD(where);
    return object;
}

static VALUE drainer_is_active(VALUE self) {
    drainer *d = rb_check_typeddata(self, &drainer_type);
    return RBOOL(d->hm && d->pid == getpid() && hm_drainer_is_active(d->hm, NULL) == HM_OK);
}

typedef struct stop {
    hm_drainer *hm;
    uint64_t lines;
    int result;
    hm_error error;
} stop;

static void *run_stop(void *argument) {
    stop *s = argument;
    s->result = hm_drainer_stop(s->hm, &s->lines, &s->error);
    return NULL;
}

/* How many lines it has taken. It drains the rest, which is not interrupted. */
static VALUE drainer_stop(VALUE self) {
    drainer *d = rb_check_typeddata(self, &drainer_type);
    stop s = {.hm = d->hm};
    d->hm = NULL;
    rb_thread_call_without_gvl(run_stop, &s, NULL, NULL);
    checked(s.result, &s.error);
    return ULL2NUM(s.lines);
}

static void follower_free(void *data) {
    hm_follower_close(((follower *)data)->hm);
    xfree(data);
}
static const rb_data_type_t follower_type = {
    .wrap_struct_name = "Hashmere::Log::Follower",
    .function = {.dfree = follower_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static follower *follower_of(VALUE self) {
    follower *f = rb_check_typeddata(self, &follower_type);
    if (!f->hm)
        raise_closed("the follower");
    if (f->busy)
        rb_raise(rb_eThreadError, "another thread waits with this follower");
    return f;
}

/* _follow(last) */
static VALUE log_follow(VALUE self, VALUE last) {
    follower *made;
    uint64_t back = to_u64(last, "last");
    VALUE object = TypedData_Make_Struct(follower_class, follower, &follower_type, made);
    hm_error error;
    checked(hm_log_follow(log_of(self)->hm, back, &made->hm, &error), &error);
    return object;
}

typedef struct step {
    slice slice;
    follower *follower;
    hm_line line;
} step;

static int wait_for_line(slice *s) {
    step *n = (step *)s;
    return hm_follower_next(n->follower->hm, s->ms, &n->line, &s->error);
}
static VALUE run_step(VALUE argument) {
    return INT2FIX(in_slices(&((step *)argument)->slice, HM_TIMEOUT));
}
static VALUE end_step(VALUE argument) {
    ((step *)argument)->follower->busy = 0;
    return Qnil;
}

static VALUE value_of(const hm_field *field) {
    switch (field->kind) {
    case HM_FIELD_INTEGER: return LL2NUM(field->integer);
    case HM_FIELD_NATURAL: return ULL2NUM(field->natural);
    case HM_FIELD_REAL: return DBL2NUM(field->real);
    case HM_FIELD_TRUTH: return RBOOL(field->truth);
    default: return rb_utf8_str_new(field->text.data, (long)field->text.len);
    }
}

/* _next(milliseconds): [text, fields, level, time in ns, process, pid, thread, lost, flags, position], nil: the time is up. */
static VALUE follower_next(VALUE self, VALUE ms) {
    step n = {.slice = {.run = wait_for_line, .left_ms = to_u64(ms, "timeout")}, .follower = follower_of(self)};
    n.follower->busy = 1;
    if (checked(FIX2INT(rb_ensure(run_step, (VALUE)&n, end_step, (VALUE)&n)), &n.slice.error) == HM_TIMEOUT)
        return Qnil;
    const hm_line *line = &n.line;
    VALUE fields = rb_hash_new();
    for (size_t i = 0; i < line->field_count; i++) {
        const hm_field *field = &line->fields[i];
        rb_hash_aset(fields, rb_utf8_str_new(field->key.data, (long)field->key.len), value_of(field));
    }
    VALUE text = rb_utf8_str_new(line->text.data, (long)line->text.len);
    VALUE process = rb_utf8_str_new(line->process.data, (long)line->process.len);
    VALUE parts[] = {text, fields, INT2FIX(line->level), ULL2NUM(line->time_ns), process, UINT2NUM(line->pid),
                     UINT2NUM(line->thread), UINT2NUM(line->lost), UINT2NUM(line->flags), ULL2NUM(line->position)};
    return rb_ary_new_from_values(10, parts);
}

static VALUE follower_missed_bytes(VALUE self) {
    uint64_t bytes;
    hm_error error;
    checked(hm_follower_missed_bytes(follower_of(self)->hm, &bytes, &error), &error);
    return ULL2NUM(bytes);
}
/* _fileno: readable while there is a line. */
static VALUE follower_fileno(VALUE self) {
    int fd;
    hm_error error;
    checked(hm_follower_ready_fd(follower_of(self)->hm, &fd, &error), &error);
    return INT2FIX(fd);
}
static VALUE follower_close(VALUE self) {
    follower *f = rb_check_typeddata(self, &follower_type);
    if (f->hm)
        follower_of(self);
    hm_follower_close(f->hm);
    f->hm = NULL;
    return Qnil;
}

void init_log_drain(VALUE log_class) {
    drainer_class = sealed_class(log_class, "Drainer");
    follower_class = sealed_class(log_class, "Follower");
    rb_define_private_method(log_class, "_drain", log_drain, 2);
    rb_define_private_method(log_class, "_follow", log_follow, 1);
    rb_define_method(drainer_class, "active?", drainer_is_active, 0);
    rb_define_private_method(drainer_class, "_stop", drainer_stop, 0);
    rb_define_private_method(follower_class, "_next", follower_next, 1);
    rb_define_private_method(follower_class, "_fileno", follower_fileno, 0);
    rb_define_method(follower_class, "missed_bytes", follower_missed_bytes, 0);
    rb_define_method(follower_class, "close", follower_close, 0);
}
