/* Batches, conditions, transactions and snapshot reads, and what each of their outcomes looks like. */
#include "test.h"

#include <hashmere_transaction.h>
#include <math.h>
#include <sys/wait.h>

static hm_store *store;

#define ACCOUNTS 20
#define START 1000

/* What the operations of a batch did. */
typedef struct results {
    hm_batch_result of[16];
    char value[16][32];
    size_t count, end;
} results;

static int keep(void *user, size_t index, const hm_batch_result *result) {
    results *r = user;
    CHECK(index == r->count && index < 16 && result->reserved == 0 && result->value.len < 32);
    r->of[index] = *result;
    if (result->value.len) memcpy(r->value[index], result->value.data, result->value.len);
    r->count++;
    return r->end && r->count == r->end;
}

static int get_is(const char *key, const char *value) {
    char buffer[64];
    size_t len;
    int rc = hm_get(store, key, strlen(key), buffer, sizeof buffer, &len, &error);
    return value ? rc == HM_OK && len == strlen(value) && memcmp(buffer, value, len) == 0 : rc == HM_ABSENT;
}

static void batches(void) {
    hm_write_batch *batch;
    results r = {.count = 0};
    size_t len = 9;
    EXPECT(HM_OK, hm_write_batch_open(&batch, &error));
    EXPECT(HM_OK, hm_write_batch_len(batch, &len, &error));
    CHECK(len == 0);
    /* One without operations is done at once. */
    EXPECT(HM_OK, hm_write_batch_commit(store, batch, keep, &r, &error));
    CHECK(r.count == 0);
    const hm_attributes with = {7, HM_AFTER, 100000, 0};
    const hm_counter create = {40, {0, HM_NEVER, 0, 0}};
    EXPECT(HM_OK, hm_write_batch_set(batch, KEY("a"), KEY("1"), NULL, &error));
    EXPECT(HM_OK, hm_write_batch_set(batch, KEY("b"), KEY("x"), &with, &error));
    EXPECT(HM_OK, hm_write_batch_incr_by(batch, KEY("a"), 4, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_incr_by(batch, KEY("made"), 2, &create, &error));
    EXPECT(HM_OK, hm_write_batch_incr_by(batch, KEY("no"), 2, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_append(batch, KEY("b"), KEY("yz"), &error));
    EXPECT(HM_OK, hm_write_batch_prepend(batch, KEY("b"), KEY("w"), &error));
    EXPECT(HM_OK, hm_write_batch_append(batch, KEY("no"), KEY("yz"), &error));
    EXPECT(HM_OK, hm_write_batch_touch(batch, KEY("made"), HM_AFTER, 50000, &error));
    EXPECT(HM_OK, hm_write_batch_delete(batch, KEY("no"), &error));
    EXPECT(HM_OK, hm_write_batch_get(batch, KEY("b"), &error));
    EXPECT(HM_OK, hm_write_batch_get(batch, KEY("no"), &error));
    EXPECT(HM_OK, hm_write_batch_set(batch, NULL, 0, NULL, 0, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_len(batch, &len, &error));
    CHECK(len == 13);
    EXPECT(HM_OK, hm_write_batch_commit(store, batch, keep, &r, &error));
    CHECK(r.count == 13);
    const int wanted[] = {HM_OK, HM_OK, HM_OK, HM_OK, HM_ABSENT, HM_OK, HM_OK, HM_ABSENT, HM_OK, HM_ABSENT, HM_OK, HM_ABSENT, HM_OK};
    for (size_t i = 0; i < 13; i++) CHECK(r.of[i].result == wanted[i]);
    CHECK(r.of[0].stored.version != 0 && r.of[0].stored.created == 1 && r.of[2].number == 5 && r.of[3].number == 40);
    EQUAL(r.value[10], r.of[10].value.len, "wxyz");
    CHECK(r.of[10].metadata.value_len == 4 && r.of[10].metadata.flags == 7 && r.of[10].metadata.version == 0);
    CHECK(get_is("a", "5") && get_is("b", "wxyz") && get_is("made", "40") && get_is("no", NULL) && get_is("", ""));
    int64_t ms;
    EXPECT(HM_OK, hm_ttl(store, KEY("made"), &ms, &error));
    CHECK(ms > 0 && ms <= 50000);
    /* The same again; the callback ends early. */
    r = (results){.end = 3};
    EXPECT(HM_OK, hm_write_batch_commit(store, batch, keep, &r, &error));
    CHECK(r.count == 3 && r.of[0].stored.created == 0);
    /* One operation that cannot be: none happens. */
    EXPECT(HM_OK, hm_write_batch_clear(batch, &error));
    EXPECT(HM_OK, hm_write_batch_set(batch, KEY("c"), KEY("1"), NULL, &error));
    EXPECT(HM_OK, hm_write_batch_incr_by(batch, KEY("b"), 1, NULL, &error));
    EXPECT(HM_E_NOT_A_NUMBER, hm_write_batch_commit(store, batch, NULL, NULL, &error));
    CHECK(get_is("c", NULL));
    /* The other kinds of counter. */
    EXPECT(HM_OK, hm_write_batch_clear(batch, &error));
    const hm_signed_counter below = {-2, {0, HM_NEVER, 0, 0}};
    const hm_float_counter tenth = {0.1, {0, HM_NEVER, 0, 0}};
    EXPECT(HM_OK, hm_write_batch_incr_signed(batch, KEY("signed"), 1, &below, &error));
    EXPECT(HM_OK, hm_write_batch_incr_signed(batch, KEY("signed"), -5, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_incr_signed(batch, KEY("no"), 1, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_incr_float(batch, KEY("float"), 1, &tenth, &error));
    EXPECT(HM_OK, hm_write_batch_incr_float(batch, KEY("float"), 0.2, NULL, &error));
    r = (results){.count = 0};
    EXPECT(HM_OK, hm_write_batch_commit(store, batch, keep, &r, &error));
    CHECK(r.count == 5 && r.of[0].signed_number == -2 && r.of[1].signed_number == -7 && r.of[2].result == HM_ABSENT);
    CHECK(r.of[3].float_number == 0.1 && r.of[4].float_number == 0.3 && get_is("signed", "-7") && get_is("float", "0.3"));
    EXPECT(HM_OK, hm_write_batch_incr_signed(batch, KEY("signed"), INT64_MIN, NULL, &error));
    EXPECT(HM_E_OVERFLOW, hm_write_batch_commit(store, batch, NULL, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_clear(batch, &error));
    EXPECT(HM_OK, hm_write_batch_incr_float(batch, KEY("float"), INFINITY, NULL, &error));
    EXPECT(HM_E_INVALID_STATE, hm_write_batch_commit(store, batch, NULL, NULL, &error));
    CHECK(get_is("signed", "-7") && get_is("float", "0.3"));
    /* The limit, and one more. */
    EXPECT(HM_OK, hm_write_batch_clear(batch, &error));
    for (uint32_t i = 0; i < 1024; i++) EXPECT(HM_OK, hm_write_batch_set(batch, &i, sizeof i, &i, sizeof i, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_commit(store, batch, NULL, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_delete(batch, KEY("one more"), &error));
    EXPECT(HM_E_TOO_MANY_KEYS, hm_write_batch_commit(store, batch, NULL, NULL, &error));
    EXPECT(HM_OK, hm_write_batch_clear(batch, &error));
    for (uint32_t i = 0; i < 1024; i++) EXPECT(HM_OK, hm_write_batch_delete(batch, &i, sizeof i, &error));
    EXPECT(HM_OK, hm_write_batch_commit(store, batch, NULL, NULL, &error));
    hm_write_batch_close(batch);
    hm_write_batch_close(NULL);
}

static void conditions(void) {
    hm_write_batch *then, *otherwise;
    results r = {.count = 0};
    hm_metadata meta;
    EXPECT(HM_OK, hm_write_batch_open(&then, &error));
    EXPECT(HM_OK, hm_write_batch_open(&otherwise, &error));
    EXPECT(HM_OK, hm_set(store, KEY("leader"), KEY("me"), &error));
    EXPECT(HM_OK, hm_get_metadata(store, KEY("leader"), &meta, &error));
    hm_condition all[] = {
        {.key = {"leader", 6}, .kind = HM_IF_PRESENT},
        {.key = {"leader", 6}, .value = {"me", 2}, .kind = HM_IF_VALUE},
        {.key = {"leader", 6}, .version = meta.version, .kind = HM_IF_VERSION},
        {.key = {"other", 5}, .kind = HM_IF_ABSENT},
        {.key = {"other", 5}, .version = 0, .kind = HM_IF_VERSION},
    };
    EXPECT(HM_OK, hm_write_batch_set(then, KEY("leader"), KEY("you"), NULL, &error));
    EXPECT(HM_OK, hm_write_batch_set(then, KEY("since"), KEY("now"), NULL, &error));
    EXPECT(HM_OK, hm_write_batch_get(otherwise, KEY("leader"), &error));
    EXPECT(HM_OK, hm_write_batch_commit_if(store, all, 5, then, otherwise, keep, &r, &error));
    CHECK(r.count == 2 && r.of[1].stored.created == 1 && get_is("leader", "you") && get_is("since", "now"));
    r = (results){.count = 0};
    EXPECT(HM_MISMATCH, hm_write_batch_commit_if(store, all, 5, then, otherwise, keep, &r, &error));
    CHECK(r.count == 1 && r.of[0].metadata.version > meta.version);
    EQUAL(r.value[0], r.of[0].value.len, "you");
    /* Without batches, without conditions. */
    EXPECT(HM_MISMATCH, hm_write_batch_commit_if(store, all, 2, NULL, NULL, keep, &r, &error));
    EXPECT(HM_OK, hm_write_batch_commit_if(store, NULL, 0, NULL, otherwise, NULL, NULL, &error));
    /* Each condition alone decides. */
    for (int i = 0; i < 5; i++) {
        const int holds = i == 0 || i >= 3;
        EXPECT(holds ? HM_OK : HM_MISMATCH, hm_write_batch_commit_if(store, &all[i], 1, NULL, NULL, NULL, NULL, &error));
    }
    /* Wrong ones are refused, and nothing happens. */
    hm_condition wrong[] = {
        {.key = {"since", 5}, .kind = 4},
        {.key = {"since", 5}, .kind = HM_IF_PRESENT, .reserved = 1},
        {.key = {"since", 5}, .kind = HM_IF_PRESENT, .version = 1},
        {.key = {"since", 5}, .kind = HM_IF_ABSENT, .value = {"x", 1}},
        {.key = {NULL, 5}, .kind = HM_IF_PRESENT},
    };
    for (int i = 0; i < 5; i++)
        EXPECT(HM_E_ARGUMENT, hm_write_batch_commit_if(store, &wrong[i], 1, then, then, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_write_batch_commit_if(store, NULL, 1, then, then, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_write_batch_commit_if(NULL, NULL, 0, then, then, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_write_batch_commit(store, NULL, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_write_batch_set(NULL, KEY("a"), KEY("b"), NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_write_batch_touch(then, KEY("a"), 9, 0, &error));
    EXPECT(HM_E_ARGUMENT, hm_write_batch_get(then, NULL, 1, &error));
    EXPECT(HM_E_ARGUMENT, hm_write_batch_len(then, NULL, &error));
    hm_write_batch_close(then);
    hm_write_batch_close(otherwise);
}

static void transactions(void) {
    hm_transaction *t;
    char buffer[64];
    size_t len = 0;
    uint64_t now = 0;
    const hm_attributes with = {3, HM_NEVER, 0, 0};
    const hm_counter create = {10, {0, HM_NEVER, 0, 0}};
    EXPECT(HM_E_ARGUMENT, hm_transaction_open(NULL, &t, &error));
    EXPECT(HM_OK, hm_transaction_open(store, &t, &error));
    EXPECT(HM_OK, hm_transaction_commit(t, &error));
    EXPECT(HM_OK, hm_transaction_rollback(t, &error));
    /* Nothing is seen before the commit, but by the transaction itself. */
    EXPECT(HM_OK, hm_transaction_set(t, KEY("t1"), KEY("value"), &with, &error));
    EXPECT(HM_OK, hm_transaction_get(t, KEY("t1"), buffer, sizeof buffer, &len, &error));
    EQUAL(buffer, len, "value");
    EXPECT(HM_BUFFER_TOO_SMALL, hm_transaction_get(t, KEY("t1"), buffer, 4, &len, &error));
    CHECK(len == 5);
    EXPECT(HM_OK, hm_transaction_incr_by(t, KEY("t2"), 5, &create, &now, &error));
    CHECK(now == 10);
    EXPECT(HM_OK, hm_transaction_incr_by(t, KEY("t2"), -3, NULL, &now, &error));
    CHECK(now == 7);
    EXPECT(HM_ABSENT, hm_transaction_incr_by(t, KEY("t3"), 1, NULL, NULL, &error));
    EXPECT(HM_E_NOT_A_NUMBER, hm_transaction_incr_by(t, KEY("t1"), 1, NULL, &now, &error));
    const hm_signed_counter below = {-2, {0, HM_NEVER, 0, 0}};
    int64_t signed_now;
    double fraction;
    EXPECT(HM_OK, hm_transaction_incr_signed(t, KEY("t4"), 5, &below, &signed_now, &error));
    CHECK(signed_now == -2);
    EXPECT(HM_OK, hm_transaction_incr_float(t, KEY("t4"), 0.5, NULL, &fraction, &error));
    CHECK(fraction == -1.5);
    EXPECT(HM_E_NOT_A_NUMBER, hm_transaction_incr_signed(t, KEY("t4"), 1, NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_transaction_incr_signed(t, KEY("t3"), 1, NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_transaction_incr_float(t, KEY("t3"), 1, NULL, NULL, &error));
    EXPECT(HM_E_INVALID_STATE, hm_transaction_incr_float(t, KEY("t4"), NAN, NULL, NULL, &error));
    EXPECT(HM_OK, hm_transaction_delete(t, KEY("t4"), &error));
    EXPECT(HM_OK, hm_transaction_append(t, KEY("t1"), KEY("!"), &error));
    EXPECT(HM_OK, hm_transaction_prepend(t, KEY("t1"), KEY("my "), &error));
    EXPECT(HM_ABSENT, hm_transaction_append(t, KEY("t3"), KEY("!"), &error));
    EXPECT(HM_OK, hm_transaction_touch(t, KEY("t1"), HM_AFTER, 50000, &error));
    EXPECT(HM_ABSENT, hm_transaction_touch(t, KEY("t3"), HM_NEVER, 0, &error));
    EXPECT(HM_E_ARGUMENT, hm_transaction_touch(t, KEY("t1"), HM_AFTER, -1, &error));
    EXPECT(HM_OK, hm_transaction_contains(t, KEY("t2"), &error));
    EXPECT(HM_ABSENT, hm_transaction_contains(t, KEY("t3"), &error));
    EXPECT(HM_OK, hm_transaction_delete(t, KEY("t2"), &error));
    EXPECT(HM_ABSENT, hm_transaction_contains(t, KEY("t2"), &error));
    CHECK(get_is("t1", NULL));
    EXPECT(HM_OK, hm_transaction_commit(t, &error));
    CHECK(get_is("t1", "my value!") && get_is("t2", NULL));
    /* Afterwards it is a new one. A rollback leaves nothing. */
    EXPECT(HM_OK, hm_transaction_set(t, KEY("t1"), KEY("gone"), NULL, &error));
    EXPECT(HM_OK, hm_transaction_rollback(t, &error));
    EXPECT(HM_OK, hm_transaction_commit(t, &error));
    CHECK(get_is("t1", "my value!"));
    /* Others changed what it read: it learns so by its next look, by the commit, and by the rollback. */
    EXPECT(HM_OK, hm_transaction_get(t, KEY("t1"), buffer, sizeof buffer, &len, &error));
    EXPECT(HM_OK, hm_transaction_set(t, KEY("t2"), KEY("from old"), NULL, &error));
    EXPECT(HM_OK, hm_set(store, KEY("t1"), KEY("other"), &error));
    EXPECT(HM_MISMATCH, hm_transaction_commit(t, &error));
    CHECK(get_is("t2", NULL));
    EXPECT(HM_OK, hm_transaction_get(t, KEY("t1"), buffer, sizeof buffer, &len, &error));
    EXPECT(HM_OK, hm_set(store, KEY("t1"), KEY("again"), &error));
    EXPECT(HM_E_CONFLICT, hm_transaction_get(t, KEY("t1"), buffer, sizeof buffer, &len, &error));
    EXPECT(HM_MISMATCH, hm_transaction_commit(t, &error));
    EXPECT(HM_OK, hm_transaction_get(t, KEY("t1"), buffer, sizeof buffer, &len, &error));
    EXPECT(HM_OK, hm_set(store, KEY("t1"), KEY("third"), &error));
    EXPECT(HM_MISMATCH, hm_transaction_rollback(t, &error));
    EXPECT(HM_OK, hm_transaction_get(t, KEY("t1"), buffer, sizeof buffer, &len, &error));
    EXPECT(HM_OK, hm_transaction_rollback(t, &error));
    /* An absent key counts as well. */
    EXPECT(HM_ABSENT, hm_transaction_contains(t, KEY("t4"), &error));
    EXPECT(HM_OK, hm_transaction_set(t, KEY("t5"), KEY("t4 is absent"), NULL, &error));
    EXPECT(HM_OK, hm_set(store, KEY("t4"), KEY("there"), &error));
    EXPECT(HM_MISMATCH, hm_transaction_commit(t, &error));
    CHECK(get_is("t5", NULL));
    /* Too many keys: those that it has stay good. */
    for (uint32_t i = 0; i < 1024; i++) EXPECT(HM_OK, hm_transaction_delete(t, &i, sizeof i, &error));
    EXPECT(HM_E_TOO_MANY_KEYS, hm_transaction_delete(t, KEY("one more"), &error));
    EXPECT(HM_OK, hm_transaction_commit(t, &error));
    EXPECT(HM_E_ARGUMENT, hm_transaction_commit(NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_transaction_rollback(NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_transaction_get(t, NULL, 1, buffer, sizeof buffer, &len, &error));
    EXPECT(HM_E_ARGUMENT, hm_transaction_get(t, KEY("a"), buffer, sizeof buffer, NULL, &error));
    /* Closed with something in it. */
    EXPECT(HM_OK, hm_transaction_set(t, KEY("t5"), KEY("never"), NULL, &error));
    hm_transaction_close(t);
    hm_transaction_close(NULL);
    CHECK(get_is("t5", NULL));
}

/* A transaction keeps the file, and works in a forked child. */
static void lifetime(void) {
    hm_store *other = new_store("lifetime", 0);
    hm_transaction *t;
    EXPECT(HM_OK, hm_transaction_open(other, &t, &error));
    EXPECT(HM_OK, hm_transaction_set(t, KEY("from both"), KEY("1"), NULL, &error));
    EXPECT(HM_OK, hm_close(other, &error));
    EXPECT(HM_OK, hm_transaction_commit(t, &error));
    hm_transaction_close(t);

    EXPECT(HM_OK, hm_transaction_open(store, &t, &error));
    EXPECT(HM_OK, hm_transaction_set(t, KEY("from child"), KEY("1"), NULL, &error));
    EXPECT(HM_OK, hm_transaction_set(t, KEY("and this"), KEY("1"), NULL, &error));
    const pid_t child = fork();
    if (child == 0) {
        EXPECT(HM_OK, hm_transaction_commit(t, &error));
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(get_is("from child", "1") && get_is("and this", "1"));
    EXPECT(HM_OK, hm_transaction_rollback(t, &error));
    hm_transaction_close(t);
}

typedef struct sum {
    uint64_t total;
    size_t accounts;
} sum;

static int add(void *user, size_t index, const hm_pair *item) {
    sum *s = user;
    CHECK(index == s->accounts && item && item->value.len < 32 && item->metadata.version != 0);
    char text[32] = "";
    memcpy(text, item->value.data, item->value.len);
    s->total += strtoull(text, NULL, 10);
    s->accounts++;
    return 0;
}

/* Two processes move money, and every snapshot has all of it. */
static void bank(void) {
    char names[ACCOUNTS][16];
    hm_bytes keys[ACCOUNTS];
    for (int i = 0; i < ACCOUNTS; i++) {
        keys[i] = (hm_bytes){names[i], (size_t)snprintf(names[i], sizeof names[i], "account:%d", i)};
        EXPECT(HM_OK, hm_set(store, keys[i].data, keys[i].len, KEY("1000"), &error));
    }
    pid_t clerks[2];
    for (unsigned clerk = 0; clerk < 2; clerk++) {
        clerks[clerk] = fork();
        CHECK(clerks[clerk] >= 0);
        if (clerks[clerk] > 0) continue;
        hm_transaction *t;
        unsigned chance = 17 + clerk, moved = 0;
        EXPECT(HM_OK, hm_transaction_open(store, &t, &error));
        while (moved < 2000) {
            const hm_bytes from = keys[rand_r(&chance) % ACCOUNTS], to = keys[rand_r(&chance) % ACCOUNTS];
            int rc;
            do {
                rc = hm_transaction_incr_by(t, to.data, to.len, 1, NULL, NULL, &error);
                if (rc == HM_OK) {
                    char text[32] = "";
                    size_t len;
                    rc = hm_transaction_get(t, from.data, from.len, text, sizeof text, &len, &error);
                    CHECK(rc == HM_OK || rc == HM_E_CONFLICT);
                    if (rc == HM_OK && strtoull(text, NULL, 10) == 0) {
                        rc = hm_transaction_rollback(t, &error);
                        continue;
                    }
                    if (rc == HM_OK) rc = hm_transaction_incr_by(t, from.data, from.len, -1, NULL, NULL, &error);
                }
                CHECK(rc == HM_OK || rc == HM_E_CONFLICT);
                rc = hm_transaction_commit(t, &error);
                CHECK(rc == HM_OK || rc == HM_MISMATCH);
            } while (rc == HM_MISMATCH);
            moved++;
        }
        hm_transaction_close(t);
        _exit(0);
    }
    int status, left = 2;
    while (left > 0) {
        sum s = {0, 0};
        EXPECT(HM_OK, hm_get_many_snapshot(store, keys, ACCOUNTS, add, &s, &error));
        CHECK(s.accounts == ACCOUNTS && s.total == ACCOUNTS * START);
        for (int clerk = 0; clerk < 2; clerk++) {
            if (clerks[clerk] && waitpid(clerks[clerk], &status, WNOHANG) == clerks[clerk]) {
                CHECK(status == 0);
                clerks[clerk] = 0;
                left--;
            }
        }
    }
}

static int first_only(void *user, size_t index, const hm_pair *item) {
    CHECK(index == 0 && item == NULL);
    ++*(int *)user;
    return 1;
}

static void snapshots(void) {
    const hm_bytes keys[] = {{"absent", 6}, {"t1", 2}};
    int shown = 0;
    EXPECT(HM_OK, hm_get_many_snapshot(store, keys, 2, first_only, &shown, &error));
    CHECK(shown == 1);
    EXPECT(HM_OK, hm_get_many_snapshot(store, NULL, 0, first_only, &shown, &error));
    EXPECT(HM_E_ARGUMENT, hm_get_many_snapshot(store, keys, 2, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_get_many_snapshot(store, NULL, 2, first_only, &shown, &error));
    CHECK(shown == 1);
}

/* A read-only store reads in transactions, and refuses their writes. */
static void read_only(void) {
    hm_options options = {.size = sizeof options, .flags = HM_READ_ONLY};
    hm_store *reader;
    hm_transaction *t;
    EXPECT(HM_OK, hm_open("transactions", &options, &reader, &error));
    EXPECT(HM_OK, hm_transaction_open(reader, &t, &error));
    EXPECT(HM_OK, hm_transaction_contains(t, KEY("t1"), &error));
    EXPECT(HM_OK, hm_transaction_commit(t, &error));
    EXPECT(HM_OK, hm_transaction_set(t, KEY("t1"), KEY("x"), NULL, &error));
    EXPECT(HM_E_READ_ONLY, hm_transaction_commit(t, &error));
    hm_transaction_close(t);
    EXPECT(HM_OK, hm_close(reader, &error));
}

int main(void) {
    store = new_store("transactions", 0);
    batches();
    conditions();
    transactions();
    lifetime();
    bank();
    snapshots();
    read_only();
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
