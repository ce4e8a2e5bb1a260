/* A scan by a regular expression, one that processes share, one that begins at a key; every key changed; dump and load. */
#include <hashmere_dump.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARTS = 4 };

static hm_error error;

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

/* Calls `each`, if there is one, for every key that passes; returns how many those are. */
static int scan_all(hm_store *store, const hm_filter *filter, void (*each)(hm_store *)) {
    hm_scan *scan;
    hm_pair pair;
    int keys = 0;
    check(hm_scan_open(store, filter, 0, &scan, &error));
    for (; check(hm_scan_next(scan, &pair, &error)) == HM_OK; keys++)
        if (each) each(store);
    hm_scan_close(scan);
    return keys;
}

static void count(hm_store *store) {
    hm_counter one = {.initial = 1};
    check(hm_incr(store, "seen", 4, 1, &one, NULL, &error));
}

static void twice(void *user, const hm_pair *old, hm_change *change) {
    char *text = user, digits[24];
    snprintf(digits, sizeof digits, "%.*s", (int)old->value.len, (const char *)old->value.data);
    change->action = HM_SET;
    change->value = (hm_bytes){text, (size_t)snprintf(text, 24, "%d", 2 * atoi(digits))};
}

int main(void) {
    hm_store *store;
    check(hm_open("sample-scan", NULL, &store, &error));
    check(hm_clear(store, &error));
    for (int n = 0; n < 1000; n++) {
        char key[24];
        const int len = snprintf(key, sizeof key, "user:%d", n);
        check(hm_set(store, key, (size_t)len, key + 5, (size_t)len - 5, &error));
    }

    const hm_filter sevens = {.size = sizeof sevens, .regex = {"^user:.*7$", 10}};
    uint64_t len;
    check(hm_len(store, &len, &error));
    printf("%d of %d keys end in 7\n", scan_all(store, &sevens, NULL), (int)len);

    for (uint32_t part = 0; part < PARTS; part++) {
        if (fork() == 0) { /* the child goes on with the open store */
            const hm_filter own = {.size = sizeof own, .prefix = {"user:", 5}, .part = part, .parts = PARTS};
            scan_all(store, &own, count);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    char value[24];
    size_t size;
    check(hm_take(store, "seen", 4, value, sizeof value, &size, NULL, &error));
    printf("%d processes saw %.*s keys\n", PARTS, (int)size, value);

    char text[24];
    uint64_t changed;
    check(hm_update_each(store, NULL, twice, text, &changed, &error));
    check(hm_get(store, "user:7", 6, value, sizeof value, &size, &error));
    printf("%d keys changed, user:7 is %.*s now\n", (int)changed, (int)size, value);

    uint64_t from;
    hm_scan *scan;
    hm_pair pair;
    check(hm_cursor_of(store, "user:7", 6, &from, &error));
    check(hm_scan_open(store, NULL, from, &scan, &error));
    check(hm_scan_next(scan, &pair, &error));
    printf("a scan from user:7 begins with %.*s\n", (int)pair.key.len, (const char *)pair.key.data);
    hm_scan_close(scan);

    char file[64];
    uint64_t dumped, loaded;
    snprintf(file, sizeof file, "/tmp/sample-scan-%d.jsonl", (int)getpid());
    check(hm_dump(store, file, HM_FORMAT_OF_NAME, NULL, &dumped, &error));
    check(hm_clear(store, &error));
    check(hm_load(store, file, HM_FORMAT_OF_NAME, &loaded, &error));
    printf("%d records dumped, %d loaded\n", (int)dumped, (int)loaded);
    unlink(file);
    check(hm_close(store, &error));
    check(hm_remove("sample-scan", &error));
    return 0;
}
