/* Calls on many keys and on the store as a whole: bulk, scans, statistics, check, options, names. */
#include "test.h"
#include <pthread.h>
#include <sys/wait.h>

enum { KEYS = 5000 };

static hm_store *store;

struct count {
    pthread_mutex_t lock;
    size_t keys, bytes, stop_after;
    unsigned char seen[KEYS];
};

static int count_value(void *user, size_t index, const hm_bytes *value) {
    struct count *count = user;
    count->keys += value != NULL;
    count->bytes += value ? value->len : 0;
    return index + 1 == count->stop_after;
}

static int count_pair(void *user, const hm_pair *pair) {
    struct count *count = user;
    pthread_mutex_lock(&count->lock);
    char text[8] = {0};
    memcpy(text, pair->key.data, pair->key.len);
    count->seen[atoi(text + 1)]++;
    const int stop = ++count->keys == count->stop_after;
    pthread_mutex_unlock(&count->lock);
    return stop;
}

static void bulk(void) {
    static char texts[KEYS][8];
    static hm_bytes keys[KEYS], values[KEYS];
    struct count count = {.stop_after = 0};
    hm_attributes flags = {7, HM_NEVER, 0, 0};
    size_t removed;
    hm_metadata meta;
    for (int i = 0; i < KEYS; i++) {
        keys[i].data = values[i].data = texts[i];
        keys[i].len = values[i].len = (size_t)snprintf(texts[i], sizeof texts[i], "k%d", i);
    }
    EXPECT(HM_OK, hm_set_many(store, keys, values, KEYS / 2, NULL, &error));
    EXPECT(HM_OK, hm_set_many(store, keys + KEYS / 2, values + KEYS / 2, KEYS / 2, &flags, &error));
    EXPECT(HM_OK, hm_get_metadata(store, KEY("k4999"), &meta, &error));
    CHECK(meta.flags == 7);
    EXPECT(HM_OK, hm_get_many(store, keys, KEYS, count_value, &count, &error));
    CHECK(count.keys == KEYS);
    count.keys = 0, count.stop_after = 10;
    EXPECT(HM_OK, hm_get_many(store, keys, KEYS, count_value, &count, &error));
    CHECK(count.keys == 10);
    EXPECT(HM_OK, hm_delete_many(store, keys, 100, &removed, &error));
    CHECK(removed == 100);
    EXPECT(HM_OK, hm_delete_many(store, keys, 100, &removed, &error));
    CHECK(removed == 0);
    EXPECT(HM_OK, hm_delete_many(store, NULL, 0, NULL, &error));
    EXPECT(HM_OK, hm_set_many(store, keys, values, 100, NULL, &error));
}

static void scans(void) {
    static struct count count;
    hm_scan *scan;
    hm_pair pair;
    uint64_t cursor = 0, n;
    size_t seen = 0;
    memset(&count, 0, sizeof count);
    do { /* a new scan for every hundred keys, from where the one before it stopped */
        EXPECT(HM_OK, hm_scan_open(store, NULL, cursor, &scan, &error));
        for (int i = 0; i < 100 && hm_scan_next(scan, &pair, &error) == HM_OK; i++) {
            CHECK(pair.key.len == pair.value.len && memcmp(pair.key.data, pair.value.data, pair.key.len) == 0);
            count_pair(&count, &pair);
            seen++;
        }
        const int more = hm_scan_cursor(scan, &cursor, &error);
        if (more == HM_END) cursor = 0;
        hm_scan_close(scan);
    } while (cursor != 0);
    CHECK(seen == KEYS);
    for (int i = 0; i < KEYS; i++)
        CHECK(count.seen[i] == 1);
    hm_filter filter = {.size = sizeof filter, .flags = HM_KEYS_ONLY, .prefix = {"k1", 2}, .glob = {"*[05]", 5}};
    EXPECT(HM_OK, hm_scan_open(store, &filter, 0, &scan, &error));
    for (n = 0; hm_scan_next(scan, &pair, &error) == HM_OK; n++)
        CHECK(pair.value.len == 0 && pair.metadata.value_len == pair.key.len);
    CHECK(n == 222); /* k10 k15; k100 to k195; k1000 to k1995 */
    EXPECT(HM_END, hm_scan_next(scan, &pair, &error));
    hm_scan_close(scan);
    hm_scan_close(NULL);
    memset(&count, 0, sizeof count);
    pthread_mutex_init(&count.lock, NULL);
    EXPECT(HM_OK, hm_parallel_scan(store, 4, NULL, count_pair, &count, &error));
    for (int i = 0; i < KEYS; i++)
        CHECK(count.seen[i] == 1);
    count.keys = 0, count.stop_after = 7;
    EXPECT(HM_OK, hm_parallel_scan(store, 1, NULL, count_pair, &count, &error));
    CHECK(count.keys == 7);
    EXPECT(HM_OK, hm_random(store, count_pair, &count, &error));
    CHECK(count.keys == 8);
    EXPECT(HM_OK, hm_scan_open(store, NULL, UINT64_MAX, &scan, &error));
    EXPECT(HM_E_BAD_CURSOR, hm_scan_next(scan, &pair, &error));
    hm_scan_close(scan);
}

