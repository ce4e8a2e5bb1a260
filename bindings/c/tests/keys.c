/* Every call that names one key, by every kind of key: what it does, what it does by the number of an entry that is gone, and keys
 * that are none. */
#include "test.h"

static hm_store *store;

struct visit {
    int action, calls;
    size_t key_len;
};

static void visitor(void *user, const hm_pair *old, hm_change *change) {
    struct visit *visit = user;
    visit->calls++;
    visit->key_len = old ? old->key.len : SIZE_MAX;
    change->action = visit->action;
    change->value.data = "visited";
    change->value.len = 7;
}

static void value_is(const hm_key *key, const char *value) {
    char buffer[64];
    size_t len = 0;
    EXPECT(HM_OK, hm_get_at(store, key, buffer, sizeof buffer, &len, &error));
    CHECK(len == strlen(value) && memcmp(buffer, value, len) == 0);
}

static void reading(const hm_key *key, const char *name) {
    char buffer[64];
    size_t len = 0;
    hm_metadata meta, item;
    int64_t ms = 0;
    hm_view view;
    EXPECT(HM_OK, hm_set_at(store, key, KEY("value"), &error));
    value_is(key, "value");
    EXPECT(HM_BUFFER_TOO_SMALL, hm_get_at(store, key, buffer, 4, &len, &error));
    CHECK(len == 5);
    EXPECT(HM_OK, hm_get_item_at(store, key, buffer, sizeof buffer, &item, &error));
    CHECK(item.value_len == 5 && memcmp(buffer, "value", 5) == 0);
    EXPECT(HM_BUFFER_TOO_SMALL, hm_get_item_at(store, key, buffer, 4, &item, &error));
    EXPECT(HM_OK, hm_get_metadata_at(store, key, &meta, &error));
    CHECK(memcmp(&meta, &item, sizeof meta) == 0);
    EXPECT(HM_OK, hm_contains_at(store, key, &error));
    EXPECT(HM_OK, hm_value_len_at(store, key, &len, &error));
    EXPECT(HM_OK, hm_get_metadata_at(store, key, &meta, &error));
    EXPECT(HM_OK, hm_is_up_to_date_at(store, key, meta.version, &error));
    EXPECT(HM_MISMATCH, hm_is_up_to_date_at(store, key, meta.version - 1, &error));
    CHECK(len == 5);
    EXPECT(HM_OK, hm_ttl_at(store, key, &ms, &error));
    CHECK(ms == -1);
    EXPECT(HM_OK, hm_view_acquire_at(store, key, &view, &error));
    EQUAL(view.data, view.len, "value");
    hm_view_release(&view);
    EXPECT(HM_OK, hm_key_of_at(store, key, buffer, sizeof buffer, &len, &error));
    CHECK(len == strlen(name) && memcmp(buffer, name, len) == 0);
    EXPECT(HM_BUFFER_TOO_SMALL, hm_key_of_at(store, key, buffer, len - 1, &len, &error));
    CHECK(len == strlen(name));
}

static void writing(const hm_key *key, uint32_t uid) {
    hm_stored stored;
    hm_reservation room;
    const hm_attributes flags = {.flags = 7};
    EXPECT(HM_OK, hm_set_with_at(store, key, KEY("b"), &flags, &stored, &error));
    CHECK(stored.uid == uid && stored.created == 0);
    EXPECT(HM_EXISTS, hm_add_at(store, key, KEY("no"), NULL, NULL, &error));
    EXPECT(HM_OK, hm_append_at(store, key, KEY("c"), &stored, &error));
    EXPECT(HM_OK, hm_prepend_at(store, key, KEY("a"), &stored, &error));
    value_is(key, "abc");
    EXPECT(HM_OK, hm_replace_at(store, key, KEY("r"), NULL, &stored, &error));
    CHECK(stored.uid == uid);
    EXPECT(HM_OK, hm_reserve_at(store, key, 4, NULL, &room, &error));
    memcpy(room.data, "room", 4);
    value_is(key, "r");
    EXPECT(HM_OK, hm_reservation_commit(&room, &stored, &error));
    CHECK(stored.uid == uid && stored.created == 0);
    value_is(key, "room");
}

