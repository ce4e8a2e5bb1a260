/* The first steps: open, set, get, scan, delete, and what an error looks like. */
#include <hashmere.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hm_error error;

/* What a sample does with an error: any positive result is one. */
static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d (%s): %s\n", error.code, hm_result_name(error.code), error.text);
        exit(1);
    }
    return result;
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static void print_keys(hm_store *store) {
    hm_filter filter = {.size = sizeof filter, .flags = HM_KEYS_ONLY, .prefix = {"user:", 5}};
    char keys[8][16];
    size_t count = 0;
    hm_scan *scan;
    hm_pair pair;
    check(hm_scan_open(store, &filter, 0, &scan, &error));
    while (check(hm_scan_next(scan, &pair, &error)) == HM_OK)
        snprintf(keys[count++], sizeof keys[0], "%.*s", (int)pair.key.len, (const char *)pair.key.data);
    hm_scan_close(scan);
    qsort(keys, count, sizeof keys[0], by_name); /* a scan has no order */
    printf("keys:");
    for (size_t i = 0; i < count; i++)
        printf(" %s", keys[i]);
    printf("\n");
}

int main(void) {
    hm_store *store;
    check(hm_open("sample-basic", NULL, &store, &error));
    check(hm_clear(store, &error));

    check(hm_set(store, "user:7", 6, "Ada", 3, &error));
    char name[16];
    size_t len;
    if (check(hm_get(store, "user:7", 6, name, sizeof name, &len, &error)) == HM_OK)
        printf("user:7 is %.*s\n", (int)len, name);
    if (check(hm_get(store, "user:8", 6, name, sizeof name, &len, &error)) == HM_ABSENT)
        printf("user:8 is not there\n");

    check(hm_replace(store, "user:7", 6, "Grace", 5, NULL, NULL, &error));
    check(hm_get(store, "user:7", 6, name, sizeof name, &len, &error));
    printf("now user:7 is %.*s, %zu bytes\n", (int)len, name, len);

    check(hm_add(store, "user:9", 6, "Edsger", 6, NULL, NULL, &error));
    print_keys(store);

    uint64_t count;
    check(hm_delete(store, "user:9", 6, &error));
    check(hm_len(store, &count, &error));
    printf("deleted user:9, %d key is left\n", (int)count);
    check(hm_close(store, &error));
    check(hm_remove("sample-basic", &error));

    hm_options existing = {.size = sizeof existing, .flags = HM_NO_CREATE};
    if (hm_open("sample-basic", &existing, &store, &error) > 0)
        printf("error %d (%s)\n", error.code, hm_result_name(error.code));
    return 0;
}
