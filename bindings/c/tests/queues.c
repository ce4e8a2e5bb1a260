/* Pools, queues, endpoints; waiting for keys and for each other; a backup. */
#include "test.h"
#include <hashmere_queue.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { ELEMENTS = 16, BYTES = 32, MS = 300000 };

static hm_store *store;
static hm_pool *pool;
static hm_queue *unused, *todo;

static const hm_pool_options sizes = {.size = sizeof sizes, .elements = ELEMENTS, .bytes = BYTES, .batch = 8};

static uint64_t count(hm_queue *queue) {
    uint64_t n;
    EXPECT(HM_OK, hm_queue_len(queue, &n, &error));
    return n;
}

static void pools(void) {
    EXPECT(HM_E_QUEUE_NOT_FOUND, hm_pool_open(store, "jobs", NULL, &pool, &error));
    CHECK(pool == NULL);
    hm_pool_options bad = sizes;
    bad.elements = 0;
    EXPECT(HM_E_QUEUE_BAD_OPTION, hm_pool_open(store, "jobs", &bad, &pool, &error));
    EXPECT(HM_E_ARGUMENT, hm_pool_open(store, NULL, &sizes, &pool, &error));
    EXPECT(HM_E_ARGUMENT, hm_pool_open(store, "\xff", &sizes, &pool, &error));
    EXPECT(HM_OK, hm_pool_open(store, "jobs", &sizes, &pool, &error));
    bad.elements = ELEMENTS + 1;
    hm_pool *again;
    EXPECT(HM_E_QUEUE_EXISTS, hm_pool_open(store, "jobs", &bad, &again, &error));
    EXPECT(HM_OK, hm_pool_open(store, "jobs", NULL, &again, &error));
    hm_pool_close(again);
    hm_pool_close(NULL);

    EXPECT(HM_OK, hm_queue_open(pool, "free", NULL, &unused, &error));
    EXPECT(HM_OK, hm_queue_open(pool, "todo", NULL, &todo, &error));
    CHECK(count(unused) == ELEMENTS && count(todo) == 0);
    const hm_queue_options single = {.size = sizeof single, .kind = HM_QUEUE_SPSC};
    hm_queue *other;
    EXPECT(HM_E_QUEUE_EXISTS, hm_queue_open(pool, "todo", &single, &other, &error));
    const hm_queue_options unknown = {.size = sizeof unknown, .kind = 9};
    EXPECT(HM_E_ARGUMENT, hm_queue_open(pool, "x", &unknown, &other, &error));
    EXPECT(HM_E_ARGUMENT, hm_queue_open(NULL, "x", NULL, &other, &error));
    hm_queue_close(NULL);
}