static int each_client(void *user, const hm_client *client) {
    *(size_t *)user += client->pid == (uint32_t)getpid() && client->name.len > 0 && client->sets > 0;
    return 0;
}

static int each_problem(void *user, hm_bytes code, uint64_t offset, hm_bytes text) {
    (void)offset;
    FAIL("%.*s: %.*s %p", (int)code.len, (const char *)code.data, (int)text.len, (const char *)text.data, user);
}

static void store_wide(void) {
    uint64_t n;
    hm_stats stats = {.size = sizeof stats};
    hm_report report = {.size = sizeof report};
    size_t clients = 0;
    EXPECT(HM_OK, hm_len(store, &n, &error));
    CHECK(n == KEYS);
    EXPECT(HM_OK, hm_get_stats(store, &stats, &error));
    CHECK(stats.size == sizeof stats && stats.items == KEYS && stats.segment_bytes == 256 << 10 && !stats.is_cache);
    CHECK(stats.clients >= 1 && stats.sets >= KEYS && stats.hits > 0 && stats.bytes_allocated > 0);
    EXPECT(HM_OK, hm_each_client(store, each_client, &clients, &error));
    CHECK(clients == 1);
    EXPECT(HM_OK, hm_check(store, &report, each_problem, NULL, &error));
    CHECK(report.problems == 0 && report.items == KEYS && report.leaves > 0);
    EXPECT(HM_OK, hm_compact(store, &n, &error));
    EXPECT(HM_OK, hm_compact(store, NULL, &error));
    EXPECT(HM_E_INVALID_STATE, hm_sync(store, &error));
    EXPECT(HM_OK, hm_clear(store, &error));
    EXPECT(HM_OK, hm_len(store, &n, &error));
    CHECK(n == 0);
    EXPECT(HM_ABSENT, hm_random(store, count_pair, NULL, &error));
}

static void expired(void) {
    uint64_t n;
    hm_attributes soon = {0, HM_AFTER, 1, 0};
    for (int i = 0; i < 200; i++)
        EXPECT(HM_OK, hm_set_with(store, &i, sizeof i, KEY("v"), &soon, NULL, &error));
    EXPECT(HM_OK, hm_set(store, KEY("stays"), KEY("v"), &error));
    usleep(20000);
    EXPECT(HM_OK, hm_len(store, &n, &error));
    CHECK(n == 201);
    EXPECT(HM_OK, hm_len_exact(store, &n, &error));
    CHECK(n == 1);
    EXPECT(HM_OK, hm_compact(store, NULL, &error));
    EXPECT(HM_OK, hm_len(store, &n, &error));
    CHECK(n == 1);
    EXPECT(HM_OK, hm_clear(store, &error));
}

/* A store that goes with its last user: by an exit without hm_close at once, behind a death when it is opened again. */
static void last_close(void) {
    hm_options options = {.size = sizeof options, .flags = HM_REMOVE_ON_LAST_CLOSE};
    hm_options existing = {.size = sizeof existing, .flags = HM_NO_CREATE | HM_READ_ONLY};
    hm_store *other;
    uint64_t n;
    for (int abrupt = 0; abrupt < 2; abrupt++) {
        pid_t child = fork();
        if (child == 0) {
            EXPECT(HM_OK, hm_open("last", &options, &other, &error));
            EXPECT(HM_OK, hm_set(other, KEY("k"), KEY("v"), &error));
            if (abrupt) _exit(0);
            exit(0);
        }
        int status;
        char path[256];
        size_t len;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        EXPECT(HM_OK, hm_path_of("last", path, sizeof path, &len, &error));
        CHECK((access(path, F_OK) == 0) == abrupt);
        EXPECT(HM_E_NOT_FOUND, hm_open("last", &existing, &other, &error));
    }
    EXPECT(HM_OK, hm_open("last", &options, &other, &error));
    EXPECT(HM_OK, hm_len(other, &n, &error));
    CHECK(n == 0);
    EXPECT(HM_OK, hm_close(other, &error));
}

