/* Every call on one key, and what each of its outcomes looks like. */
#include "test.h"
#include <math.h>

static hm_store *store;

static void reading(void) {
    char buffer[64];
    size_t len = 99;
    hm_metadata meta;
    int64_t ms;
    EXPECT(HM_ABSENT, hm_get(store, KEY("no"), buffer, sizeof buffer, &len, &error));
    CHECK(len == 99);
    EXPECT(HM_OK, hm_set(store, KEY("key"), KEY("value"), &error));
    EXPECT(HM_OK, hm_get(store, KEY("key"), buffer, sizeof buffer, &len, &error));
    EQUAL(buffer, len, "value");
    EXPECT(HM_OK, hm_get(store, KEY("key"), buffer, 5, &len, &error));
    EXPECT(HM_BUFFER_TOO_SMALL, hm_get(store, KEY("key"), buffer, 4, &len, &error));
    CHECK(len == 5);
    len = 0;
    EXPECT(HM_BUFFER_TOO_SMALL, hm_get(store, KEY("key"), NULL, 0, &len, &error));
    CHECK(len == 5);
    EXPECT(HM_OK, hm_get_item(store, KEY("key"), buffer, sizeof buffer, &meta, &error));
    CHECK(meta.value_len == 5 && meta.version != 0 && meta.flags == 0 && meta.expires_at_ms == 0 && meta.reserved == 0);
    EXPECT(HM_BUFFER_TOO_SMALL, hm_get_item(store, KEY("key"), buffer, 1, &meta, &error));
    EXPECT(HM_ABSENT, hm_get_item(store, KEY("no"), buffer, 1, &meta, &error));
    EXPECT(HM_OK, hm_get_metadata(store, KEY("key"), &meta, &error));
    EXPECT(HM_OK, hm_get_metadata(store, KEY("key"), NULL, &error));
    EXPECT(HM_ABSENT, hm_get_metadata(store, KEY("no"), &meta, &error));
    EXPECT(HM_OK, hm_contains(store, KEY("key"), &error));
    EXPECT(HM_ABSENT, hm_contains(store, KEY("no"), &error));
    EXPECT(HM_OK, hm_value_len(store, KEY("key"), &len, &error));
    EXPECT(HM_MISMATCH, hm_is_up_to_date(store, KEY("key"), 1, &error));
    EXPECT(HM_MISMATCH, hm_is_up_to_date(store, KEY("no"), 1, &error));
    CHECK(len == 5);
    EXPECT(HM_ABSENT, hm_value_len(store, KEY("no"), &len, &error));
    EXPECT(HM_OK, hm_ttl(store, KEY("key"), &ms, &error));
    CHECK(ms == -1);
    EXPECT(HM_ABSENT, hm_ttl(store, KEY("no"), &ms, &error));
    /* Embedded NULs, empty keys and values. */
    EXPECT(HM_OK, hm_set(store, "a\0b", 3, "\0\0", 2, &error));
    EXPECT(HM_ABSENT, hm_contains(store, "a", 1, &error));
    EXPECT(HM_OK, hm_get(store, "a\0b", 3, buffer, sizeof buffer, &len, &error));
    CHECK(len == 2 && buffer[0] == 0);
    EXPECT(HM_OK, hm_set(store, NULL, 0, NULL, 0, &error));
    EXPECT(HM_OK, hm_get(store, "", 0, NULL, 0, &len, &error));
    CHECK(len == 0);
}