/* Pushes with a pop behind them, whole queues, a look at the first element. `todo` has 4 elements before and after. */
static void passing_on(hm_endpoint *endpoint, hm_queue *bounded) {
    hm_element one;
    uint64_t pushed = 9, n = 9;
    char bytes[BYTES];
    size_t len = 0;
    EXPECT(HM_OK, hm_queue_peek(todo, bytes, sizeof bytes, &len, &error));
    CHECK(len == BYTES);
    EXPECT(HM_BUFFER_TOO_SMALL, hm_queue_peek(todo, bytes, 3, &len, &error));
    EXPECT(HM_ABSENT, hm_queue_peek(bounded, bytes, sizeof bytes, &len, &error));
    EXPECT(HM_TIMEOUT, hm_queue_wait(endpoint, bounded, 2, &error));
    EXPECT(HM_OK, hm_queue_wait(endpoint, todo, 2, &error));

    EXPECT(HM_OK, hm_queue_pop(endpoint, todo, &one, &error));
    const uint32_t index = one.index;
    EXPECT(HM_OK, hm_queue_push_pop(endpoint, &one, bounded, todo, &error));
    CHECK(one.index != index && count(bounded) == 1 && count(todo) == 2);
    EXPECT(HM_QUEUE_FULL, hm_queue_push_pop(endpoint, &one, bounded, todo, &error));
    CHECK(one.slot != 0 && count(todo) == 2);
    EXPECT(HM_E_INVALID_STATE, hm_queue_drain(endpoint, todo, unused, &n, &error));
    EXPECT(HM_OK, hm_queue_push_pop(endpoint, &one, unused, bounded, &error));
    CHECK(one.index == index);
    EXPECT(HM_ABSENT, hm_queue_push_pop(endpoint, &one, todo, bounded, &error));
    CHECK(one.slot == 0 && count(todo) == 3);
    EXPECT(HM_E_ARGUMENT, hm_queue_push_pop(endpoint, &one, todo, bounded, &error));

    EXPECT(HM_OK, hm_queue_pop_many(endpoint, todo, 2, &n, &error));
    EXPECT(HM_E_QUEUE_BAD_OPTION, hm_queue_drain(endpoint, todo, unused, &n, &error));
    EXPECT(HM_OK, hm_queue_push_pop_many(endpoint, unused, todo, 5, &pushed, &n, &error));
    CHECK(pushed == 2 && n == 1);
    EXPECT(HM_OK, hm_batch_len(endpoint, &n, &error));
    CHECK(n == 1);
    EXPECT(HM_OK, hm_queue_push_many(endpoint, todo, 5, &n, &error));
    EXPECT(HM_OK, hm_queue_drain(endpoint, unused, todo, &n, &error));
    CHECK(n == ELEMENTS - 1 && count(unused) == 0);
    EXPECT(HM_OK, hm_queue_pop_many(endpoint, todo, ELEMENTS - 4, &n, &error));
    while (n > 0)
        EXPECT(HM_OK, hm_queue_push_pop_many(endpoint, unused, bounded, 0, &pushed, &n, &error));
    while (count(todo) > 4) {
        EXPECT(HM_OK, hm_queue_pop(endpoint, todo, &one, &error));
        EXPECT(HM_OK, hm_queue_push(endpoint, &one, unused, &error));
    }
}

static void elements(void) {
    hm_endpoint *endpoint;
    hm_element one, two, copy;
    EXPECT(HM_OK, hm_endpoint_open(pool, &endpoint, &error));
    EXPECT(HM_ABSENT, hm_queue_pop(endpoint, todo, &one, &error));
    EXPECT(HM_TIMEOUT, hm_queue_pop_wait(endpoint, todo, 2, &one, &error));
    EXPECT(HM_OK, hm_queue_pop(endpoint, unused, &one, &error));
    CHECK(one.index == 0 && one.len == BYTES && one.slot != 0);
    memcpy(one.data, "hello", 6);
    copy = one;
    EXPECT(HM_OK, hm_queue_push(endpoint, &one, todo, &error));
    CHECK(one.slot == 0 && one.data == NULL);
    EXPECT(HM_E_ARGUMENT, hm_queue_push(endpoint, &one, todo, &error));
    EXPECT(HM_E_ARGUMENT, hm_queue_push(endpoint, &copy, todo, &error));
    EXPECT(HM_OK, hm_queue_pop_wait(endpoint, todo, MS, &one, &error));
    CHECK(strcmp(one.data, "hello") == 0);
    EXPECT(HM_OK, hm_queue_pop(endpoint, unused, &two, &error));
    EXPECT(HM_OK, hm_queue_give_back(endpoint, &two, &error));
    CHECK(count(unused) == ELEMENTS - 1);

    /* A bounded queue, with one consumer at a time. */
    const hm_queue_options short_one = {.size = sizeof short_one, .kind = HM_QUEUE_MPSC, .bound = 1};
    hm_queue *bounded;
    EXPECT(HM_OK, hm_queue_open(pool, "bounded", &short_one, &bounded, &error));
    EXPECT(HM_OK, hm_queue_pop(endpoint, unused, &two, &error));
    EXPECT(HM_OK, hm_queue_push(endpoint, &two, bounded, &error));
    EXPECT(HM_QUEUE_FULL, hm_queue_push(endpoint, &one, bounded, &error));
    CHECK(one.slot != 0 && strcmp(one.data, "hello") == 0);
    EXPECT(HM_OK, hm_queue_pop(endpoint, bounded, &two, &error));
    hm_endpoint *second;
    EXPECT(HM_OK, hm_endpoint_open(pool, &second, &error));
    EXPECT(HM_E_QUEUE_TAKEN, hm_queue_pop(second, bounded, &copy, &error));
    hm_endpoint_close(second);

    /* Alone and in batches do not mix. */
    uint64_t n;
    void *data;
    size_t len;
    EXPECT(HM_E_INVALID_STATE, hm_queue_pop_many(endpoint, unused, 4, &n, &error));
    EXPECT(HM_OK, hm_queue_push(endpoint, &one, unused, &error));
    EXPECT(HM_OK, hm_queue_push(endpoint, &two, unused, &error));
    EXPECT(HM_OK, hm_queue_pop_many(endpoint, unused, 4, &n, &error));
    CHECK(n == 4);
    EXPECT(HM_OK, hm_batch_at(endpoint, 3, &data, &len, &error));
    CHECK(len == BYTES);
    memcpy(data, "fourth", 7);
    EXPECT(HM_ABSENT, hm_batch_at(endpoint, 4, &data, &len, &error));
    EXPECT(HM_OK, hm_queue_push_many(endpoint, todo, 9, &n, &error));
    CHECK(n == 4 && count(todo) == 4);
    passing_on(endpoint, bounded);
    hm_queue_close(bounded);

    /* What an endpoint holds goes back when it is closed. */
    for (int i = 0; i < 3; i++)
        EXPECT(HM_OK, hm_queue_pop(endpoint, todo, &one, &error));
    hm_pool_stats stats = {.size = sizeof stats};
    EXPECT(HM_OK, hm_pool_get_stats(pool, &stats, &error));
    CHECK(stats.elements == ELEMENTS && stats.bytes == BYTES && stats.held == 3 && stats.endpoints == 1 && stats.queues == 3);
    hm_endpoint_close(endpoint);
    hm_endpoint_close(NULL);
    CHECK(count(todo) == 4);
}

