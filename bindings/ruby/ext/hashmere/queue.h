/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Queues, and the hands that move elements between them. */
#ifndef HASHMERE_RUBY_QUEUE_H
#define HASHMERE_RUBY_QUEUE_H

#include "waiting.h"

typedef struct queue {
    hm_queue *hm;        /* NULL: closed. */
    hm_queue *closing;   /* Closed by Ruby while a thread waited for it. */
    hm_readiness *ready; /* NULL: it stands in no event loop. */
    VALUE io;            /* What an event loop of Ruby knows it by. */
    unsigned waiting;    /* Threads that wait for it, without the GVL. */
} queue;

typedef struct hand {
    hm_hand *hm;
    int busy; /* A thread waits with it, without the GVL. */
} hand;

extern VALUE hand_class;
extern const rb_data_type_t hand_type;

queue *queue_of(VALUE self);

/* Behind a pull that found nothing: the event is taken back, and comes again when there is something. */
static inline void found_nothing(const queue *from) {
    if (RB_UNLIKELY(from->ready))
        hm_readiness_take(from->ready, NULL);
}

/* Around a wait for it. If it is closed meanwhile, it goes when the last has left it. */
void enter_queue(queue *q);
void leave_queue(queue *q);

#endif
