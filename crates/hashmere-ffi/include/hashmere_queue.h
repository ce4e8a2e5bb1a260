/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * @file hashmere_queue.h
 * @brief Queues between processes, without copies, in the file of a store; and waiting for each other.
 *
 * A *pool* has a fixed number of *elements* of a fixed size, and named *queues*, all of them in the store's file. An element moves from queue to
 * queue by reference. It is always in one place: in a queue, or in an *endpoint*. If the process of an endpoint dies, at any
 * instruction, what it held is found and goes back to where it came from, exactly once. docs/internals/queues.md has the protocol.
 *
 * @code{.c}
 * const hm_pool_options options = {.size = sizeof options, .elements = 1000, .bytes = 4096};
 * hm_pool *pool;
 * hm_queue *unused, *todo;
 * hm_endpoint *endpoint;
 * hm_pool_open(store, "jobs", &options, &pool, &error);     // any process opens the same one
 * hm_queue_open(pool, "free", NULL, &unused, &error);       // where all elements are at first
 * hm_queue_open(pool, "todo", NULL, &todo, &error);
 * hm_endpoint_open(pool, &endpoint, &error);                        // one for each thread
 *
 * hm_element job;
 * if (hm_queue_pop(endpoint, unused, &job, &error) == HM_OK) {
 *     strcpy(job.data, "hello");
 *     hm_queue_push(endpoint, &job, todo, &error);
 * }
 * if (hm_queue_pop_wait(endpoint, todo, 1000, &job, &error) == HM_OK)
 *     hm_queue_push(endpoint, &job, unused, &error);
 * @endcode
 *
 * Results, errors, `error` and growth of structures: as in hashmere.h. **Threads:** a pool and a queue may be used by any number of
 * threads, an endpoint by one at a time. **Fork:** what was opened before it belongs to the parent, and is refused in the child
 * (#HM_E_QUEUE_FORKED): open it again there, on the same store. **Lifetime:** closing a store, pool or queue while others of these are
 * open is no mistake: the file stays open until the last is gone. What was closed is not recognised: do not use it again.
 * **Names** of pools and queues are NUL-terminated UTF-8, 1 to 128 and 1 to 64 bytes.
 */
#ifndef HASHMERE_QUEUE_H
#define HASHMERE_QUEUE_H

#include <hashmere.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Errors of queues and of waiting, beside those of ::hm_result. */
enum hm_queue_result {
    HM_E_QUEUE_NOT_FOUND = 60,  /**< There is no such pool. */
    HM_E_QUEUE_EXISTS = 61,     /**< There is such a pool or queue, of other sizes or another kind. */
    HM_E_QUEUE_BAD_OPTION = 62, /**< A size, a name or an option that cannot be. */
    HM_E_QUEUE_TOO_MANY = 63,   /**< All queues, endpoints or places of the pool or endpoint are taken. */
    HM_E_QUEUE_TAKEN = 64,      /**< Another endpoint is the only producer or consumer of this queue. */
    HM_E_QUEUE_FORKED = 65,     /**< It was opened before a fork: open it again in this process. */
    HM_E_QUEUE_REMOVED = 66,    /**< The pool, or the set of atomics, was removed. */
    HM_E_QUEUE_OTHER_POOL = 67, /**< The queue is of another pool than the endpoint. */
    HM_E_QUEUE_BROKEN = 68,     /**< A participant is gone that others counted on, or the key holds something else. */
    HM_E_QUEUE_REENTERED = 69   /**< ::hm_once for a key whose value this thread computes, or a lock that it holds: it would wait for itself. */
};

/** @defgroup pools Pools and queues
 * @{ */

/** An open pool. */
typedef struct hm_pool hm_pool;
/** An open queue of a pool. */
typedef struct hm_queue hm_queue;

/** How a pool is created. Zero in a field is its default. */
typedef struct hm_pool_options {
    size_t size;            /**< `sizeof(hm_pool_options)`. */
    uint64_t elements;      /**< How many elements: 1 to 2^31. No default. */
    uint64_t bytes;         /**< Bytes of each: 1 to 2^32 - 1. No default. */
    uint64_t max_queues;    /**< How many queues it can have, `free` included: 1 to 4096, default 8. */
    uint64_t max_endpoints; /**< How many endpoints at a time, of all processes: 1 to 4096, default 64. */
    uint64_t batch;         /**< How many elements an endpoint's batch can have: 1 to 2^20, default 1024. */
    const char *on_death;   /**< The queue for elements of crashed processes; NULL: each goes back where it was popped from. */
} hm_pool_options;

/**
 * Opens a pool, and clears up after processes that died with elements of it.
 * @param options  creates the pool if it is missing; one that is there must have as many elements of as many bytes. NULL: only opens
 * @param pool     on #HM_OK; close it with ::hm_pool_close
 * @return #HM_OK, #HM_E_QUEUE_NOT_FOUND, #HM_E_QUEUE_EXISTS, #HM_E_QUEUE_BAD_OPTION, and errors of writing
 */
int hm_pool_open(hm_store *store, const char *name, const hm_pool_options *options, hm_pool **pool, hm_error *error);

/** Closes a pool. NULL is allowed. */
void hm_pool_close(hm_pool *pool);

/** Takes a pool's name off it; its room is free when no process has it open. @return #HM_OK, #HM_ABSENT */
int hm_pool_remove(hm_store *store, const char *name, hm_error *error);

/**
 * Looks for processes that died with elements, and gives them back: `given_back`, which may be NULL, says how many. Pops from empty
 * queues and waits do this by themselves. @return #HM_OK
 */
int hm_pool_recover(hm_pool *pool, uint64_t *given_back, hm_error *error);

/** Figures of a pool. */
typedef struct hm_pool_stats {
    size_t size;            /**< Set it to `sizeof(hm_pool_stats)` before the call. */
    uint64_t elements;      /**< Elements of the pool. */
    uint64_t bytes;         /**< Bytes of one. */
    uint64_t bytes_all;     /**< Bytes of the pool with all that belongs to it. */
    uint64_t endpoints;     /**< Endpoints in use. */
    uint64_t max_endpoints; /**< Endpoints that there can be. */
    uint64_t queues;        /**< Queues that there are. */
    uint64_t max_queues;    /**< Queues that there can be. */
    uint64_t held;          /**< Elements in endpoints. */
    uint64_t recovered;     /**< Elements that were given back from crashed processes so far. */
} hm_pool_stats;

/** Figures of about now. No process is stopped for them. @return #HM_OK */
int hm_pool_get_stats(hm_pool *pool, hm_pool_stats *stats, hm_error *error);

/** How many push to a queue and pop from it: hm_queue_options::kind. */
enum hm_queue_kind {
    HM_QUEUE_ANY = 0,  /**< As it is; #HM_QUEUE_MPMC if it is made. */
    HM_QUEUE_MPMC = 1, /**< Any number of both. */
    HM_QUEUE_MPSC = 2, /**< One consumer at a time. */
    HM_QUEUE_SPSC = 3  /**< One of each at a time. */
};

/** How a queue is made; of one that is there, what is given must be true. */
typedef struct hm_queue_options {
    size_t size;    /**< `sizeof(hm_queue_options)`. */
    uint64_t kind;  /**< One of ::hm_queue_kind. */
    uint64_t bound; /**< The most elements that it takes: then a push can find it full. 0: room for all of the pool. */
} hm_queue_options;

/**
 * Opens a queue, and makes it if it is missing. The queue `free`, where all elements are at first, is always there.
 * @param options  may be NULL
 * @return #HM_OK, #HM_E_QUEUE_EXISTS, #HM_E_QUEUE_TOO_MANY, #HM_E_QUEUE_BAD_OPTION, #HM_E_QUEUE_FORKED
 */
int hm_queue_open(hm_pool *pool, const char *name, const hm_queue_options *options, hm_queue **queue, hm_error *error);

/** Closes a queue; what is in it stays. NULL is allowed. */
void hm_queue_close(hm_queue *queue);

/** How many elements are in it at about this moment. @return #HM_OK */
int hm_queue_len(hm_queue *queue, uint64_t *count, hm_error *error);

/**
 * Copies the bytes of the first element, which stays where it is.
 * @return #HM_OK; #HM_ABSENT: the queue is empty; #HM_BUFFER_TOO_SMALL: as of ::hm_get
 */
int hm_queue_peek(hm_queue *queue, void *buffer, size_t room, size_t *len, hm_error *error);

/** For event loops: a queue as a file descriptor. */
typedef struct hm_ready_fd hm_ready_fd;

/**
 * Makes a file descriptor that is readable when there is something to pop; a thread of this process sleeps on the queue and raises
 * it. In an event loop: wait until `fd` is readable, call ::hm_ready_fd_acknowledge, pop as much as you like, wait again.
 * @param fd  belongs to `ready_fd`: do not close or read it
 */
int hm_ready_fd_open(hm_queue *queue, hm_ready_fd **ready_fd, int *fd, hm_error *error);
/** Takes the event back. Call it before popping. @return #HM_OK */
int hm_ready_fd_acknowledge(hm_ready_fd *ready_fd, hm_error *error);
/** Closes the descriptor, ends the thread. NULL is allowed. */
void hm_ready_fd_close(hm_ready_fd *ready_fd);
/** @} */

/** @defgroup endpoints Endpoints and elements
 * @{ */

/** What one thread takes part with. It holds up to 64 elements that were popped one by one, or a batch. */
typedef struct hm_endpoint hm_endpoint;

/** An element that an endpoint holds. Written by the library. */
typedef struct hm_element {
    void *data;     /**< Its bytes, to read and to write, until it is pushed. */
    size_t len;     /**< How many: hm_pool_options::bytes. */
    uint32_t index; /**< Its index in the pool, from 0. */
    uint32_t slot;  /**< The library's; 0: none. */
} hm_element;

/** Takes part in a pool. @return #HM_OK, #HM_E_QUEUE_TOO_MANY, #HM_E_QUEUE_REMOVED, #HM_E_QUEUE_FORKED */
int hm_endpoint_open(hm_pool *pool, hm_endpoint **endpoint, hm_error *error);

/** Gives back all that the endpoint holds, and the endpoint. NULL is allowed. */
void hm_endpoint_close(hm_endpoint *endpoint);

/**
 * Takes the first element of a queue.
 * @param element  on #HM_OK
 * @return #HM_OK; #HM_ABSENT: the queue is empty; #HM_E_QUEUE_TOO_MANY: the endpoint holds 64 elements; #HM_E_QUEUE_TAKEN,
 *         #HM_E_QUEUE_OTHER_POOL, #HM_E_QUEUE_FORKED
 */
int hm_queue_pop(hm_endpoint *endpoint, hm_queue *from, hm_element *element, hm_error *error);

/** The same, waiting as long as `timeout_ms` for one to come. @return as ::hm_queue_pop, but #HM_TIMEOUT: none came */
int hm_queue_pop_wait(hm_endpoint *endpoint, hm_queue *from, uint64_t timeout_ms, hm_element *element, hm_error *error);

/**
 * Puts an element at the end of a queue. On #HM_OK, and after an error, `element` is none any more; then it went back where it came from.
 * @return #HM_OK; #HM_QUEUE_FULL: the queue has reached its bound, and the endpoint still holds the element; errors as of ::hm_queue_pop
 */
int hm_queue_push(hm_endpoint *endpoint, hm_element *element, hm_queue *to, hm_error *error);

/**
 * Pushes an element to one queue and takes the first of another: the step of a stage that passes on what it was given. `element` becomes
 * the one that was taken.
 * @return #HM_OK; #HM_ABSENT: it was pushed, `from` is empty, and `element` is none; #HM_QUEUE_FULL: `to` has reached its bound, the endpoint still
 *         holds it and nothing was taken; errors as of ::hm_queue_push and ::hm_queue_pop
 */
int hm_queue_push_pop(hm_endpoint *endpoint, hm_element *element, hm_queue *to, hm_queue *from, hm_error *error);

/** Puts an element back where it came from. @return #HM_OK, #HM_E_ARGUMENT: the endpoint does not hold it */
int hm_queue_give_back(hm_endpoint *endpoint, hm_element *element, hm_error *error);

/**
 * Takes up to `max` elements in one operation, behind those of the endpoint's batch. The endpoint must hold no element that was popped alone.
 * @param count  how many it were
 * @return #HM_OK, #HM_E_INVALID_STATE, errors as of ::hm_queue_pop
 */
int hm_queue_pop_many(hm_endpoint *endpoint, hm_queue *from, uint64_t max, uint64_t *count, hm_error *error);

/** Pushes the first `max` elements of the batch in one operation, in their order. @return as ::hm_queue_pop_many */
int hm_queue_push_many(hm_endpoint *endpoint, hm_queue *to, uint64_t max, uint64_t *count, hm_error *error);

/** Pushes the whole batch to one queue, as far as it takes it, then takes up to `max` from another. @return as ::hm_queue_pop_many */
int hm_queue_push_pop_many(hm_endpoint *endpoint, hm_queue *to, hm_queue *from, uint64_t max, uint64_t *pushed, uint64_t *popped,
                      hm_error *error);

/** Moves to another queue what is in one now. @return #HM_OK; #HM_E_QUEUE_BAD_OPTION: the batch is not empty; as ::hm_queue_pop_many */
int hm_queue_drain(hm_endpoint *endpoint, hm_queue *from, hm_queue *to, uint64_t *moved, hm_error *error);

/** Waits until there is something to take, which another endpoint may take first. @return #HM_OK; #HM_TIMEOUT: nothing came */
int hm_queue_wait(hm_endpoint *endpoint, hm_queue *from, uint64_t timeout_ms, hm_error *error);

/** How many elements the batch has. @return #HM_OK, #HM_E_INVALID_STATE: the endpoint holds elements that were popped alone */
int hm_batch_len(hm_endpoint *endpoint, uint64_t *count, hm_error *error);

/** The bytes of element `index` of the batch, good until the next call with this endpoint. @return #HM_OK; #HM_ABSENT: it has fewer */
int hm_batch_at(hm_endpoint *endpoint, uint64_t index, void **data, size_t *len, hm_error *error);
/** @} */

/** @defgroup waiting Waiting for each other
 *
 * All with a timeout in milliseconds; `UINT64_MAX` is forever. A process that crashes is noticed: a crashed process is not waited for. Keys of mutexes,
 * barriers and ::hm_once must not be in a cache.
 * @{ */

/**
 * Waits until a key has another version than `seen` (0: it was absent), in whatever process it is changed.
 * @param now  its version then, 0 with #HM_REMOVED; may be NULL
 * @return #HM_OK: it has version `now`; #HM_REMOVED: it is absent; #HM_TIMEOUT; #HM_E_READ_ONLY, and errors of reading
 */
int hm_wait(hm_store *store, const void *key, size_t key_len, uint64_t seen, uint64_t timeout_ms, uint64_t *now,
            hm_error *error);

/**
 * The same for several keys, of which `keys[i]` was `seen[i]`: waits until one of them has another version.
 * @param which  the first in order that has
 * @return as ::hm_wait; #HM_E_INVALID_STATE: there are none
 */
int hm_wait_any(hm_store *store, const hm_bytes *keys, const uint64_t *seen, size_t count, uint64_t timeout_ms,
                size_t *which, uint64_t *now, hm_error *error);

/** A mutex that is held. */
typedef struct hm_mutex_guard hm_mutex_guard;

/**
 * Locks the mutex of a key. While it is held the key names the holder, else it is absent. The death of the holder releases it; ::hm_clear, or
 * deleting the key, does not, but the holder's name goes with the key. Not fair, not recursive.
 * @param lock       on #HM_OK; release it with ::hm_mutex_unlock, in whatever thread
 * @param abandoned  1 if the holder before died with it: what it protects may be half done; may be NULL
 * @return #HM_OK; #HM_TIMEOUT: ::hm_mutex_holder names the holder; #HM_E_QUEUE_REENTERED: this thread locked it and it was not
 *         released (only if it would wait: #HM_TIMEOUT with a timeout of 0); #HM_E_QUEUE_BROKEN, #HM_E_QUEUE_BAD_OPTION
 */
int hm_mutex_lock(hm_store *store, const void *key, size_t key_len, uint64_t timeout_ms, hm_mutex_guard **lock,
                  uint32_t *abandoned, hm_error *error);
/**
 * The process that holds the mutex of a key at about this moment, in its own PID namespace. After ::hm_clear, or when the key was deleted, only
 * the holder's own handle knows its name: for others `pid` is 0 then, which is no process to send a signal to.
 * @return #HM_OK; #HM_ABSENT: none, or one that is gone; #HM_E_QUEUE_BROKEN, #HM_E_QUEUE_BAD_OPTION
 */
int hm_mutex_holder(hm_store *store, const void *key, size_t key_len, uint32_t *pid, hm_error *error);
/** Releases a mutex. NULL is allowed. In a forked child it does nothing. */
void hm_mutex_unlock(hm_mutex_guard *lock);

/** A readers-writer lock that is held, for reading or writing. */
typedef struct hm_rwlock_guard hm_rwlock_guard;
/** Waits for a readers-writer lock. */
typedef struct hm_rwlock_waiter hm_rwlock_waiter;

/**
 * Locks the readers-writer lock of a key for reading, beside other readers. While it is held the key names the holders, else it is absent. The
 * death of a holder releases what it held; ::hm_clear, or deleting the key, does not, but the holders' names go with the key. Not recursive, in
 * no combination of reading and writing. A waiter competes for its turn, in which no reader or writer that comes later passes it.
 * @param lock       on #HM_OK; release it with ::hm_rwlock_unlock, in whatever thread
 * @param abandoned  1 if a writer died with it and no other writer had it since: what it protects may be half done; may be NULL
 * @return #HM_OK; #HM_TIMEOUT: ::hm_rwlock_writer names the holder; #HM_E_QUEUE_REENTERED: this thread locked it and it was not
 *         released (only if it would wait: #HM_TIMEOUT with a timeout of 0); #HM_E_QUEUE_BROKEN, #HM_E_QUEUE_BAD_OPTION
 */
int hm_rwlock_read(hm_store *store, const void *key, size_t key_len, uint64_t timeout_ms, hm_rwlock_guard **lock,
                   uint32_t *abandoned, hm_error *error);
/** The same for writing, alone. @return as ::hm_rwlock_read */
int hm_rwlock_write(hm_store *store, const void *key, size_t key_len, uint64_t timeout_ms, hm_rwlock_guard **lock,
                    uint32_t *abandoned, hm_error *error);
/** Releases a readers-writer lock. NULL is allowed. In a forked child it does nothing. */
void hm_rwlock_unlock(hm_rwlock_guard *lock);

/**
 * To wait for a readers-writer lock in several steps and keep the turn between them, for callers that have to do something else from time to time.
 * One thread at a time uses it. @param writes  0: for reading. @return #HM_OK, #HM_E_QUEUE_BAD_OPTION
 */
int hm_rwlock_waiter_open(hm_store *store, const void *key, size_t key_len, uint32_t writes, hm_rwlock_waiter **waiter,
                          hm_error *error);
/** Waits; after #HM_TIMEOUT call it again to wait on. @return as ::hm_rwlock_read */
int hm_rwlock_waiter_wait(hm_rwlock_waiter *waiter, uint64_t timeout_ms, hm_rwlock_guard **lock, uint32_t *abandoned,
                          hm_error *error);
/** Gives the turn up; a lock that was got stays held. NULL is allowed. */
void hm_rwlock_waiter_close(hm_rwlock_waiter *waiter);

/**
 * The process that holds it for writing at about this moment, in its own PID namespace.
 * @return #HM_OK; #HM_ABSENT: none, or one that is gone, or one whose name went when the store was cleared or the key deleted;
 *         #HM_E_QUEUE_BROKEN, #HM_E_QUEUE_BAD_OPTION
 */
int hm_rwlock_writer(hm_store *store, const void *key, size_t key_len, uint32_t *pid, hm_error *error);
/**
 * The processes that hold it for reading at about this moment, each as often as it does, but for those whose names went with the key.
 * @param pids   room for `room` of them; may be NULL if that is 0
 * @param count  how many there are
 * @return #HM_OK; #HM_BUFFER_TOO_SMALL: `pids` has the first of them; #HM_E_QUEUE_BROKEN, #HM_E_QUEUE_BAD_OPTION
 */
int hm_rwlock_readers(hm_store *store, const void *key, size_t key_len, uint32_t *pids, size_t room, size_t *count,
                      hm_error *error);

/** A permit of a semaphore. */
typedef struct hm_semaphore_guard hm_semaphore_guard;

/**
 * Takes one of the `permits` (1 to 1024) of the semaphore of a key. All who use it give the same number. While there are holders the key
 * names them, else it is absent. The death of a holder gives its permit back; ::hm_clear, or deleting the key, does not. Not fair. A thread may
 * hold several.
 * @param permit     on #HM_OK; give it back with ::hm_semaphore_release, in whatever thread
 * @param abandoned  1 if a holder died with its permit since the last one was taken; may be NULL
 * @return #HM_OK; #HM_TIMEOUT: ::hm_semaphore_holders names the holders; #HM_E_QUEUE_REENTERED: this thread holds all of them (only if it would
 *         wait: #HM_TIMEOUT with a timeout of 0); #HM_E_QUEUE_BROKEN: there are holders of one with another number of permits;
 *         #HM_E_QUEUE_BAD_OPTION
 */
int hm_semaphore_acquire(hm_store *store, const void *key, size_t key_len, uint64_t permits, uint64_t timeout_ms,
                         hm_semaphore_guard **permit, uint32_t *abandoned, hm_error *error);
/** The processes that hold permits at about this moment, each as often as it has one. @return as ::hm_rwlock_readers */
int hm_semaphore_holders(hm_store *store, const void *key, size_t key_len, uint32_t *pids, size_t room, size_t *count,
                         hm_error *error);
/** Gives a permit back. NULL is allowed. In a forked child it does nothing. */
void hm_semaphore_release(hm_semaphore_guard *permit);

/** Makes a value: fills `value`, whose bytes must stay valid until ::hm_once returns. Return 0, or anything else to make none. */
typedef int (*hm_compute)(void *user, hm_bytes *value);

/**
 * The value of a key; if there is none, `compute` makes it, in one process at a time, and it is stored. The others wait. If the one that
 * computes dies or makes none, the next one does it.
 * @return #HM_OK; #HM_BUFFER_TOO_SMALL: as of ::hm_get; #HM_TIMEOUT: a living process was computing all the time, ::hm_once_holder says who; #HM_UNCHANGED:
 *         `compute` made none; #HM_E_QUEUE_REENTERED: `compute` calls it for its own key
 */
int hm_once(hm_store *store, const void *key, size_t key_len, uint64_t timeout_ms, hm_compute compute, void *user,
            void *buffer, size_t room, size_t *len, hm_error *error);

/** The process that computes the value of a key by ::hm_once at about this moment. @return as ::hm_mutex_holder */
int hm_once_holder(hm_store *store, const void *key, size_t key_len, uint32_t *pid, hm_error *error);

/** A participant of a barrier. */
typedef struct hm_barrier hm_barrier;

/**
 * Joins the barrier of a key as one of `size` participants; the first to come makes it.
 * @return #HM_OK; #HM_E_QUEUE_BROKEN: it is one of another size, or has as many
 */
int hm_barrier_join(hm_store *store, const void *key, size_t key_len, uint64_t size, hm_barrier **barrier,
                    hm_error *error);
/**
 * Arrives, and waits until all others have; those who died are not waited for.
 * @param round  number of the round, from 1; may be NULL
 * @param lost   how many had died or left by then; may be NULL
 * @return #HM_OK; #HM_TIMEOUT: a living participant has not arrived yet: call it again to wait on; #HM_E_QUEUE_BROKEN: the barrier is gone, because the
 *         store was cleared or the key deleted: leave, and join again
 */
int hm_barrier_wait(hm_barrier *barrier, uint64_t timeout_ms, uint64_t *round, uint64_t *lost, hm_error *error);
/** Leaves the barrier: the others go on without. NULL is allowed. */
void hm_barrier_leave(hm_barrier *barrier);
/** @} */

/** @defgroup atomics Shared atomics
 *
 * Words of 64 bits with names, 0 at first, which every process reads and changes in place, by one instruction each. A set of them is a region of the
 * store's file, as a pool is: ::hm_clear leaves it as it is, a backup does not copy it, and after a crash of the machine a durable store is rebuilt
 * without it. What is done to an atomic is no part of a transaction or of the change feed. A process that dies has done each operation wholly or not at
 * all. All operations are sequentially consistent; each that changes the word wakes those who wait. Names are as those of pools; that of an
 * atomic has at most 56 bytes.
 * @{ */

/** An open set of shared atomics. */
typedef struct hm_atomics hm_atomics;
/** An open atomic. Any number of threads may use it. */
typedef struct hm_atomic hm_atomic;

/** Opens a set; creates it if it is missing. It has room for 1024 atomics. @return #HM_OK, #HM_E_QUEUE_BAD_OPTION, and errors of writing */
int hm_atomics_open(hm_store *store, const char *name, hm_atomics **set, hm_error *error);
/** Closes a set; its atomics that are open stay so. NULL is allowed. */
void hm_atomics_close(hm_atomics *set);
/** Takes a set's name off it; its room is free when no process has it open. @return #HM_OK, #HM_ABSENT */
int hm_atomics_remove(hm_store *store, const char *name, hm_error *error);

/**
 * Opens the atomic of a name; makes it if it is missing. It is kept until the set is removed.
 * @return #HM_OK, #HM_E_QUEUE_TOO_MANY, #HM_E_QUEUE_BAD_OPTION, #HM_E_QUEUE_FORKED, #HM_E_QUEUE_REMOVED
 */
int hm_atomic_open(hm_atomics *set, const char *name, hm_atomic **atomic, hm_error *error);
/** Closes an atomic. NULL is allowed. */
void hm_atomic_close(hm_atomic *atomic);

/**
 * The word itself, for atomic operations of the compiler. It stays where it is until the atomic is closed; a forked child must not use it. After a
 * change call ::hm_atomic_notify, else those who wait see it within 128 ms.
 * @return #HM_OK, #HM_E_QUEUE_FORKED
 */
int hm_atomic_word(hm_atomic *atomic, uint64_t **word, hm_error *error);
/** The value. @return #HM_OK, #HM_E_QUEUE_FORKED */
int hm_atomic_load(hm_atomic *atomic, uint64_t *value, hm_error *error);
/** Stores a value. @return as ::hm_atomic_load */
int hm_atomic_store(hm_atomic *atomic, uint64_t value, hm_error *error);
/** Stores a value; `before` is the one before. @return as ::hm_atomic_load */
int hm_atomic_swap(hm_atomic *atomic, uint64_t value, uint64_t *before, hm_error *error);
/** Adds, modulo 2^64; `before` is the value before. @return as ::hm_atomic_load */
int hm_atomic_fetch_add(hm_atomic *atomic, uint64_t value, uint64_t *before, hm_error *error);
/** Clears the bits that are not set in `value`. @return as ::hm_atomic_fetch_add */
int hm_atomic_fetch_and(hm_atomic *atomic, uint64_t value, uint64_t *before, hm_error *error);
/** Sets the bits of `value`. @return as ::hm_atomic_fetch_add */
int hm_atomic_fetch_or(hm_atomic *atomic, uint64_t value, uint64_t *before, hm_error *error);
/** Flips the bits of `value`. @return as ::hm_atomic_fetch_add */
int hm_atomic_fetch_xor(hm_atomic *atomic, uint64_t value, uint64_t *before, hm_error *error);
/** Stores `value` if it is `current`; `before` is the value before. @return #HM_OK; #HM_UNCHANGED: it was another; as ::hm_atomic_load */
int hm_atomic_compare_exchange(hm_atomic *atomic, uint64_t current, uint64_t value, uint64_t *before, hm_error *error);
/** Waits until the value is another than `seen`: `value`. @return #HM_OK; #HM_TIMEOUT; #HM_E_QUEUE_REMOVED; as ::hm_atomic_load */
int hm_atomic_wait(hm_atomic *atomic, uint64_t seen, uint64_t timeout_ms, uint64_t *value, hm_error *error);
/** Wakes those who wait, to look again: after a change through ::hm_atomic_word. @return as ::hm_atomic_load */
int hm_atomic_notify(hm_atomic *atomic, hm_error *error);
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* HASHMERE_QUEUE_H */
