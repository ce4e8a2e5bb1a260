/* Hundreds of stores in one process, which all grow; and a process that may have no more addresses: HM_E_ADDRESS_SPACE, and
 * nothing else. */
#include "test.h"
#include <sys/resource.h>
#include <sys/wait.h>

enum { STORES = 400, LARGE = 1 << 20 };

static char large[LARGE];

static hm_store *stores[STORES];

static void number_of(char text[12], int number) { snprintf(text, 12, "%d", number); }

static void hundreds(void) {
    char name[32], text[12], got[12];
    size_t len;
    for (int i = 0; i < STORES; i++) {
        hm_options options = {
            .size = sizeof options, .flags = HM_CREATE_NEW | HM_REMOVE_ON_LAST_CLOSE, .segment_bytes = 4096};
        snprintf(name, sizeof name, "many%d", i);
        EXPECT(HM_OK, hm_open(name, &options, &stores[i], &error));
        number_of(text, i);
        EXPECT(HM_OK, hm_set(stores[i], KEY("k"), text, strlen(text), &error));
    }
    for (int i = 0; i < STORES; i += STORES / 4)
        for (int n = 0; n < 50; n++) {
            number_of(text, n);
            EXPECT(HM_OK, hm_set(stores[i], text, strlen(text), large, LARGE, &error));
        }
    for (int i = 0; i < STORES; i++) {
        number_of(text, i);
        EXPECT(HM_OK, hm_get(stores[i], KEY("k"), got, sizeof got, &len, &error));
        CHECK(len == strlen(text) && memcmp(got, text, len) == 0);
        EXPECT(HM_OK, hm_close(stores[i], &error));
    }
}

static int each_problem(void *user, hm_bytes code, uint64_t offset, hm_bytes text) {
    (void)offset;
    FAIL("%.*s: %.*s %p", (int)code.len, (const char *)code.data, (int)text.len, (const char *)text.data, user);
}

/* In a child, which may have 40 MB more than it has. */
static int limited(hm_store *store) {
    char text[12];
    size_t len;
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%lu", &pages) == 1);
    fclose(statm);
    if (pages > 1ul << 28) return 0; /* a sanitizer has terabytes for itself, and no use for a limit */
    struct rlimit most;
    most.rlim_cur = most.rlim_max = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (40 << 20);
    CHECK(setrlimit(RLIMIT_AS, &most) == 0);
    int n = 0, result = HM_OK;
    for (; n < 1000 && result == HM_OK; n += result == HM_OK) {
        number_of(text, n);
        result = hm_set(store, text, strlen(text), large, LARGE / 8, &error);
    }
    CHECK(result == HM_E_ADDRESS_SPACE && n > 10);
    CHECK(strcmp(hm_result_name(result), "AddressSpace") == 0 && strstr(error.text, "RLIMIT_AS") != NULL);
    for (int i = 0; i <= n; i++) {
        number_of(text, i);
        EXPECT(i < n ? HM_OK : HM_ABSENT, hm_get(store, text, strlen(text), large, LARGE, &len, &error));
        CHECK(i == n || len == LARGE / 8);
    }
    return 0;
}

int main(void) {
    hundreds();
    hm_store *store = new_store("limited", 0);
    EXPECT(HM_OK, hm_set(store, KEY("first"), KEY("value"), &error));
    const pid_t child = fork();
    if (child == 0) _exit(limited(store));
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (int n = 0; n < 200; n++) EXPECT(HM_OK, hm_set(store, &n, sizeof n, large, LARGE / 8, &error));
    hm_report report = {.size = sizeof report};
    EXPECT(HM_OK, hm_check(store, &report, each_problem, NULL, &error));
    CHECK(report.problems == 0);
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
