/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The drainer in a loop of the program's own: Hashmere::Log::ManualDrainer. */
#include "log.h"
#include <ruby/thread.h>

typedef struct manual_drainer {
    hm_manual_drainer *hm;
    int busy; /* A thread writes lines out with it. */
} manual_drainer;

static VALUE manual_drainer_class;

static void manual_drainer_free(void *data) {
    hm_manual_drainer_finish(((manual_drainer *)data)->hm, NULL, NULL);
    xfree(data);
}
static const rb_data_type_t manual_drainer_type = {
    .wrap_struct_name = "Hashmere::Log::ManualDrainer",
    .function = {.dfree = manual_drainer_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};
static manual_drainer *manual_drainer_of(VALUE self) {
    manual_drainer *p = rb_check_typeddata(self, &manual_drainer_type);
    if (!p->hm)
        raise_closed("the drainer");
    if (p->busy)
        rb_raise(rb_eThreadError, "another thread drains with this drainer");
    return p;
}

/* _drain_manual(path or descriptor or nil, [to, format, level, max_bytes, keep, flags]) */
static VALUE log_drain_manual(VALUE self, VALUE where, VALUE numbers) {
    hm_drain_options options = drain_options(numbers, &where);
    manual_drainer *made;
    VALUE object = TypedData_Make_Struct(manual_drainer_class, manual_drainer, &manual_drainer_type, made);
    hm_error error;
    checked(hm_manual_drainer_open(log_of(self)->hm, &options, &made->hm, &error), &error);
    RB_GC_GUARD(where);
    return object;
}

/* A call without the GVL, for it writes to a file. It is not interrupted: it takes no longer than the file. */
typedef struct stroke {
    int (*run)(hm_manual_drainer *, uint64_t *, hm_error *);
    hm_manual_drainer *hm;
    uint64_t lines;
    int result;
    hm_error error;
} stroke;

static void *make_stroke(void *argument) {
    stroke *s = argument;
    s->result = s->run(s->hm, &s->lines, &s->error);
    return NULL;
}
static VALUE manual_drainer_poll(VALUE self) {
    manual_drainer *p = manual_drainer_of(self);
    stroke s = {.run = hm_manual_drainer_poll, .hm = p->hm};
    p->busy = 1;
    rb_thread_call_without_gvl(make_stroke, &s, NULL, NULL);
    p->busy = 0;
    checked(s.result, &s.error);
    return ULL2NUM(s.lines);
}
static VALUE manual_drainer_finish(VALUE self) {
    manual_drainer *p = manual_drainer_of(self);
    stroke s = {.run = hm_manual_drainer_finish, .hm = p->hm};
    p->hm = NULL;
    rb_thread_call_without_gvl(make_stroke, &s, NULL, NULL);
    checked(s.result, &s.error);
    return ULL2NUM(s.lines);
}

/* _fileno: readable while there is something to drain. */
static VALUE manual_drainer_fileno(VALUE self) {
    int fd;
    hm_error error;
    checked(hm_manual_drainer_ready_fd(manual_drainer_of(self)->hm, &fd, &error), &error);
    return INT2FIX(fd);
}
static VALUE manual_drainer_finished(VALUE self) {
    return RBOOL(!((manual_drainer *)rb_check_typeddata(self, &manual_drainer_type))->hm);
}

void init_log_manual_drainer(VALUE log_class) {
    manual_drainer_class = sealed_class(log_class, "ManualDrainer");
    rb_define_private_method(log_class, "_drain_manual", log_drain_manual, 2);
    rb_define_method(manual_drainer_class, "poll", manual_drainer_poll, 0);
    rb_define_method(manual_drainer_class, "finish", manual_drainer_finish, 0);
    rb_define_method(manual_drainer_class, "finished?", manual_drainer_finished, 0);
    rb_define_private_method(manual_drainer_class, "_fileno", manual_drainer_fileno, 0);
}