/* Programs that were built with another version of the header. */
static void growth(void) {
    struct {
        hm_stats stats;
        uint64_t later;
    } newer = {{.size = sizeof newer}, 77};
    EXPECT(HM_OK, hm_get_stats(store, &newer.stats, &error));
    CHECK(newer.later == 0 && newer.stats.size == sizeof newer);
    hm_stats older = {.size = offsetof(hm_stats, bytes_live), .bytes_live = 77};
    EXPECT(HM_OK, hm_get_stats(store, &older, &error));
    CHECK(older.bytes_live == 77);
    struct {
        hm_options options;
        uint64_t later;
    } asked = {{.size = sizeof asked, .flags = HM_NO_CREATE}, 0};
    hm_store *again;
    EXPECT(HM_OK, hm_open("store", &asked.options, &again, &error));
    EXPECT(HM_OK, hm_close(again, &error));
    asked.later = 1;
    EXPECT(HM_E_ARGUMENT, hm_open("store", &asked.options, &again, &error));
    hm_options shorter = {.size = offsetof(hm_options, max_bytes), .flags = HM_NO_CREATE, .max_bytes = 1};
    EXPECT(HM_OK, hm_open("store", &shorter, &again, &error));
    EXPECT(HM_OK, hm_close(again, &error));
}

static void names(void) {
    char path[4096], same[4096];
    size_t len, same_len;
    EXPECT(HM_OK, hm_path(store, path, sizeof path, &len, &error));
    CHECK(strlen(path) == len);
    EXPECT(HM_OK, hm_path_of("store", same, sizeof same, &same_len, &error));
    CHECK(strcmp(path, same) == 0 && len == same_len);
    EXPECT(HM_BUFFER_TOO_SMALL, hm_path(store, path, len, &len, &error)); /* no place for the NUL */
    EXPECT(HM_BUFFER_TOO_SMALL, hm_path_of("store", NULL, 0, &len, &error));
    EXPECT(HM_ABSENT, hm_is_read_only(store, &error));
    EXPECT(HM_ABSENT, hm_remove("absent", &error));
    hm_options only = {.size = sizeof only, .flags = HM_READ_ONLY};
    hm_store *reader;
    EXPECT(HM_OK, hm_open("store", &only, &reader, &error));
    EXPECT(HM_OK, hm_is_read_only(reader, &error));
    EXPECT(HM_E_READ_ONLY, hm_set(reader, KEY("x"), KEY("y"), &error));
    hm_view view;
    EXPECT(HM_OK, hm_set(store, KEY("x"), KEY("copy"), &error));
    EXPECT(HM_OK, hm_view_acquire(reader, KEY("x"), &view, &error));
    CHECK(view.zero_copy == 0);
    EXPECT(HM_OK, hm_close(reader, &error)); /* the view stays */
    EQUAL(view.data, view.len, "copy");
    hm_view_release(&view);
}

