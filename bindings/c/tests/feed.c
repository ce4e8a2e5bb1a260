/* The change feed: events of each kind, options, resuming by tokens, a place that is gone, transactions, clears, descriptors, errors. */
#include "test.h"
#include <hashmere_feed.h>
#include <hashmere_transaction.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

enum { MS = 300000 };

/* A new store with a feed. */
static hm_store *fed_store(const char *name, uint64_t flags, uint32_t origin) {
    const hm_options options = {.size = sizeof options, .flags = HM_CREATE_NEW | HM_REMOVE_ON_LAST_CLOSE | flags, .feed = 1 << 20, .origin = origin};
    hm_store *store;
    EXPECT(HM_OK, hm_open(name, &options, &store, &error));
    return store;
}

static hm_feed *opened(hm_store *store, const char *start) {
    const hm_feed_options options = {.size = sizeof options, .flags = HM_FEED_WITH_VALUES};
    hm_feed *feed = NULL;
    EXPECT(HM_OK, hm_feed_open(store, start, &options, &feed, &error));
    return feed;
}

static hm_feed_event next(hm_feed *feed) {
    hm_feed_event event;
    EXPECT(HM_OK, hm_feed_next(feed, MS, &event, &error));
    CHECK(((const char *)event.token.data)[event.token.len] == 0 && (event.kind == HM_FEED_RESET) == (event.token.len == 0));
    return event;
}

static void expect_none(hm_feed *feed) {
    hm_feed_event event;
    EXPECT(HM_TIMEOUT, hm_feed_next(feed, 0, &event, &error));
}

static void expect_kind(hm_feed *feed, int32_t kind) {
    const hm_feed_event event = next(feed);
    CHECK(event.kind == kind && event.key.len == 0 && event.value.len == 0 && event.transaction_len == 0);
}

/* A change of a key to a value; NULL: it is gone. */
static hm_feed_event expect_change(hm_feed *feed, int32_t operation, const char *key, const char *value) {
    const hm_feed_event event = next(feed);
    CHECK(event.kind == (operation == HM_FEED_OP_READ ? HM_FEED_READ : HM_FEED_CHANGE) && event.operation == operation);
    CHECK(event.key.len == strlen(key) && memcmp(event.key.data, key, event.key.len) == 0);
    CHECK(event.value_state == (value ? HM_FEED_VALUE_BYTES : HM_FEED_VALUE_ABSENT));
    if (value)
        CHECK(event.value.len == strlen(value) && event.value_len == event.value.len && memcmp(event.value.data, value, event.value.len) == 0);
    return event;
}

static void set(hm_store *store, const char *key, const char *value) {
    EXPECT(HM_OK, hm_set(store, key, strlen(key), value, strlen(value), &error));
}

static void events(void) {
    hm_store *store = fed_store("feed-events", HM_FEED_VALUES, 7);
    set(store, "a", "1");
    hm_feed *feed = opened(store, "start");
    const hm_feed_event reset = next(feed);
    CHECK(reset.kind == HM_FEED_RESET && reset.reason == HM_FEED_ASKED);
    hm_feed_event event = expect_change(feed, HM_FEED_OP_READ, "a", "1");
    CHECK(event.origin == 0 && event.version > 0);
    expect_kind(feed, HM_FEED_SYNCED);
    expect_none(feed);

    const hm_attributes attributes = {.flags = 9, .expiry = HM_AT, .expiry_ms = INT64_C(9000000000000)};
    hm_stored stored;
    EXPECT(HM_OK, hm_set_with(store, KEY("b"), KEY("two"), &attributes, &stored, &error));
    EXPECT(HM_OK, hm_touch(store, KEY("b"), HM_NEVER, 0, &error));
    EXPECT(HM_OK, hm_delete(store, KEY("a"), &error));
    const hm_key hashed = hm_key_hashed("h", 1, 77);
    EXPECT(HM_OK, hm_set_at(store, &hashed, KEY("v"), &error));
    uint64_t lag = 0;
    EXPECT(HM_OK, hm_feed_lag(feed, &lag, &error));
    CHECK(lag == 4);
    event = expect_change(feed, HM_FEED_OP_SET, "b", "two");
    const uint64_t now = (uint64_t)time(NULL) * 1000;
    CHECK(event.flags == 9 && event.expires_at_ms == UINT64_C(9000000000000) && event.version == stored.version && event.origin == 7);
    CHECK(event.ts_ms < now + 60000 && event.ts_ms + 60000 > now && event.has_supplied_hash == 0 && event.transaction_len == 0);
    event = expect_change(feed, HM_FEED_OP_TOUCH, "b", "two");
    CHECK(event.expires_at_ms == 0 && event.version == stored.version);
    expect_change(feed, HM_FEED_OP_DELETE, "a", NULL);
    event = expect_change(feed, HM_FEED_OP_SET, "h", "v");
    CHECK(event.has_supplied_hash == 1 && event.supplied_hash == 77);
    EXPECT(HM_OK, hm_feed_lag(feed, &lag, &error));
    CHECK(lag == 0);
    hm_feed_close(feed);

    /* Without values, and with a prefix. */
    const hm_feed_options users = {.size = sizeof users, .prefix = {"user:", 5}};
    EXPECT(HM_OK, hm_feed_open(store, NULL, &users, &feed, &error));
    set(store, "page:1", "x");
    set(store, "user:1", "Ada");
    event = next(feed);
    EQUAL(event.key.data, event.key.len, "user:1");
    CHECK(event.value_state == HM_FEED_VALUE_NOT_KEPT && event.value.len == 0 && event.value_len == 3);
    expect_none(feed);
    /* A consumer keeps the file open. */
    EXPECT(HM_OK, hm_clear(store, &error));
    EXPECT(HM_OK, hm_close(store, &error));
    expect_kind(feed, HM_FEED_CLEAR);
    hm_feed_close(feed);
    hm_feed_close(NULL);
}

