/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The drainer in a loop of the program's own: Hashmere::Log::Pump. */
#include "log.h"
#include <ruby/thread.h>

typedef struct pump {
    hm_pump *hm;
    int busy; /* A thread writes lines out with it. */
} pump;

static VALUE pump_class;

static void pump_free(void *data) {
    hm_pump_finish(((pump *)data)->hm, NULL, NULL);
    xfree(data);
}
static const rb_data_type_t pump_type = {
    .wrap_struct_name = "Hashmere::Log::Pump",
    .function = {.dfree = pump_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static pump *pump_of(VALUE self) {
    pump *p = rb_check_typeddata(self, &pump_type);
    if (!p->hm)
        raise_closed("the pump");
    if (p->busy)
        rb_raise(rb_eThreadError, "another thread drains with this pump");
    return p;
}

/* _pump(path or descriptor or nil, [to, format, level, max_bytes, keep, flags]) */
static VALUE log_pump(VALUE self, VALUE where, VALUE numbers) {
    hm_drain_options options = drain_options(numbers, &where);
    pump *made;
    VALUE object = TypedData_Make_Struct(pump_class, pump, &pump_type, made);
    hm_error error;
    settle(hm_pump_open(log_of(self)->hm, &options, &made->hm, &error), &error);
    RB_GC_GUARD(where);
    return object;
}

/* A call without the GVL, for it writes to a file. It is not interrupted: it takes no longer than the file. */
typedef struct stroke {
    int (*run)(hm_pump *, uint64_t *, hm_error *);
    hm_pump *hm;
    uint64_t lines;
    int result;
    hm_error error;
} stroke;

static void *make_stroke(void *argument) {
    stroke *s = argument;
    s->result = s->run(s->hm, &s->lines, &s->error);
    return NULL;
}
static VALUE pump_run(VALUE self) {
    pump *p = pump_of(self);
    stroke s = {.run = hm_pump_run, .hm = p->hm};
    p->busy = 1;
    rb_thread_call_without_gvl(make_stroke, &s, NULL, NULL);
    p->busy = 0;
    settle(s.result, &s.error);
    return ULL2NUM(s.lines);
}
static VALUE pump_finish(VALUE self) {
    pump *p = pump_of(self);
    stroke s = {.run = hm_pump_finish, .hm = p->hm};
    p->hm = NULL;
    rb_thread_call_without_gvl(make_stroke, &s, NULL, NULL);
    settle(s.result, &s.error);
    return ULL2NUM(s.lines);
}

/* _fileno: readable while there is something to drain. */
static VALUE pump_fileno(VALUE self) {
    int fd;
    hm_error error;
    settle(hm_pump_fd(pump_of(self)->hm, &fd, &error), &error);
    return INT2FIX(fd);
}
static VALUE pump_finished(VALUE self) {
    return RBOOL(!((pump *)rb_check_typeddata(self, &pump_type))->hm);
}

void init_log_pump(VALUE log_class) {
    pump_class = sealed_class(log_class, "Pump");
    rb_define_private_method(log_class, "_pump", log_pump, 2);
    rb_define_method(pump_class, "run", pump_run, 0);
    rb_define_method(pump_class, "finish", pump_finish, 0);
    rb_define_method(pump_class, "finished?", pump_finished, 0);
    rb_define_private_method(pump_class, "_fileno", pump_fileno, 0);
}