static void writing(void) {
    char buffer[64];
    size_t len;
    hm_stored stored = {0, 0, 9};
    hm_metadata meta;
    const hm_attributes flags = {0xdeadbeef, HM_NEVER, 0, 0};
    EXPECT(HM_OK, hm_set_with(store, KEY("w"), KEY("1"), &flags, &stored, &error));
    CHECK(stored.created == 1 && stored.version != 0);
    EXPECT(HM_OK, hm_set_with(store, KEY("w"), KEY("1"), NULL, NULL, &error));
    const hm_attributes asked = {.min_version = UINT64_C(2000000000000)};
    EXPECT(HM_OK, hm_set_with(store, KEY("w"), KEY("1"), &asked, &stored, &error));
    CHECK(stored.version == UINT64_C(2000000000000));
    EXPECT(HM_OK, hm_set_with(store, KEY("w"), KEY("1"), &asked, &stored, &error));
    CHECK(stored.version == UINT64_C(2000000000001));
    EXPECT(HM_EXISTS, hm_add(store, KEY("w"), KEY("2"), NULL, NULL, &error));
    EXPECT(HM_OK, hm_add(store, KEY("added"), KEY("2"), &flags, &stored, &error));
    EXPECT(HM_OK, hm_get_metadata(store, KEY("added"), &meta, &error));
    CHECK(meta.flags == 0xdeadbeef && meta.version == stored.version && meta.uid == stored.uid);
    EXPECT(HM_ABSENT, hm_replace(store, KEY("absent"), KEY("2"), NULL, NULL, &error));
    EXPECT(HM_OK, hm_replace(store, KEY("w"), KEY("b"), NULL, &stored, &error));
    CHECK(stored.created == 0);
    EXPECT(HM_OK, hm_append(store, KEY("w"), KEY("c"), &stored, &error));
    EXPECT(HM_OK, hm_prepend(store, KEY("w"), KEY("a"), NULL, &error));
    EXPECT(HM_ABSENT, hm_append(store, KEY("absent"), KEY("c"), NULL, &error));
    EXPECT(HM_ABSENT, hm_prepend(store, KEY("absent"), KEY("a"), NULL, &error));
    EXPECT(HM_BUFFER_TOO_SMALL, hm_take(store, KEY("w"), buffer, 2, &len, NULL, &error));
    CHECK(len == 3);
    EXPECT(HM_OK, hm_take(store, KEY("w"), buffer, 3, &len, &meta, &error));
    EQUAL(buffer, len, "abc");
    CHECK(meta.value_len == 3);
    EXPECT(HM_ABSENT, hm_take(store, KEY("w"), buffer, 3, &len, NULL, &error));
    EXPECT(HM_OK, hm_delete(store, KEY("added"), &error));
    EXPECT(HM_ABSENT, hm_delete(store, KEY("added"), &error));
}

static void in_place(void) {
    hm_reservation room, other;
    hm_stored stored;
    char buffer[8];
    size_t len;
    EXPECT(HM_OK, hm_reserve(store, KEY("r"), 4, NULL, &room, &error));
    CHECK(room.len == 4 && room.data != NULL);
    memcpy(room.data, "room", 4);
    EXPECT(HM_ABSENT, hm_contains(store, KEY("r"), &error));
    memcpy(&other, &room, sizeof room); /* it may be moved */
    EXPECT(HM_OK, hm_reservation_commit(&other, &stored, &error));
    CHECK(stored.created == 1);
    EXPECT(HM_OK, hm_get(store, KEY("r"), buffer, sizeof buffer, &len, &error));
    EQUAL(buffer, len, "room");
    EXPECT(HM_E_INVALID_STATE, hm_reservation_commit(&other, NULL, &error));
    EXPECT(HM_E_INVALID_STATE, hm_reservation_abandon(&other, &error));
    EXPECT(HM_OK, hm_reserve(store, KEY("r"), 100, NULL, &room, &error));
    EXPECT(HM_OK, hm_reserve(store, KEY("r2"), 0, NULL, &other, &error));
    EXPECT(HM_OK, hm_set(store, KEY("other"), KEY("x"), &error));
    EXPECT(HM_OK, hm_reservation_abandon(&room, &error));
    EXPECT(HM_OK, hm_reservation_commit(&other, NULL, &error));
    EXPECT(HM_OK, hm_value_len(store, KEY("r"), &len, &error));
    CHECK(len == 4);
    EXPECT(HM_OK, hm_value_len(store, KEY("r2"), &len, &error));
    CHECK(len == 0);
}