static void conditions(const hm_key *key) {
    hm_stored stored;
    struct visit visit = {HM_SET, 0, 0};
    EXPECT(HM_MISMATCH, hm_cas_version_at(store, key, 0, KEY("no"), NULL, NULL, &error));
    EXPECT(HM_OK, hm_cas_value_at(store, key, KEY("room"), KEY("x"), NULL, &stored, &error));
    EXPECT(HM_MISMATCH, hm_cas_version_at(store, key, stored.version - 1, KEY("no"), NULL, NULL, &error));
    EXPECT(HM_OK, hm_cas_version_at(store, key, stored.version, KEY("y"), NULL, &stored, &error));
    EXPECT(HM_MISMATCH, hm_cas_value_at(store, key, KEY("x"), KEY("no"), NULL, NULL, &error));
    EXPECT(HM_MISMATCH, hm_delete_version_at(store, key, stored.version - 1, &error));
    EXPECT(HM_MISMATCH, hm_delete_value_at(store, key, KEY("x"), &error));
    EXPECT(HM_OK, hm_update_with_at(store, key, visitor, &visit, &stored, &error));
    value_is(key, "visited");
    CHECK(visit.calls == 1 && visit.key_len == key->len);
    visit.action = HM_KEEP;
    EXPECT(HM_UNCHANGED, hm_update_with_at(store, key, visitor, &visit, NULL, &error));
}

static void counting(const hm_key *key) {
    const hm_counter create = {.initial = 99};
    uint64_t now;
    EXPECT(HM_E_NOT_A_NUMBER, hm_incr_at(store, key, 1, NULL, NULL, &error));
    EXPECT(HM_OK, hm_set_at(store, key, KEY("7"), &error));
    EXPECT(HM_OK, hm_incr_at(store, key, 5, &create, &now, &error));
    CHECK(now == 12);
    EXPECT(HM_OK, hm_decr_at(store, key, 2, NULL, &now, &error));
    CHECK(now == 10);
    EXPECT(HM_OK, hm_incr_by_at(store, key, -9, NULL, &now, &error));
    CHECK(now == 1);
    EXPECT(HM_OK, hm_inc_ref_at(store, key, 2, &now, &error));
    CHECK(now == 3);
    EXPECT(HM_OK, hm_dec_ref_at(store, key, 2, &now, &error));
    CHECK(now == 1);
    int64_t number = 0;
    double fraction = 0;
    EXPECT(HM_OK, hm_incr_signed_at(store, key, -3, NULL, &number, &error));
    EXPECT(HM_OK, hm_incr_float_at(store, key, 2.5, NULL, &fraction, &error));
    CHECK(number == -2 && fraction == 0.5);
    EXPECT(HM_OK, hm_set_at(store, key, KEY("1"), &error));
}

static void expiry(const hm_key *key, uint32_t uid) {
    char buffer[8];
    hm_metadata meta;
    int64_t ms;
    uint32_t found = 0;
    uint64_t id = 0;
    EXPECT(HM_OK, hm_touch_at(store, key, HM_AFTER, 500000, &error));
    EXPECT(HM_OK, hm_ttl_at(store, key, &ms, &error));
    CHECK(ms > 0 && ms <= 500000);
    EXPECT(HM_OK, hm_get_and_touch_at(store, key, HM_NEVER, 0, buffer, sizeof buffer, &meta, &error));
    CHECK(meta.value_len == 1 && buffer[0] == '1' && meta.expires_at_ms == 0 && meta.uid == uid);
    EXPECT(HM_OK, hm_uid_of_at(store, key, &found, &error));
    EXPECT(HM_OK, hm_id_of_at(store, key, &id, &error));
    CHECK(found == uid && (key->kind != HM_KEY_ID || id == key->number));
}

