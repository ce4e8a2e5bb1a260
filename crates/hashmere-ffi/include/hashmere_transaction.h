/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * @file hashmere_transaction.h
 * @brief Several keys at one moment: batches, batches with conditions, transactions, snapshot reads.
 *
 * What a call of this header changes is seen as a whole or not at all, by every reader in every process, also if the process is killed
 * in the middle. docs/guide/transactions.md has the promises, docs/internals/transactions.md the protocol.
 *
 * @code{.c}
 * hm_transaction *t;
 * int rc = hm_transaction_open(store, &t, &error);
 * if (rc != HM_OK) return rc;
 * do {                                                    // may run several times: no effects but through t
 *     uint64_t left = 0;
 *     rc = hm_transaction_incr_by(t, "alice", 5, -30, NULL, &left, &error);
 *     if (rc == HM_OK) rc = hm_transaction_incr_by(t, "bob", 3, 30, NULL, NULL, &error);
 *     if (rc > 0 && rc != HM_E_CONFLICT) break;
 *     rc = hm_transaction_commit(t, &error);
 * } while (rc == HM_MISMATCH);                            // others changed what it read: once more
 * hm_transaction_close(t);
 * @endcode
 *
 * Results, errors and `error`: as in hashmere.h. Keys are bytes; UIDs, entry ids and hashes of the caller are not taken. A call has at
 * most 1,024 keys (#HM_E_TOO_MANY_KEYS), fewer in a store with segments below 112 KiB. **Threads:** a batch or a transaction belongs to
 * one thread at a time; several threads may commit the same batch. **Fork:** both go on working in the child. **Lifetime:** a transaction
 * keeps the file open until it is closed. What was closed is not recognised: do not use it again.
 */
#ifndef HASHMERE_TRANSACTION_H
#define HASHMERE_TRANSACTION_H

#include <hashmere.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup batches Batches
 *
 * Operations that are done at one moment, in order: a later one sees what an earlier one of the same batch does.
 * @{ */

/** A list of operations on up to 1,024 keys. It belongs to no store, and may be committed any number of times. */
typedef struct hm_write_batch hm_write_batch;

/** Makes an empty one. Close it with ::hm_write_batch_close. @return #HM_OK */
int hm_write_batch_open(hm_write_batch **batch, hm_error *error);

/** Gives a batch back. NULL is allowed. */
void hm_write_batch_close(hm_write_batch *batch);

/** Takes all operations out. @return #HM_OK */
int hm_write_batch_clear(hm_write_batch *batch, hm_error *error);

/** How many operations there are. @return #HM_OK */
int hm_write_batch_len(hm_write_batch *batch, size_t *count, hm_error *error);

/** Adds: store a value. `attributes` may be NULL. An expiry is reckoned from the commit. @return #HM_OK */
int hm_write_batch_set(hm_write_batch *batch, const void *key, size_t key_len, const void *value, size_t value_len,
                       const hm_attributes *attributes, hm_error *error);

/** Adds: remove a key, if it is there. @return #HM_OK */
int hm_write_batch_delete(hm_write_batch *batch, const void *key, size_t key_len, hm_error *error);

/** Adds: count, as ::hm_incr_by. `create` may be NULL. @return #HM_OK */
int hm_write_batch_incr_by(hm_write_batch *batch, const void *key, size_t key_len, int64_t by, const hm_counter *create,
                           hm_error *error);

/** Adds: count, as ::hm_incr_signed. `create` may be NULL. @return #HM_OK */
int hm_write_batch_incr_signed(hm_write_batch *batch, const void *key, size_t key_len, int64_t by,
                               const hm_signed_counter *create, hm_error *error);

/** Adds: count, as ::hm_incr_float. `create` may be NULL. What is not finite is refused by the commit. @return #HM_OK */
int hm_write_batch_incr_float(hm_write_batch *batch, const void *key, size_t key_len, double by,
                              const hm_float_counter *create, hm_error *error);

/** Adds: put bytes behind a value, if the key is there. @return #HM_OK */
int hm_write_batch_append(hm_write_batch *batch, const void *key, size_t key_len, const void *tail, size_t tail_len,
                          hm_error *error);

/** Adds: put bytes in front of a value, if the key is there. @return #HM_OK */
int hm_write_batch_prepend(hm_write_batch *batch, const void *key, size_t key_len, const void *head, size_t head_len,
                           hm_error *error);

/** Adds: give a key another expiry, if it is there. `expiry` is one of ::hm_expiry. @return #HM_OK */
int hm_write_batch_touch(hm_write_batch *batch, const void *key, size_t key_len, int expiry, int64_t expiry_ms,
                         hm_error *error);

/** Adds: read a key. @return #HM_OK */
int hm_write_batch_get(hm_write_batch *batch, const void *key, size_t key_len, hm_error *error);

/** What one operation of a batch did. */
typedef struct hm_batch_result {
    int32_t result;       /**< #HM_OK, or #HM_ABSENT: the key was not there (and, of a count, is not now). */
    uint32_t reserved;    /**< 0. */
    uint64_t number;      /**< A count by ::hm_write_batch_incr_by: the number now. */
    int64_t signed_number; /**< One by ::hm_write_batch_incr_signed. */
    double float_number;  /**< One by ::hm_write_batch_incr_float: the number next to its text. */
    hm_stored stored;     /**< A set: what was stored, as it is after the batch; all zero if a later operation removed it. */
    hm_bytes value;       /**< A get: the value. */
    hm_metadata metadata; /**< A get: the rest; of a key that an earlier operation of the batch wrote, the version and the UID are 0. */
} hm_batch_result;

/** Is shown what operation number `index` did, in order; its pointers die when it returns. Return 0 to go on, else to end. */
typedef int (*hm_show_result)(void *user, size_t index, const hm_batch_result *result);

/**
 * Does all operations of a batch at one moment.
 * @param show  is called, when all is done, for each operation; may be NULL
 * @return #HM_OK; #HM_E_NOT_A_NUMBER, #HM_E_OVERFLOW, #HM_E_INVALID_STATE, #HM_E_TOO_MANY_KEYS, #HM_E_CONFLICT (others changed for 5 seconds, and 1,000 times, what it had to
 *         read) and the errors of ::hm_set: nothing has changed then
 */
int hm_write_batch_commit(hm_store *store, hm_write_batch *batch, hm_show_result show, void *user, hm_error *error);

/** What a condition asks of its key. */
enum hm_condition_kind {
    HM_IF_ABSENT = 0,  /**< It is absent. */
    HM_IF_PRESENT = 1, /**< It is there. */
    HM_IF_VERSION = 2, /**< It is at hm_condition::version; 0: it is absent. */
    HM_IF_VALUE = 3    /**< Its value is hm_condition::value. */
};

/** What a key must be for the first batch of ::hm_write_batch_commit_if to be done. */
typedef struct hm_condition {
    hm_bytes key;
    hm_bytes value;    /**< For #HM_IF_VALUE; otherwise empty. */
    uint64_t version;  /**< For #HM_IF_VERSION; otherwise 0. */
    uint32_t kind;     /**< One of ::hm_condition_kind. */
    uint32_t reserved; /**< 0. */
} hm_condition;

/**
 * Does one batch if all conditions hold, else the other one; conditions and batch at one moment. (What etcd calls a transaction.)
 * @param then       may be NULL: do nothing
 * @param otherwise  may be NULL: do nothing
 * @param show       is called for each operation of the batch that was done; may be NULL
 * @return #HM_OK: it was the first; #HM_MISMATCH: it was the other one; errors as of ::hm_write_batch_commit
 */
int hm_write_batch_commit_if(hm_store *store, const hm_condition *conditions, size_t count, hm_write_batch *then,
                             hm_write_batch *otherwise, hm_show_result show, void *user, hm_error *error);
/** @} */

/** @defgroup transactions Transactions
 *
 * Read, compute, write. What a transaction reads it remembers; what it writes is seen by nothing else before ::hm_transaction_commit, which
 * does all of it at one moment if everything that was read is unchanged at that moment. No lock is held before that: for a transaction that
 * is never committed, or whose process is stopped or killed, no other process waits.
 *
 * Reads see what the transaction wrote, and else the store. #HM_E_CONFLICT from one of these calls says that a key is not what it was when the
 * transaction read it first: ::hm_transaction_commit is going to say #HM_MISMATCH. Other errors: #HM_E_TOO_MANY_KEYS, those of ::hm_get, and
 * of writing #HM_E_TOO_LARGE and #HM_E_WRONG_LENGTH.
 * @{ */

/** A transaction, used again after each commit. */
typedef struct hm_transaction hm_transaction;

/** Makes one that has read and written nothing. Close it with ::hm_transaction_close. @return #HM_OK */
int hm_transaction_open(hm_store *store, hm_transaction **transaction, hm_error *error);

/** Gives a transaction back; what it has written and not committed has never happened. NULL is allowed. */
void hm_transaction_close(hm_transaction *transaction);

/** Copies the value of a key into a buffer, as ::hm_get. @return #HM_OK, #HM_ABSENT, #HM_BUFFER_TOO_SMALL */
int hm_transaction_get(hm_transaction *transaction, const void *key, size_t key_len, void *buffer, size_t room, size_t *len,
                       hm_error *error);

/** @return #HM_OK if the key is there, #HM_ABSENT if it is not */
int hm_transaction_contains(hm_transaction *transaction, const void *key, size_t key_len, hm_error *error);

/** Stores a value. `attributes` may be NULL. @return #HM_OK */
int hm_transaction_set(hm_transaction *transaction, const void *key, size_t key_len, const void *value, size_t value_len,
                       const hm_attributes *attributes, hm_error *error);

/** Removes a key, if it is there. @return #HM_OK */
int hm_transaction_delete(hm_transaction *transaction, const void *key, size_t key_len, hm_error *error);

/** Counts, as ::hm_incr_by. `create` and `now` may be NULL. @return #HM_OK, #HM_ABSENT, #HM_E_NOT_A_NUMBER */
int hm_transaction_incr_by(hm_transaction *transaction, const void *key, size_t key_len, int64_t by,
                           const hm_counter *create, uint64_t *now, hm_error *error);

/** Counts, as ::hm_incr_signed. `create` and `now` may be NULL. @return #HM_OK, #HM_ABSENT, #HM_E_NOT_A_NUMBER, #HM_E_OVERFLOW */
int hm_transaction_incr_signed(hm_transaction *transaction, const void *key, size_t key_len, int64_t by,
                               const hm_signed_counter *create, int64_t *now, hm_error *error);

/**
 * Counts, as ::hm_incr_float. `create` and `now` may be NULL.
 * @return #HM_OK, #HM_ABSENT, #HM_E_NOT_A_NUMBER, #HM_E_OVERFLOW, #HM_E_INVALID_STATE
 */
int hm_transaction_incr_float(hm_transaction *transaction, const void *key, size_t key_len, double by,
                              const hm_float_counter *create, double *now, hm_error *error);

/** Puts bytes behind a value, keeping flags and expiry. @return #HM_OK, #HM_ABSENT */
int hm_transaction_append(hm_transaction *transaction, const void *key, size_t key_len, const void *tail, size_t tail_len,
                          hm_error *error);

/** Puts bytes in front of a value, keeping flags and expiry. @return #HM_OK, #HM_ABSENT */
int hm_transaction_prepend(hm_transaction *transaction, const void *key, size_t key_len, const void *head, size_t head_len,
                           hm_error *error);

/** Gives a key another expiry; value and version stay. `expiry` is one of ::hm_expiry. @return #HM_OK, #HM_ABSENT */
int hm_transaction_touch(hm_transaction *transaction, const void *key, size_t key_len, int expiry, int64_t expiry_ms,
                         hm_error *error);

/**
 * Does everything that was written at one moment. Afterwards the transaction has read and written nothing.
 * @return #HM_OK; #HM_MISMATCH: others have changed what it read, and nothing has happened: compute it again (the call has waited a little,
 *         and asked others to let it go first if it lost often); #HM_E_CONFLICT: so it was for at least 5 seconds and 1,000 times. After
 *         any other error, of ::hm_set, nothing has happened either, and the transaction is as it was: it may be committed again
 */
int hm_transaction_commit(hm_transaction *transaction, hm_error *error);

/**
 * Forgets everything that was read and written.
 * @return #HM_OK: what was read was there at one moment, so a conclusion from it ("not enough money") is true;
 *         #HM_MISMATCH: it was not, so look again; errors of reading, and #HM_E_CONFLICT as of ::hm_transaction_commit
 */
int hm_transaction_rollback(hm_transaction *transaction, hm_error *error);
/** @} */

/** @defgroup snapshots Snapshot reads
 * @{ */

/** Is shown key number `index` with its value (`item` is NULL if it is absent), in order. Return 0 to go on, else to end. */
typedef int (*hm_show_item)(void *user, size_t index, const hm_pair *item);

/**
 * Shows the items of several keys as they were at one moment of this call. It takes no lock and keeps no writer waiting: it reads them,
 * looks at each again, and begins again if one has changed.
 * @return #HM_OK, also if the callback ended it; #HM_E_CONFLICT: one of them was changed each of 1,000 times
 */
int hm_get_many_snapshot(hm_store *store, const hm_bytes *keys, size_t count, hm_show_item show, void *user,
                         hm_error *error);
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* HASHMERE_TRANSACTION_H */