static void event_loop(void) {
    hm_ready_fd *ready;
    hm_endpoint *endpoint;
    hm_element element;
    int fd = -1;
    EXPECT(HM_OK, hm_ready_fd_open(todo, &ready, &fd, &error));
    struct pollfd poll_of = {.fd = fd, .events = POLLIN};
    CHECK(poll(&poll_of, 1, MS) == 1);
    EXPECT(HM_OK, hm_ready_fd_acknowledge(ready, &error));
    EXPECT(HM_OK, hm_endpoint_open(pool, &endpoint, &error));
    while (hm_queue_pop(endpoint, todo, &element, &error) == HM_OK)
        EXPECT(HM_OK, hm_queue_push(endpoint, &element, unused, &error));
    CHECK(count(unused) == ELEMENTS);
    hm_endpoint_close(endpoint);
    hm_ready_fd_close(ready);
    hm_ready_fd_close(NULL);
}

/* A child that dies with an element gives it back; what was opened before the fork is refused there. */
static void death(void) {
    const pid_t child = fork();
    if (child == 0) {
        hm_endpoint *endpoint;
        hm_element element;
        hm_pool *mine;
        hm_queue *from;
        EXPECT(HM_E_QUEUE_FORKED, hm_endpoint_open(pool, &endpoint, &error));
        EXPECT(HM_OK, hm_pool_open(store, "jobs", NULL, &mine, &error));
        EXPECT(HM_OK, hm_queue_open(mine, "free", NULL, &from, &error));
        EXPECT(HM_OK, hm_endpoint_open(mine, &endpoint, &error));
        EXPECT(HM_OK, hm_queue_pop(endpoint, from, &element, &error));
        kill(getpid(), SIGKILL);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    uint64_t given_back = 0;
    EXPECT(HM_OK, hm_pool_recover(pool, &given_back, &error));
    CHECK(given_back == 1 && count(unused) == ELEMENTS);
}

static void *change_later(void *nothing) {
    const struct timespec time = {0, 20 * 1000 * 1000};
    nanosleep(&time, NULL);
    hm_set(store, KEY("waited"), KEY("2"), NULL);
    return nothing;
}

/* Asks for the value that it is making. */
static int make_of_itself(void *user, hm_bytes *value) {
    size_t len;
    char room[8];
    uint32_t pid = 0;
    hm_error own; /* the other one is that of the call that this is called by */
    CHECK(hm_once_holder(user, KEY("nested"), &pid, &own) == HM_OK && pid == (uint32_t)getpid());
    CHECK(hm_once(user, KEY("nested"), UINT64_MAX, make_of_itself, user, room, sizeof room, &len, &own) == HM_E_QUEUE_REENTERED);
    CHECK(strstr(own.text, "`once` of \"nested\"") != NULL);
    *value = (hm_bytes){"made", 4};
    return 0;
}

static int make(void *user, hm_bytes *value) {
    *value = (hm_bytes){"made", 4};
    return ++*(int *)user == 1; /* the first attempt makes none */
}

/* Whether another thread is kept out of the mutex: something or NULL. */
static void *contend(void *nothing) {
    (void)nothing;
    hm_error own;
    hm_mutex_guard *lock;
    int result = hm_mutex_lock(store, "mutex", 5, 10, &lock, NULL, &own);
    hm_mutex_unlock(lock);
    return result == HM_TIMEOUT ? &error : NULL;
}

/* Whether another thread is kept from writing and from a permit: something or NULL. */
static void *contend_more(void *nothing) {
    (void)nothing;
    hm_error own;
    hm_rwlock_guard *reader, *writer;
    hm_semaphore_guard *permit;
    int read = hm_rwlock_read(store, "rwlock", 6, 10, &reader, NULL, &own);
    hm_rwlock_unlock(reader);
    int write = hm_rwlock_write(store, "rwlock", 6, 10, &writer, NULL, &own);
    hm_rwlock_unlock(writer);
    int acquired = hm_semaphore_acquire(store, "one", 3, 1, 10, &permit, NULL, &own);
    hm_semaphore_release(permit);
    return read == HM_OK && write == HM_TIMEOUT && acquired == HM_TIMEOUT ? &error : NULL;
}

static void readers_writers_permits(void) {
    hm_rwlock_guard *lock, *other;
    hm_rwlock_waiter *waiter;
    hm_semaphore_guard *permit, *more;
    uint32_t abandoned = 9, pid = 0, pids[2] = {0};
    size_t count = 9;
    pthread_t contender;
    void *result;
    EXPECT(HM_OK, hm_rwlock_read(store, KEY("rwlock"), 0, &lock, &abandoned, &error));
    CHECK(abandoned == 0);
    EXPECT(HM_TIMEOUT, hm_rwlock_write(store, KEY("rwlock"), 0, &other, NULL, &error));
    CHECK(other == NULL);
    EXPECT(HM_E_QUEUE_REENTERED, hm_rwlock_write(store, KEY("rwlock"), UINT64_MAX, &other, NULL, &error));
    CHECK(strstr(error.text, "the readers-writer lock \"rwlock\" was locked by this thread") != NULL);
    EXPECT(HM_OK, hm_rwlock_readers(store, KEY("rwlock"), pids, 2, &count, &error));
    CHECK(count == 1 && pids[0] == (uint32_t)getpid());
    EXPECT(HM_BUFFER_TOO_SMALL, hm_rwlock_readers(store, KEY("rwlock"), NULL, 0, &count, &error));
    EXPECT(HM_ABSENT, hm_rwlock_writer(store, KEY("rwlock"), &pid, &error));
    EXPECT(HM_OK, hm_semaphore_acquire(store, KEY("one"), 1, 0, &permit, &abandoned, &error));
    EXPECT(HM_E_QUEUE_REENTERED, hm_semaphore_acquire(store, KEY("one"), 1, 10, &more, NULL, &error));
    EXPECT(HM_E_QUEUE_BROKEN, hm_semaphore_acquire(store, KEY("one"), 2, 10, &more, NULL, &error));
    EXPECT(HM_E_QUEUE_BAD_OPTION, hm_semaphore_acquire(store, KEY("none"), 0, 10, &more, NULL, &error));
    CHECK(more == NULL);
    EXPECT(HM_OK, hm_semaphore_holders(store, KEY("one"), pids, 2, &count, &error));
    CHECK(count == 1 && pids[0] == (uint32_t)getpid());
    CHECK(pthread_create(&contender, NULL, contend_more, NULL) == 0 && pthread_join(contender, &result) == 0 && result == &error);
    hm_semaphore_release(permit);
    hm_rwlock_unlock(lock);
    EXPECT(HM_OK, hm_rwlock_waiter_open(store, KEY("rwlock"), 1, &waiter, &error));
    EXPECT(HM_OK, hm_rwlock_waiter_wait(waiter, MS, &lock, &abandoned, &error));
    hm_rwlock_waiter_close(waiter);
    EXPECT(HM_OK, hm_rwlock_writer(store, KEY("rwlock"), &pid, &error));
    CHECK(abandoned == 0 && pid == (uint32_t)getpid());
    EXPECT(HM_TIMEOUT, hm_rwlock_read(store, KEY("rwlock"), 0, &other, NULL, &error));
    hm_rwlock_unlock(lock);
    hm_rwlock_unlock(NULL);
    hm_rwlock_waiter_close(NULL);
    hm_semaphore_release(NULL);
    EXPECT(HM_ABSENT, hm_contains(store, KEY("rwlock"), &error));
    EXPECT(HM_ABSENT, hm_contains(store, KEY("one"), &error));
}

static void *add_one(void *atomic) {
    hm_error own;
    uint64_t before;
    return hm_atomic_fetch_add(atomic, 1, &before, &own) == HM_OK ? &error : NULL;
}

static void atomics(void) {
    hm_atomics *set;
    hm_atomic *atomic, *same;
    uint64_t value = 9, *word;
    EXPECT(HM_E_QUEUE_BAD_OPTION, hm_atomics_open(store, "", &set, &error));
    CHECK(set == NULL);
    EXPECT(HM_OK, hm_atomics_open(store, "set", &set, &error));
    EXPECT(HM_OK, hm_atomic_open(set, "a", &atomic, &error));
    EXPECT(HM_OK, hm_atomic_open(set, "a", &same, &error));
    hm_atomics_close(set);
    EXPECT(HM_OK, hm_atomic_load(atomic, &value, &error));
    CHECK(value == 0);
    EXPECT(HM_OK, hm_atomic_store(same, 6, &error));
    EXPECT(HM_OK, hm_atomic_fetch_add(atomic, UINT64_MAX, &value, &error));
    CHECK(value == 6);
    EXPECT(HM_OK, hm_atomic_fetch_or(atomic, 2, &value, &error));
    CHECK(value == 5);
    EXPECT(HM_OK, hm_atomic_fetch_and(atomic, 3, &value, &error));
    CHECK(value == 7);
    EXPECT(HM_OK, hm_atomic_fetch_xor(atomic, 1, &value, &error));
    CHECK(value == 3);
    EXPECT(HM_OK, hm_atomic_swap(atomic, 4, &value, &error));
    CHECK(value == 2);
    EXPECT(HM_UNCHANGED, hm_atomic_compare_exchange(atomic, 3, 9, &value, &error));
    CHECK(value == 4);
    EXPECT(HM_OK, hm_atomic_compare_exchange(atomic, 4, 8, &value, &error));
    EXPECT(HM_OK, hm_clear(store, &error));
    EXPECT(HM_OK, hm_set(store, KEY("waited"), KEY("1"), &error));
    EXPECT(HM_OK, hm_atomic_word(same, &word, &error));
    CHECK(__atomic_load_n(word, __ATOMIC_SEQ_CST) == 8);
    EXPECT(HM_TIMEOUT, hm_atomic_wait(atomic, 8, 2, &value, &error));
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, add_one, same) == 0);
    EXPECT(HM_OK, hm_atomic_wait(atomic, 8, MS, &value, &error));
    CHECK(value == 9 && pthread_join(thread, &result) == 0 && result == &error);
    EXPECT(HM_OK, hm_atomic_notify(atomic, &error));
    EXPECT(HM_OK, hm_atomics_remove(store, "set", &error));
    EXPECT(HM_ABSENT, hm_atomics_remove(store, "set", &error));
    EXPECT(HM_E_QUEUE_REMOVED, hm_atomic_wait(atomic, 9, MS, &value, &error));
    hm_atomic_close(atomic);
    hm_atomic_close(same);
    hm_atomic_close(NULL);
    hm_atomics_close(NULL);
}

