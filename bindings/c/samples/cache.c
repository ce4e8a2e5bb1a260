/* A cache: values with a time to live, in a file that never grows beyond its size. */
#include <hashmere.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MINUTE = 60 * 1000, PAGES = 20000, MAX_BYTES = 4 << 20 };

static hm_error error;

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

static const char *yes(int is) {
    return is ? "yes" : "no";
}

static void set_for(hm_store *store, const char *key, const char *value, int64_t ms, uint32_t flags) {
    hm_attributes attributes = {.flags = flags, .expiry = HM_AFTER, .expiry_ms = ms};
    check(hm_set_with(store, key, strlen(key), value, strlen(value), &attributes, NULL, &error));
}

static int exists(hm_store *store, const char *key) {
    return check(hm_contains(store, key, strlen(key), &error)) == HM_OK;
}

int main(void) {
    hm_options options = {.size = sizeof options, .flags = HM_CACHE, .max_bytes = MAX_BYTES};
    hm_store *store;
    check(hm_open("sample-cache", &options, &store, &error));
    check(hm_clear(store, &error));

    int64_t left;
    set_for(store, "session:1", "Ada", MINUTE, 7);
    check(hm_ttl(store, "session:1", 9, &left, &error));
    printf("session:1 lives for less than a minute: %s\n", yes(left > 0 && left <= MINUTE));

    set_for(store, "session:2", "Grace", 20, 0);
    nanosleep(&(struct timespec){.tv_nsec = 40 * 1000 * 1000}, NULL);
    printf("session:2 is gone after its time: %s\n", yes(!exists(store, "session:2")));

    hm_metadata meta;
    check(hm_touch(store, "session:1", 9, HM_AFTER, 10 * MINUTE, &error));
    check(hm_get_metadata(store, "session:1", 9, &meta, &error));
    check(hm_ttl(store, "session:1", 9, &left, &error));
    printf("session:1 was touched, flags %u, lives for more than a minute: %s\n", meta.flags, yes(left > MINUTE));

    char key[24], page[1000];
    memset(page, '.', sizeof page);
    for (int i = 1; i <= PAGES; i++) {
        int len = snprintf(key, sizeof key, "page:%d", i);
        check(hm_set(store, key, (size_t)len, page, sizeof page, &error));
    }
    hm_stats stats = {.size = sizeof stats};
    check(hm_get_stats(store, &stats, &error));
    printf("after %d pages the file has at most 4 MiB: %s\n", PAGES, yes(stats.bytes_file <= MAX_BYTES));
    printf("the last page is there, the first made room: %s\n", yes(exists(store, key) && !exists(store, "page:1")));

    check(hm_close(store, &error));
    check(hm_remove("sample-cache", &error));
    return 0;
}