/* Each ending, from a key that is there; `by` names it, and `bytes` makes it again. */
static void endings(const hm_key *bytes, hm_key by) {
    char buffer[8];
    size_t len;
    hm_metadata meta;
    struct visit visit = {HM_REMOVE, 0, 0};
    for (int ending = 0; ending < 6; ending++) {
        hm_stored stored;
        uint64_t now = 9;
        EXPECT(HM_OK, hm_set_with_at(store, bytes, KEY("1"), NULL, &stored, &error));
        if (by.kind == HM_KEY_UID) by.number = stored.uid;
        if (by.kind == HM_KEY_ID) EXPECT(HM_OK, hm_id_of_at(store, bytes, &by.number, &error));
        switch (ending) {
        case 0: EXPECT(HM_OK, hm_delete_at(store, &by, &error)); break;
        case 1:
            EXPECT(HM_BUFFER_TOO_SMALL, hm_take_at(store, &by, buffer, 0, &len, &meta, &error));
            EXPECT(HM_OK, hm_take_at(store, &by, buffer, 1, &len, &meta, &error));
            CHECK(len == 1 && buffer[0] == '1' && meta.version == stored.version);
            break;
        case 2: EXPECT(HM_OK, hm_delete_version_at(store, &by, stored.version, &error)); break;
        case 3: EXPECT(HM_OK, hm_delete_value_at(store, &by, KEY("1"), &error)); break;
        case 4: EXPECT(HM_REMOVED, hm_update_with_at(store, &by, visitor, &visit, NULL, &error)); break;
        case 5: EXPECT(HM_OK, hm_dec_ref_at(store, &by, 1, &now, &error)); CHECK(now == 0); break;
        }
        EXPECT(HM_ABSENT, hm_contains_at(store, bytes, &error));
    }
}

