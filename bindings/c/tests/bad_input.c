/* What a caller can do wrong: an error with a text, and never a crash. */
#include "test.h"

static hm_store *store;

static void null_arguments(void) {
    char buffer[8];
    size_t len;
    hm_view view;
    hm_metadata meta;
    EXPECT(HM_E_ARGUMENT, hm_open(NULL, NULL, &store, &error));
    EXPECT(HM_E_ARGUMENT, hm_open("bad", NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_remove(NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_path_of(NULL, buffer, 8, &len, &error));
    EXPECT(HM_E_ARGUMENT, hm_path_of("x", NULL, 8, &len, &error));
    EXPECT(HM_E_ARGUMENT, hm_path_of("x", buffer, 8, NULL, &error));
    store = new_store("bad", 0);
    EXPECT(HM_E_ARGUMENT, hm_set(NULL, KEY("k"), KEY("v"), &error));
    EXPECT(HM_E_ARGUMENT, hm_set(store, NULL, 1, KEY("v"), &error));
    EXPECT(HM_E_ARGUMENT, hm_set(store, KEY("k"), NULL, 1, &error));
    EXPECT(HM_E_ARGUMENT, hm_get(store, KEY("k"), NULL, 1, &len, &error));
    EXPECT(HM_E_ARGUMENT, hm_get(store, KEY("k"), buffer, 8, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_get_item(store, KEY("k"), buffer, 8, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_value_len(store, KEY("k"), NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_ttl(store, KEY("k"), NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_view_acquire(store, KEY("k"), NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_view_acquire(NULL, KEY("k"), &view, &error));
    hm_view_release(&view); /* after a call that failed there is nothing to release */
    EXPECT(HM_E_ARGUMENT, hm_reserve(store, KEY("k"), 1, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_reservation_commit(NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_reservation_abandon(NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_uid_of(store, KEY("k"), NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_id_of(store, KEY("k"), NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_get_many(store, NULL, 1, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_delete_many(store, NULL, 1, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_random(store, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_scan_open(store, NULL, 0, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_scan_next(NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_scan_cursor(NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_parallel_scan(store, 1, NULL, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_len(store, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_get_stats(store, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_each_client(store, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_get_and_touch(store, KEY("k"), HM_NEVER, 0, buffer, 8, NULL, &error));
    CHECK(hm_set(store, NULL, 1, NULL, 0, NULL) == HM_E_ARGUMENT); /* the caller wants no text */
    const hm_bytes bad[2] = {{"k", 1}, {NULL, 1}};
    EXPECT(HM_E_ARGUMENT, hm_delete_many(store, bad, 2, NULL, &error));
    EXPECT(HM_ABSENT, hm_get_metadata(store, KEY("k"), &meta, &error));
}

static void lengths(void) {
    char buffer[8];
    size_t len;
    hm_reservation room;
    const size_t huge[] = {(size_t)UINT32_MAX + 1, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX - 7, SIZE_MAX};
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        EXPECT(HM_E_TOO_LARGE, hm_set(store, "k", huge[i], "v", 1, &error));
        EXPECT(HM_E_TOO_LARGE, hm_set(store, "k", 1, "v", huge[i], &error));
        EXPECT(HM_E_TOO_LARGE, hm_get(store, "k", huge[i], buffer, 8, &len, &error));
        EXPECT(HM_E_TOO_LARGE, hm_reserve(store, "k", 1, huge[i], NULL, &room, &error));
        const hm_bytes key = {"k", huge[i]};
        EXPECT(HM_E_TOO_LARGE, hm_delete_many(store, &key, 1, NULL, &error));
        if (huge[i] > SIZE_MAX / 2)
            EXPECT(HM_E_ARGUMENT, hm_delete_many(store, &key, huge[i], NULL, &error));
    }
    EXPECT(HM_E_INVALID_STATE, hm_reservation_commit(&room, NULL, &error));
    EXPECT(HM_ABSENT, hm_get(store, "k", 1, buffer, SIZE_MAX, &len, &error));
    EXPECT(HM_E_ARGUMENT, hm_parallel_scan(store, 0, NULL, NULL, NULL, &error));
}

static int stop(void *user, const hm_pair *pair) {
    (void)user, (void)pair;
    return 1;
}

static void numbers(void) {
    const hm_attributes negative = {0, HM_AFTER, -1, 0}, past = {0, HM_AT, INT64_MIN, 0}, strange = {0, 3, 1, 0};
    const hm_counter create = {0, {0, HM_AFTER, -5, 0}};
    EXPECT(HM_E_ARGUMENT, hm_set_with(store, KEY("k"), KEY("v"), &negative, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_set_with(store, KEY("k"), KEY("v"), &past, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_set_with(store, KEY("k"), KEY("v"), &strange, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_incr(store, KEY("k"), 1, &create, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_touch(store, KEY("k"), HM_AFTER, -1, &error));
    EXPECT(HM_E_ARGUMENT, hm_touch(store, KEY("k"), -1, 1, &error));
    EXPECT(HM_E_ARGUMENT, hm_parallel_scan(store, 1025, NULL, stop, NULL, &error));
    const hm_attributes most = {.min_version = UINT64_C(1) << 41}, beyond = {.min_version = (UINT64_C(1) << 41) + 1};
    hm_stored stored;
    EXPECT(HM_E_INVALID_STATE, hm_set_with(store, KEY("asked"), KEY("v"), &beyond, NULL, &error));
    EXPECT(HM_ABSENT, hm_contains(store, KEY("asked"), &error));
    EXPECT(HM_OK, hm_set_with(store, KEY("asked"), KEY("v"), &most, &stored, &error));
    CHECK(stored.version == UINT64_C(1) << 41);
    EXPECT(HM_OK, hm_delete(store, KEY("asked"), &error));
    hm_attributes late = {0, HM_AFTER, INT64_MAX, 0};
    EXPECT(HM_OK, hm_set_with(store, KEY("late"), KEY("v"), &late, NULL, &error));
    EXPECT(HM_OK, hm_contains(store, KEY("late"), &error));
    hm_filter filter = {.size = sizeof filter, .flags = 2};
    hm_scan *scan;
    EXPECT(HM_E_ARGUMENT, hm_scan_open(store, &filter, 0, &scan, &error));
    filter.flags = 0, filter.prefix.len = 1;
    EXPECT(HM_E_ARGUMENT, hm_scan_open(store, &filter, 0, &scan, &error));
    filter.size = 0;
    EXPECT(HM_E_ARGUMENT, hm_scan_open(store, &filter, 0, &scan, &error));
    static const char *const malformed[] = {"[a", "x[]", "[z-a]", "a\\"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        hm_filter bad = {.size = sizeof bad, .glob = {malformed[i], strlen(malformed[i])}};
        EXPECT(HM_E_BAD_PATTERN, hm_scan_open(store, &bad, 0, &scan, &error));
        CHECK(strstr(error.text, "the pattern \"") != NULL);
    }
    hm_stats stats = {0};
    EXPECT(HM_E_ARGUMENT, hm_get_stats(store, &stats, &error));
    hm_report report = {.size = SIZE_MAX};
    EXPECT(HM_E_ARGUMENT, hm_check(store, &report, NULL, NULL, &error));
}

static void options(void) {
    const uint64_t flags[] = {UINT64_C(1) << 10, UINT64_C(1) << 63, HM_STRICT | HM_CACHE, HM_NO_CREATE | HM_CREATE_NEW};
    hm_options given = {.size = sizeof given};
    hm_store *other;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        given.flags = flags[i];
        EXPECT(HM_E_ARGUMENT, hm_open("other", &given, &other, &error));
        CHECK(other == NULL);
    }
    given.flags = HM_CACHE;
    EXPECT(HM_E_BAD_OPTION, hm_open("other", &given, &other, &error));
    given.flags = 0, given.feed = 1;
    EXPECT(HM_E_BAD_OPTION, hm_open("other", &given, &other, &error));
    given.feed = 0, given.size = 0;
    EXPECT(HM_E_ARGUMENT, hm_open("other", &given, &other, &error));
    given.size = sizeof given, given.segment_bytes = 5;
    EXPECT(HM_E_BAD_OPTION, hm_open("other", &given, &other, &error));
    given.segment_bytes = 0, given.flags = HM_NO_CREATE;
    EXPECT(HM_E_NOT_FOUND, hm_open("other", &given, &other, &error));
    given.flags = HM_CREATE_NEW;
    EXPECT(HM_E_ALREADY_EXISTS, hm_open("bad", &given, &other, &error));
    given.flags = 0, given.fixed_key_len = 3;
    EXPECT(HM_E_OPTION_MISMATCH, hm_open("bad", &given, &other, &error));
    EXPECT(HM_E_BAD_NAME, hm_open("", NULL, &other, &error));
    EXPECT(HM_E_BAD_NAME, hm_open("a\nb", NULL, &other, &error));
    EXPECT(HM_E_NOT_A_STORE, hm_open("/dev/null", NULL, &other, &error));
    char path[5000];
    memset(path, '/', sizeof path);
    path[sizeof path - 1] = 0;
    memset(path + 1, 'x', sizeof path - 2);
    EXPECT(HM_E_IO, hm_open(path, NULL, &other, &error));
    CHECK(error.os_error == 36); /* ENAMETOOLONG */
}

static void closed(void) {
    char buffer[8];
    size_t len;
    hm_store *gone = new_store("gone", 0);
    hm_view view;
    hm_reservation room;
    hm_scan *scan;
    hm_pair pair;
    EXPECT(HM_OK, hm_set(gone, KEY("k"), KEY("value"), &error));
    EXPECT(HM_OK, hm_view_acquire(gone, KEY("k"), &view, &error));
    EXPECT(HM_OK, hm_reserve(gone, KEY("k"), 3, NULL, &room, &error));
    EXPECT(HM_OK, hm_scan_open(gone, NULL, 0, &scan, &error));
    EXPECT(HM_OK, hm_close(gone, &error));
    EXPECT(HM_E_CLOSED, hm_close(gone, &error));
    EXPECT(HM_E_CLOSED, hm_get(gone, KEY("k"), buffer, 8, &len, &error));
    EXPECT(HM_E_CLOSED, hm_set(gone, KEY("k"), KEY("v"), &error));
    EXPECT(HM_E_CLOSED, hm_check(gone, NULL, NULL, NULL, &error));
    /* What was taken before is still good. */
    EQUAL(view.data, view.len, "value");
    EXPECT(HM_OK, hm_scan_next(scan, &pair, &error));
    hm_scan_close(scan);
    memcpy(room.data, "new", 3);
    EXPECT(HM_OK, hm_reservation_commit(&room, NULL, &error));
    hm_view_release(&view);
    EXPECT(HM_OK, hm_close(NULL, &error));
    /* The next to be opened does not come back under the old pointer. */
    for (int i = 0; i < 200; i++) {
        hm_store *other = new_store("gone", 0);
        CHECK(other != gone);
        EXPECT(HM_E_CLOSED, hm_contains(gone, KEY("k"), &error));
        EXPECT(HM_OK, hm_close(other, &error));
    }
}

int main(void) {
    null_arguments();
    lengths();
    numbers();
    options();
    closed();
    EXPECT(HM_OK, hm_check(store, NULL, NULL, NULL, &error));
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