static void views(void) {
    hm_view view, other;
    memset(&view, 0, sizeof view);
    hm_view_release(&view);
    hm_view_release(NULL);
    EXPECT(HM_ABSENT, hm_view_acquire(store, KEY("no"), &view, &error));
    hm_view_release(&view);
    EXPECT(HM_OK, hm_set(store, KEY("v"), KEY("before the write"), &error));
    EXPECT(HM_OK, hm_view_acquire(store, KEY("v"), &view, &error));
    CHECK(view.zero_copy == 1 && view.metadata.value_len == 16 && view.reserved == 0);
    EXPECT(HM_OK, hm_view_is_up_to_date(&view, &error));
    EXPECT(HM_OK, hm_touch(store, KEY("v"), HM_AFTER, 100000, &error));
    EXPECT(HM_OK, hm_view_is_up_to_date(&view, &error));
    EXPECT(HM_OK, hm_set(store, KEY("v"), KEY("after!"), &error));
    EXPECT(HM_MISMATCH, hm_view_is_up_to_date(&view, &error));
    EXPECT(HM_OK, hm_delete(store, KEY("v"), &error));
    EQUAL(view.data, view.len, "before the write");
    memcpy(&other, &view, sizeof view);
    hm_view_release(&other);
    hm_view_release(&other); /* a second time is nothing */
    EXPECT(HM_E_ARGUMENT, hm_view_is_up_to_date(&other, &error));
    EXPECT(HM_E_ARGUMENT, hm_view_is_up_to_date(NULL, &error));
    EXPECT(HM_OK, hm_set(store, KEY("v"), NULL, 0, &error));
    EXPECT(HM_OK, hm_view_acquire(store, KEY("v"), &view, &error));
    CHECK(view.len == 0 && view.data != NULL);
    hm_view_release(&view);
    /* What writes replace in place is copied. */
    EXPECT(HM_OK, hm_set(store, KEY("v"), KEY("before"), &error));
    EXPECT(HM_OK, hm_view_acquire(store, KEY("v"), &view, &error));
    EXPECT(HM_OK, hm_set(store, KEY("v"), KEY("behind"), &error));
    CHECK(view.zero_copy == 0);
    EXPECT(HM_MISMATCH, hm_view_is_up_to_date(&view, &error));
    EQUAL(view.data, view.len, "before");
    hm_view_release(&view);
}

static void conditions(void) {
    hm_stored stored, now;
    EXPECT(HM_ABSENT, hm_cas_version(store, KEY("c"), 7, KEY("x"), NULL, &now, &error));
    EXPECT(HM_OK, hm_cas_version(store, KEY("c"), 0, KEY("x"), NULL, &stored, &error));
    EXPECT(HM_MISMATCH, hm_cas_version(store, KEY("c"), 0, KEY("y"), NULL, &now, &error));
    CHECK(now.version == stored.version && now.uid == 0 && now.created == 0);
    EXPECT(HM_MISMATCH, hm_cas_version(store, KEY("c"), stored.version + 1, KEY("y"), NULL, NULL, &error));
    EXPECT(HM_OK, hm_cas_version(store, KEY("c"), stored.version, KEY("y"), NULL, &stored, &error));
    EXPECT(HM_MISMATCH, hm_cas_value(store, KEY("c"), KEY("x"), KEY("z"), NULL, &now, &error));
    EXPECT(HM_OK, hm_cas_value(store, KEY("c"), KEY("y"), KEY("z"), NULL, &stored, &error));
    EXPECT(HM_ABSENT, hm_cas_value(store, KEY("absent"), KEY("y"), KEY("z"), NULL, &stored, &error));
    EXPECT(HM_MISMATCH, hm_delete_version(store, KEY("c"), stored.version - 1, &error));
    EXPECT(HM_OK, hm_delete_version(store, KEY("c"), stored.version, &error));
    EXPECT(HM_ABSENT, hm_delete_version(store, KEY("c"), stored.version, &error));
    EXPECT(HM_OK, hm_set(store, KEY("c"), KEY("q"), &error));
    EXPECT(HM_MISMATCH, hm_delete_value(store, KEY("c"), KEY("p"), &error));
    EXPECT(HM_OK, hm_delete_value(store, KEY("c"), KEY("q"), &error));
    EXPECT(HM_ABSENT, hm_delete_value(store, KEY("c"), KEY("q"), &error));
}

struct visit {
    int action, calls;
    hm_bytes seen;
    char text[16];
};