static void resuming(void) {
    hm_store *store = fed_store("feed-resuming", HM_FEED_VALUES, 0);
    hm_feed *feed = opened(store, "now");
    hm_write_batch *batch;
    set(store, "gone", "1");
    EXPECT(HM_OK, hm_write_batch_open(&batch, &error));
    EXPECT(HM_OK, hm_write_batch_set(batch, KEY("a"), KEY("1"), NULL, &error));
    EXPECT(HM_OK, hm_write_batch_delete(batch, KEY("gone"), &error));
    EXPECT(HM_OK, hm_write_batch_commit(store, batch, NULL, NULL, &error));
    hm_write_batch_close(batch);
    set(store, "b", "2");

    char first[200], middle[200], last[200], token[200];
    hm_feed_event event = expect_change(feed, HM_FEED_OP_SET, "gone", "1");
    snprintf(first, sizeof first, "%s", (const char *)event.token.data);
    size_t len = 0;
    EXPECT(HM_BUFFER_TOO_SMALL, hm_feed_token(feed, NULL, 0, &len, &error));
    CHECK(len == strlen(first) && len <= 160);
    EXPECT(HM_OK, hm_feed_token(feed, token, sizeof token, &len, &error));
    CHECK(len == strlen(token) && strcmp(token, first) == 0);
    event = expect_change(feed, HM_FEED_OP_SET, "a", "1");
    const uint64_t id = event.transaction_id;
    CHECK(event.transaction_index == 0 && event.transaction_len == 2);
    snprintf(middle, sizeof middle, "%s", (const char *)event.token.data);
    event = expect_change(feed, HM_FEED_OP_DELETE, "gone", NULL);
    CHECK(event.transaction_index == 1 && event.transaction_len == 2 && event.transaction_id == id);
    snprintf(last, sizeof last, "%s", (const char *)event.token.data);
    expect_change(feed, HM_FEED_OP_SET, "b", "2");
    hm_feed_close(feed);

    /* From within a transaction it comes whole again. */
    const char *const begins[] = {first, middle};
    for (int i = 0; i < 2; i++) {
        feed = opened(store, begins[i]);
        expect_change(feed, HM_FEED_OP_SET, "a", "1");
        expect_change(feed, HM_FEED_OP_DELETE, "gone", NULL);
        hm_feed_close(feed);
    }
    feed = opened(store, last);
    expect_change(feed, HM_FEED_OP_SET, "b", "2");
    expect_none(feed);
    hm_feed_close(feed);

    /* What is not kept any more: every key again. */
    for (int i = 0; i < 60000; i++) EXPECT(HM_OK, hm_set(store, KEY("k"), &i, sizeof i, &error));
    feed = opened(store, last);
    event = next(feed);
    CHECK(event.kind == HM_FEED_RESET && event.reason == HM_FEED_GONE);
    int reads = 0;
    for (event = next(feed); event.kind == HM_FEED_READ; event = next(feed)) reads++;
    CHECK(event.kind == HM_FEED_SYNCED && reads == 3);
    hm_feed_close(feed);
    hm_store *other = fed_store("feed-other", 0, 0);
    feed = opened(other, last);
    event = next(feed);
    CHECK(event.kind == HM_FEED_RESET && event.reason == HM_FEED_OTHER_FEED);
    hm_feed_close(feed);
    EXPECT(HM_OK, hm_close(other, &error));
    EXPECT(HM_OK, hm_close(store, &error));
}

