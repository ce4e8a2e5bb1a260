/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Waits that end with a signal, Thread#kill or Timeout. */
#ifndef HASHMERE_RUBY_WAITING_H
#define HASHMERE_RUBY_WAITING_H

#include "binding.h"
#include <hashmere_queue.h>

/* A wait as the first field of what it needs. */
typedef struct slice {
    int (*run)(struct slice *); /* Waits for `ms` in the library. Without the GVL. */
    uint64_t left_ms;
    uint64_t ms;
    int result, ran;
    hm_error error;
} slice;

/* Waits in slices until the result is another than `again`, or the time is over. Raises what an interrupt raises. */
int in_slices(slice *s, int again);

/* Raises what is an error. */
static inline int checked(int result, const hm_error *error) {
    if (RB_UNLIKELY(result > 0))
        raise_error(error);
    return result;
}

#endif
