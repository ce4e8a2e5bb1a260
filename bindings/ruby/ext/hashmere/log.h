/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An open log: Hashmere::Log. */
#ifndef HASHMERE_RUBY_LOG_H
#define HASHMERE_RUBY_LOG_H

#include "waiting.h"
#include <hashmere_log.h>

typedef struct logbook {
    hm_log *hm;
    hm_log *closing;     /* Closed by Ruby while a call of another thread was in it. */
    uint64_t timeout_ms; /* How long a line waits for room. */
    uint64_t looked_ms;  /* When it was last looked who drains. */
    int writes, alone;   /* Lines go to standard output without a drainer; there was none. */
    unsigned in_use;     /* Calls in the library without the GVL. */
    pid_t pid;           /* The process to which in_use belongs. */
} logbook;

logbook *log_of(VALUE self);

typedef struct follower {
    hm_follower *hm;
    int busy; /* A thread waits with it. */
} follower;

/* log_drain.c */
void init_log_drain(VALUE log_class);
/* Options from [to, format, level, max_bytes, keep, flags] and a path or descriptor; they hold what `where` holds. */
hm_drain_options drain_options(VALUE numbers, VALUE *where);
/* log_pump.c */
void init_log_manual_drainer(VALUE log_class);
/* log_list.c */
void init_log_list(VALUE log_class);

#endif