static void waiting(void) {
    pthread_t thread;
    uint64_t now = 7;
    hm_metadata meta;
    EXPECT(HM_TIMEOUT, hm_wait(store, KEY("waited"), 0, 2, &now, &error));
    EXPECT(HM_OK, hm_set(store, KEY("waited"), KEY("1"), &error));
    EXPECT(HM_OK, hm_wait(store, KEY("waited"), 0, 0, &now, &error));
    EXPECT(HM_OK, hm_get_metadata(store, KEY("waited"), &meta, &error));
    CHECK(now == meta.version);
    CHECK(pthread_create(&thread, NULL, change_later, NULL) == 0);
    EXPECT(HM_OK, hm_wait(store, KEY("waited"), now, MS, &now, &error));
    CHECK(now > meta.version && pthread_join(thread, NULL) == 0);

    const hm_bytes keys[] = {{"never", 5}, {"waited", 6}};
    uint64_t seen[] = {0, now};
    size_t which = 9;
    EXPECT(HM_TIMEOUT, hm_wait_any(store, keys, seen, 2, 2, &which, &now, &error));
    EXPECT(HM_E_INVALID_STATE, hm_wait_any(store, keys, seen, 0, 2, &which, &now, &error));
    EXPECT(HM_E_ARGUMENT, hm_wait_any(store, keys, NULL, 2, 2, &which, &now, &error));
    CHECK(pthread_create(&thread, NULL, change_later, NULL) == 0);
    EXPECT(HM_OK, hm_wait_any(store, keys, seen, 2, MS, &which, &now, &error));
    CHECK(which == 1 && now > seen[1] && pthread_join(thread, NULL) == 0);
    seen[1] = now;
    EXPECT(HM_OK, hm_delete(store, KEY("waited"), &error));
    EXPECT(HM_REMOVED, hm_wait(store, KEY("waited"), seen[1], MS, &now, &error));
    CHECK(now == 0);
    now = 7;
    EXPECT(HM_REMOVED, hm_wait_any(store, keys, seen, 2, MS, &which, &now, &error));
    CHECK(which == 1 && now == 0);

    hm_mutex_guard *lock, *other;
    uint32_t abandoned = 9;
    EXPECT(HM_OK, hm_mutex_lock(store, KEY("mutex"), 0, &lock, &abandoned, &error));
    CHECK(abandoned == 0);
    EXPECT(HM_TIMEOUT, hm_mutex_lock(store, KEY("mutex"), 0, &other, NULL, &error));
    CHECK(other == NULL);
    EXPECT(HM_E_QUEUE_REENTERED, hm_mutex_lock(store, KEY("mutex"), UINT64_MAX, &other, NULL, &error));
    CHECK(other == NULL && strstr(error.text, "the mutex \"mutex\" was locked by this thread") != NULL);
    EXPECT(HM_OK, hm_clear(store, &error));
    EXPECT(HM_OK, hm_set(store, KEY("waited"), KEY("1"), &error));
    pthread_t contender;
    void *result;
    CHECK(pthread_create(&contender, NULL, contend, NULL) == 0 && pthread_join(contender, &result) == 0 && result == &error);
    hm_mutex_unlock(lock);
    CHECK(pthread_create(&contender, NULL, contend, NULL) == 0 && pthread_join(contender, &result) == 0 && result == NULL);
    EXPECT(HM_OK, hm_mutex_lock(store, KEY("mutex"), 0, &lock, &abandoned, &error));
    uint32_t pid = 0;
    EXPECT(HM_OK, hm_mutex_holder(store, KEY("mutex"), &pid, &error));
    CHECK(pid == (uint32_t)getpid());
    EXPECT(HM_OK, hm_delete(store, KEY("mutex"), &error));
    pid = 0;
    EXPECT(HM_OK, hm_mutex_holder(store, KEY("mutex"), &pid, &error));
    CHECK(pid == (uint32_t)getpid());
    hm_mutex_unlock(lock);
    EXPECT(HM_ABSENT, hm_mutex_holder(store, KEY("mutex"), &pid, &error));
    hm_mutex_unlock(NULL);
    EXPECT(HM_ABSENT, hm_contains(store, KEY("mutex"), &error));
    EXPECT(HM_E_QUEUE_BROKEN, hm_mutex_lock(store, KEY("waited"), 0, &lock, NULL, &error));

    int calls = 0;
    char value[8];
    size_t len;
    EXPECT(HM_UNCHANGED, hm_once(store, KEY("once"), MS, make, &calls, value, sizeof value, &len, &error));
    for (int i = 0; i < 3; i++) {
        EXPECT(HM_OK, hm_once(store, KEY("once"), MS, make, &calls, value, sizeof value, &len, &error));
        EQUAL(value, len, "made");
    }
    CHECK(calls == 2);
    EXPECT(HM_ABSENT, hm_once_holder(store, KEY("once"), &pid, &error));
    EXPECT(HM_OK, hm_once(store, KEY("nested"), MS, make_of_itself, store, value, sizeof value, &len, &error));
    EXPECT(HM_E_QUEUE_BAD_OPTION, hm_pool_remove(store, "0123456789012345678901234567890123456789012345678901234567890123456789"
                                                        "0123456789012345678901234567890123456789012345678901234567890", &error));
    EXPECT(HM_BUFFER_TOO_SMALL, hm_once(store, KEY("once"), MS, make, &calls, value, 2, &len, &error));

    hm_barrier *first, *second;
    uint64_t round = 0, lost = 9;
    EXPECT(HM_OK, hm_barrier_join(store, KEY("barrier"), 2, &first, &error));
    EXPECT(HM_E_QUEUE_BROKEN, hm_barrier_join(store, KEY("barrier"), 3, &second, &error));
    EXPECT(HM_OK, hm_barrier_join(store, KEY("barrier"), 2, &second, &error));
    EXPECT(HM_TIMEOUT, hm_barrier_wait(first, 2, NULL, NULL, &error));
    EXPECT(HM_OK, hm_barrier_wait(second, MS, &round, &lost, &error));
    CHECK(round == 1 && lost == 0);
    EXPECT(HM_OK, hm_barrier_wait(first, MS, &round, &lost, &error));
    hm_barrier_leave(second);
    EXPECT(HM_OK, hm_barrier_wait(first, MS, &round, &lost, &error));
    CHECK(round == 2 && lost == 1);
    hm_barrier_leave(first);
    hm_barrier_leave(NULL);
}