static void visitor(void *user, const hm_pair *old, hm_change *change) {
    struct visit *visit = user;
    visit->calls++;
    visit->seen.data = old ? visit->text : NULL;
    visit->seen.len = old ? old->value.len : 0;
    if (old) memcpy(visit->text, old->value.data, old->value.len);
    change->action = visit->action;
    change->value.data = "visited";
    change->value.len = 7;
    change->attributes.flags = 5;
    /* A visitor may use the store. */
    CHECK(hm_set(store, KEY("side effect"), KEY("x"), NULL) == HM_OK);
}

static void selfish(void *user, const hm_pair *old, hm_change *change) {
    const char *own = user;
    hm_bytes pair[2] = {{own, 1}, {"x", 1}};
    char value[8];
    size_t len;
    EXPECT(HM_E_REENTERED, hm_set(store, own, 1, KEY("x"), &error));
    CHECK(strstr(error.text, own) != NULL);
    EXPECT(HM_E_REENTERED, hm_set_many(store, &pair[0], &pair[1], 1, NULL, &error));
    EXPECT(HM_E_REENTERED, hm_append(store, own, 1, KEY("x"), NULL, &error));
    EXPECT(HM_E_REENTERED, hm_touch(store, own, 1, HM_NEVER, 0, &error));
    EXPECT(HM_E_REENTERED, hm_clear(store, &error));
    EXPECT(old ? HM_OK : HM_ABSENT, hm_get(store, own, 1, value, sizeof value, &len, &error));
    /* Another key whose visitor wants the first one. */
    if (*own == 'A') {
        CHECK(hm_update_with(store, KEY("B"), selfish, "B", NULL, NULL) == HM_OK);
        EXPECT(HM_E_REENTERED, hm_delete(store, KEY("A"), &error));
    } else {
        EXPECT(HM_E_REENTERED, hm_delete(store, KEY("A"), &error));
    }
    change->action = HM_SET;
    change->value.data = "kept";
    change->value.len = 4;
}

static void visiting_itself(void) {
    /* The visitor's calls write to `error`. */
    CHECK(hm_update_with(store, KEY("A"), selfish, "A", NULL, NULL) == HM_OK);
    CHECK(hm_update_with(store, KEY("A"), selfish, "A", NULL, NULL) == HM_OK);
    EXPECT(HM_OK, hm_delete_value(store, KEY("A"), KEY("kept"), &error));
    EXPECT(HM_OK, hm_delete_value(store, KEY("B"), KEY("kept"), &error));
}

