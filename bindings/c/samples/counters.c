/* Several processes count in one store, and share something that the last of them removes. */
#include <hashmere.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, STEPS = 1000 };

static hm_error error;

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

static void work(hm_store *store) {
    hm_counter one = {.initial = 1};
    for (int i = 0; i < STEPS; i++)
        check(hm_incr(store, "hits", 4, 1, &one, NULL, &error));
    check(hm_dec_ref(store, "shared", 6, 1, NULL, &error));
}

int main(void) {
    hm_store *store;
    check(hm_open("sample-counters", NULL, &store, &error));
    check(hm_clear(store, &error));

    check(hm_inc_ref(store, "shared", 6, PROCESSES, NULL, &error));
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) { /* the child goes on with the open store */
            work(store);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }

    char hits[24];
    size_t len;
    check(hm_get(store, "hits", 4, hits, sizeof hits, &len, &error));
    printf("%d processes counted to %.*s\n", PROCESSES, (int)len, hits);
    int gone = check(hm_contains(store, "shared", 6, &error)) == HM_ABSENT;
    printf("the last of %d references is gone: %s\n", PROCESSES, gone ? "yes" : "no");
    check(hm_close(store, &error));
    check(hm_remove("sample-counters", &error));
    return 0;
}
