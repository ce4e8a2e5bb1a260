/* What the benchmarks of the C interface share. */
#ifndef HASHMERE_BENCH_H
#define HASHMERE_BENCH_H

#include <hashmere.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static hm_error error;

/* Ends the program unless a call did what it was to do. */
static void check(int result) {
    if (result != HM_OK) {
        fprintf(stderr, "result %d: %s\n", result, result > 0 ? error.text : "no");
        exit(1);
    }
}

/* Nanoseconds of a clock. */
static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#endif
