/* Many threads and processes on one handle: nothing is lost, nothing torn. */
#include "test.h"
#include <pthread.h>
#include <sys/wait.h>

enum { THREADS = 4, STEPS = 3000, BYTES = 4096, CHILDREN = 4 };

static hm_store *store;

static void *count(void *seed) {
    const hm_counter one = {1, {0, HM_NEVER, 0, 0}};
    unsigned char value[BYTES], read[BYTES];
    size_t len;
    hm_error mine; /* the one of the checks is shared */
    for (int i = 0; i < STEPS; i++) {
        if (hm_incr(store, KEY("hits"), 1, &one, NULL, &mine) != HM_OK) FAIL("incr: %s", mine.text);
        memset(value, (int)(i + (intptr_t)seed), sizeof value);
        if (hm_set(store, KEY("block"), value, sizeof value, &mine) != HM_OK) FAIL("set: %s", mine.text);
        if (hm_get(store, KEY("block"), read, sizeof read, &len, &mine) != HM_OK) FAIL("get: %s", mine.text);
        for (size_t at = 1; at < len; at++)
            CHECK(read[at] == read[0]);
        hm_view view;
        if (hm_view_acquire(store, KEY("block"), &view, &mine) != HM_OK) FAIL("view: %s", mine.text);
        const unsigned char *bytes = view.data;
        for (size_t at = 1; at < view.len; at++)
            CHECK(bytes[at] == bytes[0]);
        hm_view_release(&view);
    }
    return NULL;
}

static void *commit_elsewhere(void *room) {
    hm_error mine;
    CHECK(hm_reservation_commit(room, NULL, &mine) == HM_E_INVALID_STATE && mine.code == HM_E_INVALID_STATE);
    CHECK(hm_reservation_abandon(room, &mine) == HM_E_INVALID_STATE);
    return NULL;
}

static void *release_elsewhere(void *view) {
    hm_view_release(view);
    return NULL;
}

static void in_thread(void *(*work)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static uint64_t hits(void) {
    char text[24] = {0};
    size_t len;
    EXPECT(HM_OK, hm_get(store, KEY("hits"), text, sizeof text - 1, &len, &error));
    return strtoull(text, NULL, 10);
}

static void fork_one(void) {
    hm_reservation room;
    hm_view view;
    EXPECT(HM_OK, hm_reserve(store, KEY("parent"), 4, NULL, &room, &error));
    EXPECT(HM_OK, hm_set(store, KEY("seen"), KEY("by both"), &error));
    EXPECT(HM_OK, hm_view_acquire(store, KEY("seen"), &view, &error));
    const pid_t child = fork();
    if (child == 0) {
        EXPECT(HM_E_INVALID_STATE, hm_reservation_commit(&room, NULL, &error)); /* it is the parent's */
        EQUAL(view.data, view.len, "by both");
        hm_view_release(&view);
        EXPECT(HM_OK, hm_set(store, KEY("child"), KEY("wrote"), &error));
        EXPECT(HM_OK, hm_close(store, &error));
        EXPECT(HM_E_CLOSED, hm_contains(store, KEY("child"), &error));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    memcpy(room.data, "kept", 4);
    EXPECT(HM_OK, hm_reservation_commit(&room, NULL, &error));
    EQUAL(view.data, view.len, "by both");
    hm_view_release(&view);
    EXPECT(HM_OK, hm_contains(store, KEY("child"), &error));
}

int main(void) {
    store = new_store("threads", 0);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(hits() == THREADS * STEPS);

    hm_reservation room;
    hm_view view;
    EXPECT(HM_OK, hm_reserve(store, KEY("room"), 4, NULL, &room, &error));
    in_thread(commit_elsewhere, &room);
    memcpy(room.data, "mine", 4);
    EXPECT(HM_OK, hm_reservation_commit(&room, NULL, &error));
    EXPECT(HM_OK, hm_view_acquire(store, KEY("room"), &view, &error));
    in_thread(release_elsewhere, &view);

    fork_one();
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            count((void *)(intptr_t)i);
            _exit(0);
        }
    }
    int status, ended = 0;
    while (wait(&status) > 0)
        ended += status == 0;
    CHECK(ended == CHILDREN);
    CHECK(hits() == (THREADS + CHILDREN) * STEPS);
    EXPECT(HM_OK, hm_check(store, NULL, NULL, NULL, &error));
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