static void visiting(void) {
    struct visit visit = {HM_KEEP, 0, {NULL, 0}, ""};
    hm_stored stored;
    hm_metadata meta;
    EXPECT(HM_UNCHANGED, hm_update_with(store, KEY("u"), visitor, &visit, NULL, &error));
    CHECK(visit.calls == 1 && visit.seen.data == NULL);
    visit.action = HM_REMOVE;
    EXPECT(HM_OK, hm_set(store, KEY("doomed"), KEY("x"), &error));
    EXPECT(HM_REMOVED, hm_update_with(store, KEY("doomed"), visitor, &visit, NULL, &error));
    EXPECT(HM_ABSENT, hm_contains(store, KEY("doomed"), &error));
    visit.action = HM_SET_WITH;
    EXPECT(HM_OK, hm_update_with(store, KEY("u"), visitor, &visit, &stored, &error));
    CHECK(stored.created == 1);
    visit.action = HM_SET;
    EXPECT(HM_OK, hm_update_with(store, KEY("u"), visitor, &visit, &stored, &error));
    EQUAL(visit.text, visit.seen.len, "visited");
    EXPECT(HM_OK, hm_get_metadata(store, KEY("u"), &meta, &error));
    CHECK(meta.flags == 5 && meta.version == stored.version);
    visit.action = 17;
    EXPECT(HM_E_ARGUMENT, hm_update_with(store, KEY("u"), visitor, &visit, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_update_with(store, KEY("u"), NULL, NULL, NULL, &error));
}

static void counters(void) {
    const hm_counter create = {10, {3, HM_NEVER, 0, 0}};
    uint64_t now = 7;
    hm_metadata meta;
    EXPECT(HM_ABSENT, hm_incr(store, KEY("n"), 1, NULL, &now, &error));
    CHECK(now == 7);
    EXPECT(HM_OK, hm_incr(store, KEY("n"), 5, &create, &now, &error));
    CHECK(now == 10);
    EXPECT(HM_OK, hm_incr(store, KEY("n"), 5, &create, &now, &error));
    CHECK(now == 15);
    EXPECT(HM_OK, hm_decr(store, KEY("n"), 20, NULL, &now, &error));
    CHECK(now == 0);
    EXPECT(HM_OK, hm_incr(store, KEY("n"), UINT64_MAX, NULL, &now, &error));
    CHECK(now == UINT64_MAX);
    EXPECT(HM_OK, hm_incr(store, KEY("n"), 2, NULL, NULL, &error));
    EXPECT(HM_OK, hm_incr_by(store, KEY("n"), -5, NULL, &now, &error));
    CHECK(now == 0);
    EXPECT(HM_OK, hm_incr_by(store, KEY("n"), 41, NULL, &now, &error));
    CHECK(now == 41);
    EXPECT(HM_OK, hm_get_metadata(store, KEY("n"), &meta, &error));
    CHECK(meta.flags == 3);
    EXPECT(HM_OK, hm_set(store, KEY("text"), KEY("x"), &error));
    EXPECT(HM_E_NOT_A_NUMBER, hm_incr(store, KEY("text"), 1, NULL, &now, &error));
    EXPECT(HM_OK, hm_inc_ref(store, KEY("ref"), 1, &now, &error));
    EXPECT(HM_OK, hm_inc_ref(store, KEY("ref"), 3, NULL, &error));
    EXPECT(HM_E_OVERFLOW, hm_inc_ref(store, KEY("ref"), UINT64_MAX, NULL, &error));
    EXPECT(HM_OK, hm_dec_ref(store, KEY("ref"), 3, &now, &error));
    CHECK(now == 1);
    EXPECT(HM_OK, hm_dec_ref(store, KEY("ref"), 0, &now, &error));
    CHECK(now == 1);
    EXPECT(HM_OK, hm_dec_ref(store, KEY("ref"), 2, &now, &error));
    CHECK(now == 0);
    EXPECT(HM_ABSENT, hm_dec_ref(store, KEY("ref"), 1, &now, &error));
    EXPECT(HM_OK, hm_inc_ref(store, KEY("ref"), 0, &now, &error));
    CHECK(now == 0 && hm_contains(store, KEY("ref"), &error) == HM_ABSENT);
}

static void value_is(const char *key, const char *value) {
    char text[32];
    size_t len = 0;
    EXPECT(HM_OK, hm_get(store, key, strlen(key), text, sizeof text, &len, &error));
    CHECK(len == strlen(value) && memcmp(text, value, len) == 0);
}

static void kinds_of_counters(void) {
    const hm_signed_counter below = {.initial = -5, .attributes = {.flags = 3}};
    const hm_float_counter tenth = {.initial = 0.1};
    const hm_float_counter nothing = {.initial = NAN};
    int64_t number = 9;
    double fraction = 9;
    EXPECT(HM_ABSENT, hm_incr_signed(store, KEY("s"), 1, NULL, &number, &error));
    CHECK(number == 9);
    EXPECT(HM_OK, hm_incr_signed(store, KEY("s"), 1, &below, &number, &error));
    CHECK(number == -5);
    EXPECT(HM_OK, hm_incr_signed(store, KEY("s"), 4, &below, &number, &error));
    CHECK(number == -1);
    value_is("s", "-1");
    EXPECT(HM_E_NOT_A_NUMBER, hm_incr(store, KEY("s"), 1, NULL, NULL, &error));
    EXPECT(HM_E_OVERFLOW, hm_incr_signed(store, KEY("s"), INT64_MIN, NULL, NULL, &error));
    CHECK(strcmp(hm_result_name(HM_E_OVERFLOW), "Overflow") == 0);
    value_is("s", "-1");
    EXPECT(HM_OK, hm_incr_signed(store, KEY("s"), INT64_MIN + 1, NULL, &number, &error));
    CHECK(number == INT64_MIN);

    EXPECT(HM_ABSENT, hm_incr_float(store, KEY("f"), 1, NULL, &fraction, &error));
    EXPECT(HM_E_INVALID_STATE, hm_incr_float(store, KEY("f"), 1, &nothing, &fraction, &error));
    EXPECT(HM_E_INVALID_STATE, hm_incr_float(store, KEY("f"), INFINITY, &tenth, &fraction, &error));
    EXPECT(HM_OK, hm_incr_float(store, KEY("f"), 1, &tenth, &fraction, &error));
    EXPECT(HM_OK, hm_incr_float(store, KEY("f"), 0.2, &tenth, &fraction, &error));
    CHECK(fraction == 0.3);
    value_is("f", "0.3");
    EXPECT(HM_OK, hm_incr_float(store, KEY("f"), -1, NULL, NULL, &error));
    value_is("f", "-0.7");
    EXPECT(HM_OK, hm_set(store, KEY("f"), KEY("1e308"), &error));
    EXPECT(HM_E_OVERFLOW, hm_incr_float(store, KEY("f"), 1.7e308, NULL, NULL, &error));
    value_is("f", "1e308");
    EXPECT(HM_E_NOT_A_NUMBER, hm_incr_float(store, KEY("text"), 1, NULL, NULL, &error));
}

static void attributes(void) {
    hm_attributes soon = {1, HM_AFTER, 60000, 0};
    char buffer[8];
    hm_metadata meta;
    int64_t ms;
    EXPECT(HM_OK, hm_set_with(store, KEY("t"), KEY("x"), &soon, NULL, &error));
    EXPECT(HM_OK, hm_ttl(store, KEY("t"), &ms, &error));
    CHECK(ms > 50000 && ms <= 60000);
    EXPECT(HM_OK, hm_touch(store, KEY("t"), HM_NEVER, 0, &error));
    EXPECT(HM_OK, hm_ttl(store, KEY("t"), &ms, &error));
    CHECK(ms == -1);
    EXPECT(HM_ABSENT, hm_touch(store, KEY("no"), HM_NEVER, 0, &error));
    EXPECT(HM_OK, hm_get_and_touch(store, KEY("t"), HM_AT, INT64_C(4000000000000), buffer, 8, &meta, &error));
    CHECK(meta.expires_at_ms == 4000000000000 && buffer[0] == 'x');
    EXPECT(HM_BUFFER_TOO_SMALL, hm_get_and_touch(store, KEY("t"), HM_NEVER, 0, NULL, 0, &meta, &error));
    CHECK(meta.expires_at_ms == 0 && meta.value_len == 1);
    EXPECT(HM_ABSENT, hm_get_and_touch(store, KEY("no"), HM_NEVER, 0, NULL, 0, &meta, &error));
    EXPECT(HM_OK, hm_touch(store, KEY("t"), HM_AFTER, 0, &error)); /* at once */
    EXPECT(HM_ABSENT, hm_contains(store, KEY("t"), &error));
}

static void numbers(void) {
    uint32_t uid;
    uint64_t id;
    hm_metadata meta;
    EXPECT(HM_ABSENT, hm_uid_of(store, KEY("no"), &uid, &error));
    EXPECT(HM_ABSENT, hm_id_of(store, KEY("no"), &id, &error));
    EXPECT(HM_OK, hm_set(store, KEY("number"), KEY("one"), &error));
    EXPECT(HM_OK, hm_uid_of(store, KEY("number"), &uid, &error));
    EXPECT(HM_OK, hm_id_of(store, KEY("number"), &id, &error));
    EXPECT(HM_OK, hm_get_metadata(store, KEY("number"), &meta, &error));
    CHECK((uint32_t)id == uid && meta.uid == uid);
}

int main(void) {
    store = new_store("operations", 0);
    reading();
    writing();
    in_place();
    views();
    conditions();
    visiting();
    visiting_itself();
    counters();
    kinds_of_counters();
    attributes();
    numbers();
    EXPECT(HM_OK, hm_check(store, NULL, NULL, NULL, &error));
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
