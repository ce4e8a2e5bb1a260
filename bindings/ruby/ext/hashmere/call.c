/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls without the GVL, and calls that have to wait.
 *
 * The library waits for a lock for a few milliseconds only; the rest of the time is waited here, without
 * the GVL, in slices between which signals, Thread#kill and Timeout are heard. */
#include "binding.h"
#include <ruby/thread.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *run(void *argument) {
    call *c = argument;
    c->ran = 1;
    c->result = c->run(c);
    return NULL;
}

void enter_store(store *s) {
    if (s->pid != getpid()) { /* the threads of the parent are not in this process */
        s->pid = getpid();
        s->in_use = 0;
    }
    s->in_use++;
}

void leave_store(store *s) {
    s->in_use--;
    if (s->closing && s->in_use == 0) {
        hm_close(s->closing, NULL);
        s->closing = NULL;
    }
}

/* One attempt without the GVL. Raises nothing; does not run if an interrupt is waiting. */
static void attempt(store *s, call *c) {
    c->ran = 0;
    enter_store(s);
    rb_thread_call_without_gvl2(run, c, NULL, NULL);
    leave_store(s);
}

static void wait_for(store *s, call *c) {
    uint64_t end = now_ms() + s->timeout_ms;
    for (;;) {
        if (!s->hm && c->hm)
            raise_closed("the store");
        attempt(s, c);
        if (c->ran && (c->result != HM_E_BUSY || now_ms() >= end))
            return;
        rb_thread_check_ints();
    }
}

static int finish_call(const call *c) {
    if (c->result > 0)
        raise_error(&c->error);
    return c->result;
}

int perform_on(store *s, call *c, int result) {
    c->result = result;
    if (result == HM_E_BUSY)
        wait_for(s, c);
    return finish_call(c);
}

int perform(store *s, call *c, int release) {
    if (!release)
        return perform_on(s, c, c->run(c));
    wait_for(s, c);
    return finish_call(c);
}

VALUE item_of(VALUE self, call *c) {
    hm_metadata meta;
    c->input = &meta;
    VALUE value = rb_str_new(NULL, 128);
    for (;;) {
        store *s = open_store(self); /* which another thread may have closed while this one waited */
        c->hm = s->hm;
        c->output = RSTRING_PTR(value);
        c->room = (size_t)RSTRING_LEN(value);
        int result = perform(s, c, c->room >= LONG_VALUE);
        if (result == HM_ABSENT)
            return Qnil;
        rb_str_resize(value, (long)meta.value_len);
        if (result == HM_OK)
            return from_meta(&meta, tag(s, value));
    }
}