/* A key that is absent, by a name that says nothing of what it was: nothing is done, and nothing created. */
static void gone(const hm_key *key) {
    char buffer[8];
    size_t len = 77;
    hm_metadata meta;
    hm_view view;
    hm_reservation room;
    int64_t ms;
    uint32_t uid;
    uint64_t number;
    const hm_counter create = {.initial = 1};
    struct visit visit = {HM_SET, 0, 0};
    EXPECT(HM_ABSENT, hm_get_at(store, key, buffer, sizeof buffer, &len, &error));
    EXPECT(HM_ABSENT, hm_get_item_at(store, key, buffer, sizeof buffer, &meta, &error));
    EXPECT(HM_ABSENT, hm_get_metadata_at(store, key, &meta, &error));
    EXPECT(HM_ABSENT, hm_contains_at(store, key, &error));
    EXPECT(HM_ABSENT, hm_value_len_at(store, key, &len, &error));
    EXPECT(HM_MISMATCH, hm_is_up_to_date_at(store, key, 5, &error));
    EXPECT(HM_ABSENT, hm_ttl_at(store, key, &ms, &error));
    EXPECT(HM_ABSENT, hm_view_acquire_at(store, key, &view, &error));
    EXPECT(HM_ABSENT, hm_key_of_at(store, key, buffer, sizeof buffer, &len, &error));
    EXPECT(HM_ABSENT, hm_uid_of_at(store, key, &uid, &error));
    EXPECT(HM_ABSENT, hm_id_of_at(store, key, &number, &error));
    EXPECT(HM_ABSENT, hm_replace_at(store, key, KEY("x"), NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_append_at(store, key, KEY("x"), NULL, &error));
    EXPECT(HM_ABSENT, hm_prepend_at(store, key, KEY("x"), NULL, &error));
    EXPECT(HM_ABSENT, hm_delete_at(store, key, &error));
    EXPECT(HM_ABSENT, hm_take_at(store, key, buffer, sizeof buffer, &len, NULL, &error));
    EXPECT(HM_ABSENT, hm_cas_version_at(store, key, 5, KEY("x"), NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_cas_value_at(store, key, KEY("1"), KEY("x"), NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_delete_version_at(store, key, 5, &error));
    EXPECT(HM_ABSENT, hm_delete_value_at(store, key, KEY("1"), &error));
    EXPECT(HM_ABSENT, hm_incr_at(store, key, 1, NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_decr_at(store, key, 1, NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_incr_by_at(store, key, 1, NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_incr_signed_at(store, key, 1, NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_incr_float_at(store, key, 1, NULL, NULL, &error));
    EXPECT(HM_ABSENT, hm_dec_ref_at(store, key, 1, NULL, &error));
    EXPECT(HM_ABSENT, hm_touch_at(store, key, HM_NEVER, 0, &error));
    EXPECT(HM_ABSENT, hm_get_and_touch_at(store, key, HM_NEVER, 0, buffer, sizeof buffer, &meta, &error));
    CHECK(len == 77);
    EXPECT(HM_E_STALE, hm_set_at(store, key, KEY("x"), &error));
    EXPECT(HM_E_STALE, hm_set_with_at(store, key, KEY("x"), NULL, NULL, &error));
    EXPECT(HM_E_STALE, hm_add_at(store, key, KEY("x"), NULL, NULL, &error));
    EXPECT(HM_E_STALE, hm_reserve_at(store, key, 5, NULL, &room, &error));
    EXPECT(HM_E_INVALID_STATE, hm_reservation_commit(&room, NULL, &error));
    EXPECT(HM_E_STALE, hm_cas_version_at(store, key, 0, KEY("x"), NULL, NULL, &error));
    EXPECT(HM_E_STALE, hm_update_with_at(store, key, visitor, &visit, NULL, &error));
    EXPECT(HM_E_STALE, hm_incr_at(store, key, 1, &create, NULL, &error));
    EXPECT(HM_E_STALE, hm_decr_at(store, key, 1, &create, NULL, &error));
    EXPECT(HM_E_STALE, hm_incr_by_at(store, key, 1, &create, NULL, &error));
    EXPECT(HM_E_STALE, hm_incr_signed_at(store, key, 1, &(hm_signed_counter){.initial = 1}, NULL, &error));
    EXPECT(HM_E_STALE, hm_incr_float_at(store, key, 1, &(hm_float_counter){.initial = 1}, NULL, &error));
    EXPECT(HM_E_STALE, hm_inc_ref_at(store, key, 1, NULL, &error));
    CHECK(visit.calls == 0);
}

/* What was reserved for an entry that goes before it is committed. */
static void gone_between(void) {
    hm_stored stored;
    hm_reservation room;
    EXPECT(HM_OK, hm_set_with(store, KEY("key"), KEY("1"), NULL, &stored, &error));
    const hm_key key = hm_key_uid(stored.uid);
    EXPECT(HM_OK, hm_reserve_at(store, &key, 5, NULL, &room, &error));
    EXPECT(HM_OK, hm_delete(store, KEY("key"), &error));
    EXPECT(HM_E_STALE, hm_reservation_commit(&room, NULL, &error));
    EXPECT(HM_ABSENT, hm_contains(store, KEY("key"), &error));
}

/* The same bytes, without a hash and with two hashes, are three keys. */
static void hashes(void) {
    const hm_key keys[3] = {hm_key_bytes("key", 3), hm_key_hashed("key", 3, 0), hm_key_hashed("key", 3, UINT64_MAX)};
    const char *values[3] = {"plain", "zero", "most"};
    for (int i = 0; i < 3; i++) {
        hm_stored stored;
        EXPECT(HM_OK, hm_set_with_at(store, &keys[i], values[i], strlen(values[i]), NULL, &stored, &error));
        CHECK(stored.created == 1);
    }
    for (int i = 0; i < 3; i++) {
        value_is(&keys[i], values[i]);
        EXPECT(HM_OK, hm_delete_at(store, &keys[i], &error));
    }
}

static void refused(hm_key key, const char *why) {
    size_t len = 77;
    EXPECT(HM_E_ARGUMENT, hm_get_at(store, &key, NULL, 0, &len, &error));
    CHECK(strstr(error.text, "`key`") != NULL);
    if (strstr(error.text, why) == NULL) FAIL("not \"%s\", but \"%s\"", why, error.text);
    EXPECT(HM_E_ARGUMENT, hm_delete_at(store, &key, &error));
    EXPECT(HM_E_ARGUMENT, hm_set_at(store, &key, KEY("x"), &error));
    CHECK(len == 77);
}

static void bad_keys(void) {
    size_t len;
    uint64_t count;
    const hm_key good = hm_key_bytes("key", 3);
    hm_key key = good;
    EXPECT(HM_E_ARGUMENT, hm_get_at(store, NULL, NULL, 0, &len, &error));
    CHECK(strstr(error.text, "`key`") != NULL);
    key.kind = 4;
    refused(key, "HM_KEY_HASHED");
    key.kind = UINT32_MAX;
    refused(key, "`kind`");
    for (uint32_t kind = HM_KEY_BYTES; kind <= HM_KEY_ID; kind++) {
        key = kind < HM_KEY_UID ? good : hm_key_uid(1);
        key.kind = kind, key.reserved = 1;
        refused(key, "`reserved`");
    }
    key = good, key.number = 1;
    refused(key, "`number`");
    key = good, key.kind = HM_KEY_UID;
    refused(key, "`data`");
    key.data = NULL, key.kind = HM_KEY_ID;
    refused(key, "`len`");
    key = hm_key_uid(1), key.number = UINT64_C(1) << 32;
    refused(key, "HM_KEY_ID");
    refused(hm_key_bytes(NULL, 1), "NULL");
    refused(hm_key_hashed(NULL, 1, 5), "NULL");
    key = good, key.len = SIZE_MAX;
    EXPECT(HM_E_TOO_LARGE, hm_get_at(store, &key, NULL, 0, &len, &error));
    EXPECT(HM_OK, hm_len(store, &count, &error));
    CHECK(count == 0);
    /* All zero is the key without bytes. */
    memset(&key, 0, sizeof key);
    EXPECT(HM_OK, hm_set_at(store, &key, KEY("empty"), &error));
    EXPECT(HM_OK, hm_value_len(store, NULL, 0, &len, &error));
    CHECK(len == 5);
    EXPECT(HM_OK, hm_delete_at(store, &key, &error));
}

int main(void) {
    store = new_store("keys", 0);
    const char *name = "a key";
    const hm_key named[2] = {hm_key_bytes(name, strlen(name)), hm_key_hashed(name, strlen(name), 77)};
    for (int i = 0; i < 2; i++) {
        hm_stored stored;
        uint64_t id;
        EXPECT(HM_OK, hm_set_with_at(store, &named[i], KEY("first"), NULL, &stored, &error));
        CHECK(stored.created == 1);
        EXPECT(HM_OK, hm_id_of_at(store, &named[i], &id, &error));
        const hm_key keys[3] = {named[i], hm_key_uid(stored.uid), hm_key_id(id)};
        for (int kind = 0; kind < 3; kind++) {
            reading(&keys[kind], name);
            writing(&keys[kind], stored.uid);
            conditions(&keys[kind]);
            counting(&keys[kind]);
            expiry(&keys[kind], stored.uid);
        }
        for (int kind = 0; kind < 3; kind++) endings(&named[i], keys[kind]);
        gone(&keys[1]);
        gone(&keys[2]);
    }
    /* Numbers that never were any. */
    const hm_key never[4] = {hm_key_uid(UINT32_MAX), hm_key_uid(0), hm_key_id(UINT64_MAX), hm_key_id(0)};
    for (int i = 0; i < 4; i++) gone(&never[i]);
    gone_between();
    hashes();
    bad_keys();
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
