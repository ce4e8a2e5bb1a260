/* One of the programs of README.md. */
#include <hashmere.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUMS = 2000, STEPS = 200, PATIENCE_MS = 600000, BYTES = 256, HASH = 7 };

static hm_error error;
static hm_store *store;
static const hm_counter one = {.initial = 1};

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "c: error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

static void must(int is, const char *what) {
    if (!is) {
        fprintf(stderr, "c: %s\n", what);
        exit(1);
    }
}

static void pause_ms(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static const char *joined(const char *head, const char *tail) {
    static char key[128];
    snprintf(key, sizeof key, "%s%s", head, tail);
    return key;
}

static void add_one(const char *key) {
    check(hm_incr(store, key, strlen(key), 1, &one, NULL, &error));
}

static uint64_t number(const char *key) {
    char text[32] = {0};
    size_t len;
    return check(hm_get(store, key, strlen(key), text, sizeof text - 1, &len, &error)) == HM_OK ? strtoull(text, NULL, 10) : 0;
}

static void wait_for(const char *key, uint64_t wanted) {
    for (int ms = 0; number(key) < wanted; ms++) {
        must(ms < PATIENCE_MS, "the others do not come");
        pause_ms(1);
    }
}

static size_t greeting(const char *name, char *bytes) {
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (char)i;
    memcpy(bytes + BYTES, name, strlen(name));
    return BYTES + strlen(name);
}

static void next_number(void) {
    char text[32];
    int result;
    do {
        hm_metadata meta;
        must(check(hm_get_item(store, "cas", 3, text, sizeof text - 1, &meta, &error)) == HM_OK, "no key `cas`");
        text[meta.value_len] = 0;
        const int len = snprintf(text, sizeof text, "%llu", strtoull(text, NULL, 10) + 1);
        result = check(hm_cas_version(store, "cas", 3, meta.version, text, (size_t)len, NULL, NULL, &error));
    } while (result == HM_MISMATCH);
}

static void put_behind(void *user, const hm_pair *old, hm_change *change) {
    static char text[1 << 16];
    const size_t len = old ? old->value.len : 0, more = strlen(user);
    if (len)
        memcpy(text, old->value.data, len);
    memcpy(text + len, user, more);
    change->action = HM_SET;
    change->value = (hm_bytes){text, len + more};
}

/* The same bytes with a hash are another key: the name of the peer, which also said what entry id it has. */
static void read_name(const char *peer) {
    char found[64];
    size_t len = 0;
    const char *bytes = joined("from:", peer);
    const hm_key hashed = hm_key_hashed(bytes, strlen(bytes), HASH);
    must(check(hm_get_at(store, &hashed, found, sizeof found, &len, &error)) == HM_OK, "no key with that hash");
    must(len == strlen(peer) && memcmp(found, peer, len) == 0, "another language stored another name");
    const hm_key id = hm_key_id(number(joined("id:", peer)));
    must(check(hm_get_at(store, &id, found, sizeof found, &len, &error)) == HM_OK, "another language's entry id is stale");
    must(len == strlen(peer) && memcmp(found, peer, len) == 0, "another language's entry id means another key");
}

static void store_name(const char *me) {
    char digits[24];
    uint64_t id;
    const char *bytes = joined("from:", me);
    const hm_key hashed = hm_key_hashed(bytes, strlen(bytes), HASH);
    check(hm_set_at(store, &hashed, me, strlen(me), &error));
    must(check(hm_id_of_at(store, &hashed, &id, &error)) == HM_OK, "no entry id of a key that was stored");
    const int len = snprintf(digits, sizeof digits, "%" PRIu64, id);
    check(hm_set(store, joined("id:", me), 3 + strlen(me), digits, (size_t)len, &error));
}

static void read_of(const char *peer) {
    char wanted[512], found[512];
    const char *key = joined("from:", peer);
    const size_t len = greeting(peer, wanted), key_len = strlen(key);
    hm_metadata meta;
    int64_t ms = 0;
    for (int waited = 0; check(hm_contains(store, key, key_len, &error)) == HM_ABSENT; waited++) {
        must(waited < PATIENCE_MS, "a value of another language never came");
        pause_ms(1);
    }
    must(check(hm_get_item(store, key, key_len, found, sizeof found, &meta, &error)) == HM_OK, "it is gone or too long");
    must(meta.value_len == len && memcmp(found, wanted, len) == 0, "another language stored other bytes");
    must(meta.flags == strlen(peer), "another language stored other flags");
    check(hm_ttl(store, key, key_len, &ms, &error));
    must(ms > 2000 * 1000 && ms <= 3600 * 1000, "another language stored another time to live");
    read_name(peer);
}

static void forever(const char *me) {
    for (uint64_t n = 0;; n++) {
        char key[64], value[700];
        const int len = snprintf(key, sizeof key, "noise:%s:%" PRIu64, me, n % 50);
        memset(value, 'a' + (int)(n % 26), sizeof value);
        check(hm_set(store, key, (size_t)len, value, n % sizeof value, &error));
        if (n % 7 == 0)
            check(hm_delete(store, key, (size_t)len, &error));
        add_one(joined("noise:", me));
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    char *me = argv[2], *all = argv[3];
    check(hm_open(argv[1], NULL, &store, &error));
    if (strcmp(all, "forever") == 0)
        forever(me);

    uint64_t others = 1;
    for (const char *at = all; *at; at++)
        others += *at == ',';
    add_one("arrived");
    wait_for("arrived", others);

    for (int i = 0; i < SUMS; i++) {
        add_one("sum");
        add_one(joined("sum:", me));
    }
    char line[64];
    snprintf(line, sizeof line, "%s;", me);
    for (int i = 0; i < STEPS; i++) {
        next_number();
        check(hm_update_with(store, "log", 3, put_behind, line, NULL, &error));
    }
    store_name(me);
    char mine[512];
    const hm_attributes hour = {.flags = (uint32_t)strlen(me), .expiry = HM_AFTER, .expiry_ms = 3600 * 1000};
    const size_t len = greeting(me, mine);
    check(hm_set_with(store, joined("from:", me), 5 + strlen(me), mine, len, &hour, NULL, &error));
    for (char *peer = strtok(all, ","); peer; peer = strtok(NULL, ","))
        read_of(peer);

    const hm_attributes brief = {.expiry = HM_AFTER, .expiry_ms = 50};
    check(hm_set_with(store, joined("brief:", me), 6 + strlen(me), "x", 1, &brief, NULL, &error));
    pause_ms(80);
    must(check(hm_contains(store, joined("brief:", me), 6 + strlen(me), &error)) == HM_ABSENT, "what had expired was there");
    check(hm_dec_ref(store, "refs", 4, 1, NULL, &error));
    check(hm_close(store, &error));
    return 0;
}