static void kinds(void) {
    hm_options durable = {.size = sizeof durable, .flags = HM_DURABLE | HM_CREATE_NEW | HM_REMOVE_ON_LAST_CLOSE};
    hm_store *other;
    uint64_t n;
    EXPECT(HM_OK, hm_open("durable", &durable, &other, &error));
    EXPECT(HM_OK, hm_set(other, KEY("k"), KEY("v"), &error));
    EXPECT(HM_OK, hm_sync(other, &error));
    hm_stats stats = {.size = sizeof stats};
    EXPECT(HM_OK, hm_get_stats(other, &stats, &error));
    CHECK(stats.is_durable == 1 && stats.syncs >= 1);
    EXPECT(HM_OK, hm_close(other, &error));
    hm_options fixed = {.size = sizeof fixed,
                        .flags = HM_CREATE_NEW | HM_REMOVE_ON_LAST_CLOSE | HM_NO_VALUES,
                        .fixed_key_len = 4,
                        .expected_items = 1000,
                        .busy_timeout_ms = 10,
                        .segment_bytes = 4096,
                        .leaf_bytes = 256,
                        .permissions = 0640};
    EXPECT(HM_OK, hm_open("fixed", &fixed, &other, &error));
    EXPECT(HM_OK, hm_set(other, KEY("four"), NULL, 0, &error));
    EXPECT(HM_E_WRONG_LENGTH, hm_set(other, KEY("three"), NULL, 0, &error));
    EXPECT(HM_E_WRONG_LENGTH, hm_set(other, KEY("four"), KEY("x"), &error));
    EXPECT(HM_OK, hm_len(other, &n, &error));
    CHECK(n == 1);
    EXPECT(HM_OK, hm_close(other, &error));
    hm_options small = {.size = sizeof small, .flags = HM_CREATE_NEW | HM_REMOVE_ON_LAST_CLOSE, .segment_bytes = 4096};
    small.max_bytes = (1 << 20) + 8 * 4096;
    EXPECT(HM_OK, hm_open("small", &small, &other, &error));
    char value[1000] = {0};
    int rc = HM_OK;
    for (int i = 0; i < 1000 && rc == HM_OK; i++)
        rc = hm_set(other, &i, sizeof i, value, sizeof value, &error);
    CHECK(rc == HM_E_FULL && error.code == HM_E_FULL);
    EXPECT(HM_OK, hm_clear(other, &error));
    EXPECT(HM_OK, hm_set(other, KEY("again"), value, sizeof value, &error));
    EXPECT(HM_OK, hm_close(other, &error));
}

/* A cache that is opened with another size has that size from then on, in handles that were open before, too. */
static void another_maximum(void) {
    hm_store *first, *second;
    hm_options options = {.size = sizeof options, .flags = HM_CACHE, .max_bytes = 8 << 20, .segment_bytes = 8192};
    hm_stats stats = {.size = sizeof stats};
    char value[1000] = {0};
    EXPECT(HM_OK, hm_open("sized", &options, &first, &error));
    for (int i = 0; i < 10000; i++)
        EXPECT(HM_OK, hm_set(first, &i, sizeof i, value, sizeof value, &error));
    options.max_bytes = 3 << 20;
    EXPECT(HM_OK, hm_open("sized", &options, &second, &error));
    for (int i = 0; i < 10000; i++)
        EXPECT(HM_OK, hm_set(first, &i, sizeof i, value, sizeof value, &error));
    EXPECT(HM_OK, hm_get_stats(first, &stats, &error));
    CHECK(stats.bytes_max == 3 << 20 && stats.bytes_allocated <= 3 << 20 && stats.segments_offline > 0);
    EXPECT(HM_OK, hm_close(second, &error));
    options.max_bytes = 1000;
    EXPECT(HM_E_BAD_OPTION, hm_open("sized", &options, &second, &error));
    EXPECT(HM_OK, hm_close(first, &error));
    EXPECT(HM_OK, hm_remove("sized", &error));
    /* A strict store keeps what it has. */
    options.flags = 0;
    options.max_bytes = 8 << 20;
    EXPECT(HM_OK, hm_open("sized", &options, &first, &error));
    for (int i = 0; i < 4000; i++)
        EXPECT(HM_OK, hm_set(first, &i, sizeof i, value, sizeof value, &error));
    options.max_bytes = 3 << 20;
    EXPECT(HM_E_OPTION_MISMATCH, hm_open("sized", &options, &second, &error));
    CHECK(strstr(error.text, "8388608") != NULL && strstr(error.text, "3145728") != NULL);
    EXPECT(HM_OK, hm_get_stats(first, &stats, &error));
    CHECK(stats.items == 4000 && stats.bytes_max == 8 << 20);
    EXPECT(HM_OK, hm_close(first, &error));
    EXPECT(HM_OK, hm_remove("sized", &error));
}

int main(void) {
    CHECK(hm_version() == HM_VERSION_MAJOR * 10000 + HM_VERSION_MINOR * 100 + HM_VERSION_PATCH);
    store = new_store("store", 0);
    bulk();
    scans();
    store_wide();
    expired();
    last_close();
    growth();
    names();
    kinds();
    another_maximum();
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