static void switching(void) {
    hm_store *store = new_store("feed-switching", 0);
    hm_feed *feed = (hm_feed *)1;
    hm_feed_event event;
    hm_feed_info info = {.size = sizeof info};
    EXPECT(HM_ABSENT, hm_feed_get_info(store, &info, &error));
    EXPECT(HM_E_FEED_OFF, hm_feed_open(store, "now", NULL, &feed, &error));
    CHECK(feed == NULL && strstr(error.text, "`feed`") != NULL && strcmp(hm_result_name(HM_E_FEED_OFF), "FeedOff") == 0);
    EXPECT(HM_ABSENT, hm_feed_disable(store, &error));
    EXPECT(HM_E_INVALID_STATE, hm_feed_enable(store, 1000, 1, &error));
    CHECK(strstr(error.text, "1 MiB") != NULL);
    EXPECT(HM_OK, hm_feed_enable(store, 1 << 20, 1, &error));
    EXPECT(HM_OK, hm_feed_get_info(store, &info, &error));
    CHECK(info.number > 0 && info.position == info.oldest && info.bytes > 1 << 19 && info.values == 1);
    feed = opened(store, "now");
    set(store, "a", "1");
    expect_change(feed, HM_FEED_OP_SET, "a", "1");
    EXPECT(HM_OK, hm_feed_disable(store, &error));
    EXPECT(HM_E_FEED_OFF, hm_feed_next(feed, 0, &event, &error));
    EXPECT(HM_OK, hm_feed_enable(store, 1 << 20, 0, &error));
    event = next(feed);
    CHECK(event.kind == HM_FEED_RESET && event.reason == HM_FEED_OTHER_FEED);
    hm_feed_close(feed);

    EXPECT(HM_E_BAD_TOKEN, hm_feed_open(store, "hm1-nonsense", NULL, &feed, &error));
    CHECK(feed == NULL && strstr(error.text, "`hm1-nonsense`") != NULL && strcmp(hm_result_name(HM_E_BAD_TOKEN), "BadToken") == 0);
    EXPECT(HM_E_ARGUMENT, hm_feed_open(store, "\xff", NULL, &feed, &error));
    EXPECT(HM_E_ARGUMENT, hm_feed_open(NULL, "now", NULL, &feed, &error));
    EXPECT(HM_E_ARGUMENT, hm_feed_open(store, "now", NULL, NULL, &error));
    hm_feed_options bad = {.size = sizeof bad, .flags = 1 << 5};
    EXPECT(HM_E_ARGUMENT, hm_feed_open(store, "now", &bad, &feed, &error));
    bad = (hm_feed_options){.size = sizeof bad, .prefix = {NULL, 5}};
    EXPECT(HM_E_ARGUMENT, hm_feed_open(store, "now", &bad, &feed, &error));
    EXPECT(HM_E_ARGUMENT, hm_feed_next(NULL, 0, &event, &error));
    EXPECT(HM_OK, hm_close(store, &error));
    EXPECT(HM_E_CLOSED, hm_feed_open(store, "now", NULL, &feed, &error));
}

static int is_readable(int fd, int ms) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, ms) == 1 && (one.revents & POLLIN) != 0;
}

static void *set_later(void *store) {
    const struct timespec moment = {0, 50 * 1000 * 1000};
    nanosleep(&moment, NULL);
    CHECK(hm_set(store, KEY("late"), KEY("1"), NULL) == HM_OK);
    return NULL;
}

/* A descriptor in an event loop, and a wait that a write of another thread ends. */
static void loops(void) {
    hm_store *store = fed_store("feed-loops", HM_FEED_VALUES, 0);
    hm_feed *feed = opened(store, "now");
    int fd = -1, again = -1;
    EXPECT(HM_OK, hm_feed_ready_fd(feed, &fd, &error));
    EXPECT(HM_OK, hm_feed_ready_fd(feed, &again, &error));
    CHECK(fd >= 0 && fd == again && !is_readable(fd, 20));
    for (int i = 0; i < 3; i++) {
        set(store, "a", "1");
        CHECK(is_readable(fd, MS));
        expect_change(feed, HM_FEED_OP_SET, "a", "1");
        CHECK(is_readable(fd, MS));
        expect_none(feed); /* takes it back */
        CHECK(!is_readable(fd, 20));
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, set_later, store) == 0);
    expect_change(feed, HM_FEED_OP_SET, "late", "1");
    CHECK(pthread_join(thread, NULL) == 0);
    hm_feed_close(feed);
    EXPECT(HM_OK, hm_close(store, &error));
}

int main(void) {
    events();
    resuming();
    switching();
    loops();
    return 0;
}
