/* Regular expressions, parts, a scan from a key, a visitor of all keys; dump and load; a store by its name. */
#include "test.h"
#include <hashmere_dump.h>

enum { KEYS = 1000 };

static hm_store *store;

static uint64_t scanned(const hm_filter *filter, uint64_t cursor) {
    hm_scan *scan;
    hm_pair pair;
    uint64_t n = 0;
    EXPECT(HM_OK, hm_scan_open(store, filter, cursor, &scan, &error));
    while (hm_scan_next(scan, &pair, &error) == HM_OK)
        n++;
    hm_scan_close(scan);
    return n;
}

static void filters(void) {
    hm_scan *scan;
    hm_filter filter = {.size = sizeof filter, .regex = {"^k[0-9]5$", 9}};
    CHECK(scanned(&filter, 0) == 9 + 1); /* k15 to k95, and k05 */
    filter.regex = (hm_bytes){"a(", 2};
    EXPECT(HM_E_BAD_PATTERN, hm_scan_open(store, &filter, 0, &scan, &error));
    filter.regex = (hm_bytes){"\xff", 1};
    EXPECT(HM_E_ARGUMENT, hm_scan_open(store, &filter, 0, &scan, &error));
    filter.regex = (hm_bytes){NULL, 0};
    uint64_t all = 0;
    for (filter.part = 0, filter.parts = 3; filter.part < 3; filter.part++)
        all += scanned(&filter, 0);
    CHECK(all == KEYS);
    EXPECT(HM_E_BAD_PART, hm_scan_open(store, &filter, 0, &scan, &error));
    filter.parts = 0;
    EXPECT(HM_E_BAD_PART, hm_scan_open(store, &filter, 0, &scan, &error));
}

static void from_a_key(void) {
    hm_scan *scan;
    hm_pair pair;
    uint64_t cursor, same;
    const hm_key key = hm_key_bytes("k77", 3);
    EXPECT(HM_OK, hm_cursor_of(store, KEY("k77"), &cursor, &error));
    EXPECT(HM_OK, hm_cursor_of_at(store, &key, &same, &error));
    CHECK(cursor == same);
    EXPECT(HM_OK, hm_scan_open(store, NULL, cursor, &scan, &error));
    EXPECT(HM_OK, hm_scan_next(scan, &pair, &error));
    EQUAL(pair.key.data, pair.key.len, "k77");
    hm_scan_close(scan);
    EXPECT(HM_ABSENT, hm_cursor_of(store, KEY("absent"), &cursor, &error));
}

struct answer {
    int32_t action;
    int calls;
};

static void answer(void *user, const hm_pair *old, hm_change *change) {
    struct answer *answer = user;
    CHECK(old != NULL && old->key.len > 1);
    answer->calls++;
    change->action = answer->action;
    change->value = (hm_bytes){"new", 3};
}

static void each(void) {
    uint64_t changed = 0;
    struct answer set = {HM_SET, 0}, keep = {HM_KEEP, 0}, drop = {HM_REMOVE, 0}, bad = {17, 0};
    const hm_filter filter = {.size = sizeof filter, .prefix = {"k9", 2}};
    EXPECT(HM_OK, hm_update_each(store, &filter, answer, &set, &changed, &error));
    CHECK(changed == 110 && set.calls == 110);
    EXPECT(HM_OK, hm_update_each(store, &filter, answer, &keep, &changed, &error));
    CHECK(changed == 0 && keep.calls == 110);
    EXPECT(HM_E_ARGUMENT, hm_update_each(store, NULL, answer, &bad, NULL, &error));
    CHECK(bad.calls == 1);
    EXPECT(HM_E_ARGUMENT, hm_update_each(store, NULL, NULL, NULL, NULL, &error));
    EXPECT(HM_OK, hm_update_each(store, &filter, answer, &drop, NULL, &error));
    CHECK(scanned(&filter, 0) == 0 && scanned(NULL, 0) == KEYS - 110);
}