struct told {
    uint64_t calls, done, of;
};

static void tell(void *user, uint64_t done, uint64_t of) {
    struct told *told = user;
    *told = (struct told){told->calls + 1, done, of};
}

static void backup(void) {
    char path[512];
    size_t len;
    uint64_t keys;
    struct told told = {0, 0, 0};
    hm_backup_report report = {.size = sizeof report};
    EXPECT(HM_OK, hm_path(store, path, sizeof path - 8, &len, &error));
    memcpy(path + len, ".copy", 6);
    EXPECT(HM_OK, hm_len(store, &keys, &error));
    EXPECT(HM_OK, hm_backup(store, path, 0, tell, &told, &report, &error));
    CHECK(told.calls > 0 && told.done <= told.of && report.items == keys && report.bytes_file > 0 && !report.is_thinned);
    EXPECT(HM_E_BACKUP_EXISTS, hm_backup(store, path, 0, NULL, NULL, NULL, &error));
    EXPECT(HM_OK, hm_backup(store, path, HM_REPLACE, NULL, NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_backup(store, path, 1 << 9, NULL, NULL, NULL, &error));
    hm_store *copy;
    const hm_options existing = {.size = sizeof existing, .flags = HM_NO_CREATE, .on_recovery = tell, .on_recovery_user = &told};
    EXPECT(HM_OK, hm_open(path, &existing, &copy, &error));
    EXPECT(HM_OK, hm_contains(copy, KEY("waited"), &error));
    EXPECT(HM_OK, hm_close(copy, &error));
    EXPECT(HM_OK, hm_remove(path, &error));
}

int main(void) {
    store = new_store("queues", 0);
    pools();
    elements();
    event_loop();
    death();
    waiting();
    readers_writers_permits();
    atomics();
    backup();
    hm_queue_close(unused);
    hm_queue_close(todo);
    EXPECT(HM_OK, hm_pool_remove(store, "jobs", &error));
    EXPECT(HM_ABSENT, hm_pool_remove(store, "jobs", &error));
    hm_endpoint *endpoint;
    EXPECT(HM_E_QUEUE_REMOVED, hm_endpoint_open(pool, &endpoint, &error));
    hm_pool_close(pool);
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
