/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Queues, and the endpoints that move elements between them. */
#ifndef HASHMERE_RUBY_QUEUE_H
#define HASHMERE_RUBY_QUEUE_H

#include "waiting.h"

typedef struct queue {
    hm_queue *hm;        /* NULL: closed. */
    hm_queue *closing;   /* Closed by Ruby while a thread waited for it. */
    hm_ready_fd *ready; /* NULL: it is in no event loop. */
    VALUE io;            /* What an event loop of Ruby knows it by. */
    unsigned waiting;    /* Threads that wait for it, without the GVL. */
} queue;

typedef struct endpoint {
    hm_endpoint *hm;
    int busy; /* A thread waits with it, without the GVL. */
} endpoint;

extern VALUE endpoint_class;
extern const rb_data_type_t endpoint_type;

queue *queue_of(VALUE self);

/* Behind a pop that found nothing: the event is taken back, and comes again when there is something. */
static inline void found_nothing(const queue *from) {
    if (RB_UNLIKELY(from->ready))
        hm_ready_fd_acknowledge(from->ready, NULL);
}

/* Around a wait for it. If it is closed during the wait, it is released when the last user has left it. */
void enter_queue(queue *q);
void leave_queue(queue *q);

#endif