/* A path in the folder of the stores, which the test leaves empty. */
static const char *beside(const char *name) {
    static char paths[4][4096];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", getenv("HASHMERE_DIR"), name);
    return path;
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void text(void) {
    uint64_t records = 0;
    char value[8];
    size_t len;
    const hm_filter filter = {.size = sizeof filter, .prefix = {"k1", 2}};
    EXPECT(HM_OK, hm_dump(store, beside("all.tsv"), HM_FORMAT_OF_NAME, &filter, &records, &error));
    CHECK(records == 110);
    EXPECT(HM_OK, hm_dump_named("dump", beside("all.jsonl"), HM_TSV, &filter, NULL, &error));
    EXPECT(HM_OK, hm_load_named("copy", NULL, beside("all.jsonl"), HM_TSV, &records, &error));
    CHECK(records == 110);
    hm_store *copy;
    EXPECT(HM_OK, hm_open("copy", NULL, &copy, &error));
    EXPECT(HM_OK, hm_get(copy, KEY("k123"), value, sizeof value, &len, &error));
    EQUAL(value, len, "123");
    EXPECT(HM_E_MALFORMED, hm_load(copy, beside("all.jsonl"), HM_JSONL, NULL, &error));
    CHECK(strstr(error.text, "line 1") && strstr(error.text, "no line before it was loaded"));
    write_file(beside("bad.tsv"), "one\t1\ntwo\n");
    EXPECT(HM_E_MALFORMED, hm_load(copy, beside("bad.tsv"), HM_FORMAT_OF_NAME, &records, &error));
    CHECK(strstr(error.text, "line 2") && strstr(error.text, "the first line is loaded"));
    EXPECT(HM_OK, hm_contains(copy, KEY("one"), &error));
    EXPECT(HM_E_IO, hm_load(copy, beside("absent.tsv"), HM_TSV, NULL, &error));
    CHECK(error.os_error == 2);
    EXPECT(HM_E_IO, hm_dump(copy, "/nowhere/at/all", HM_TSV, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_dump(copy, beside("x"), 3, NULL, NULL, &error));
    EXPECT(HM_OK, hm_close(copy, &error));
    /* A file that is not there creates no store, and a store that is not there is not created by the others. */
    EXPECT(HM_E_IO, hm_load_named("never", NULL, beside("absent.tsv"), HM_TSV, NULL, &error));
    EXPECT(HM_E_NOT_FOUND, hm_dump_named("never", beside("x"), HM_TSV, NULL, NULL, &error));
    const hm_options no_create = {.size = sizeof no_create, .flags = HM_NO_CREATE};
    EXPECT(HM_E_NOT_FOUND, hm_load_named("never", &no_create, beside("all.tsv"), HM_TSV, NULL, &error));
    for (int i = 0; i < 3; i++)
        CHECK(unlink(beside((const char *[]){"all.tsv", "all.jsonl", "bad.tsv"}[i])) == 0);
}

static void named(void) {
    hm_report report = {.size = sizeof report};
    hm_stats stats = {.size = sizeof stats};
    hm_backup_report copied = {.size = sizeof copied};
    EXPECT(HM_OK, hm_check_named("copy", &report, NULL, NULL, &error));
    CHECK(report.items == 111 && report.problems == 0);
    EXPECT(HM_OK, hm_get_stats_named("copy", &stats, &error));
    CHECK(stats.items == 111);
    EXPECT(HM_OK, hm_backup_named("copy", beside("saved.mere"), 0, &copied, &error));
    CHECK(copied.items == 111);
    EXPECT(HM_E_BACKUP_EXISTS, hm_backup_named("copy", beside("saved.mere"), 0, NULL, &error));
    EXPECT(HM_OK, hm_backup_named("copy", beside("saved.mere"), HM_REPLACE, NULL, &error));
    EXPECT(HM_OK, hm_remove(beside("saved.mere"), &error));
    EXPECT(HM_OK, hm_remove("copy", &error));
    EXPECT(HM_E_NOT_FOUND, hm_check_named("copy", NULL, NULL, NULL, &error));
    EXPECT(HM_E_NOT_FOUND, hm_get_stats_named("copy", &stats, &error));
    EXPECT(HM_E_NOT_FOUND, hm_backup_named("copy", beside("saved.mere"), 0, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_check_named(NULL, NULL, NULL, NULL, &error));
}

int main(void) {
    char key[8];
    store = new_store("dump", 0);
    for (int i = 0; i < KEYS; i++) {
        const int len = snprintf(key, sizeof key, i < 10 ? "k0%d" : "k%d", i);
        EXPECT(HM_OK, hm_set(store, key, (size_t)len, key + 1, (size_t)len - 1, &error));
    }
    filters();
    from_a_key();
    each();
    text();
    named();
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
