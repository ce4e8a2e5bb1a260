/* Gets of hot 8-byte values through the C interface: prints nanoseconds for each. Its twin is crates/hashmere-bench/src/bin/hot.rs.
 * Usage: hot STORE GETS */
#include "bench.h"
#include <string.h>

enum { KEYS = 1024, BYTES = 8 };

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const long gets = atol(argv[2]);
    static char keys[KEYS][BYTES + 1];
    hm_store *store;
    check(hm_open(argv[1], NULL, &store, &error));
    for (int i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "%08d", i);
        check(hm_set(store, keys[i], BYTES, keys[i], BYTES, &error));
    }
    double best = 0;
    for (int round = 0; round < 2; round++) { /* the first warms up */
        uint32_t draw = 1;
        const double begin = now(CLOCK_MONOTONIC);
        for (long i = 0; i < gets; i++) {
            draw = draw * 1664525 + 1013904223; /* Numerical Recipes */
            const char *key = keys[draw >> 22];
            char value[64];
            size_t len;
            check(hm_get(store, key, BYTES, value, sizeof value, &len, &error));
            if (len != BYTES || memcmp(value, key, BYTES) != 0) {
                fprintf(stderr, "a wrong value\n");
                return 1;
            }
        }
        best = (now(CLOCK_MONOTONIC) - begin) / (double)gets;
    }
    printf("%.2f\n", best);
    check(hm_close(store, &error));
    return 0;
}
