/* Lines of 36 bytes logged through the C interface, as they are and formatted: prints nanoseconds of processor time for each. Its twin is
 * crates/hashmere-bench/src/bin/line.rs. Bursts go into a ring that has room for them; it is drained in between.
 * Usage: line STORE BURSTS */
#include "bench.h"
#include <hashmere_log.h>
#include <string.h>

enum { BURST = 8000 };

static void drain(hm_log *log, uint64_t wanted) {
    const hm_drain_options nowhere = {.size = sizeof nowhere, .to = HM_TO_FILE, .path = "/dev/null"};
    hm_drainer *drainer;
    uint64_t lines;
    check(hm_log_drain(log, &nowhere, &drainer, &error));
    check(hm_drainer_stop(drainer, &lines, &error));
    if (lines != wanted) {
        fprintf(stderr, "%d lines instead of %d\n", (int)lines, (int)wanted);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const int bursts = atoi(argv[2]);
    static const char text[] = "request of user 1234567 is now done.";
    hm_store *store;
    hm_log *log;
    const hm_log_options options = {.size = sizeof options, .ring_bytes = 1 << 20, .on_no_drainer = HM_LOG_KEEP};
    check(hm_open(argv[1], NULL, &store, &error));
    check(hm_log_open(store, "line", &options, &log, &error));
    double plain = 0, formatted = 0;
    for (int burst = -4; burst < bursts; burst++) { /* the first warm up */
        double begin = now(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < BURST; i++) check(hm_log_line(log, HM_LEVEL_INFO, text, sizeof text - 1, &error));
        if (burst >= 0) plain += now(CLOCK_THREAD_CPUTIME_ID) - begin;
        drain(log, BURST);
        begin = now(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < BURST; i++) check(HM_INFO(log, "request of user %d is now done.", 1234567 + i));
        if (burst >= 0) formatted += now(CLOCK_THREAD_CPUTIME_ID) - begin;
        drain(log, BURST);
    }
    printf("%.2f %.2f\n", plain / bursts / BURST, formatted / bursts / BURST);
    hm_log_close(log);
    check(hm_close(store, &error));
    return 0;
}
