/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * @file hashmere_feed.h
 * @brief What happens to the keys of a store, in order, for consumers that stop and resume.
 *
 * A store that was opened with hm_options::feed keeps about this many bytes of changes in its own file: each set, delete, touch, eviction and
 * expiry, by whatever process. A consumer follows them from a *token*, a short text that it keeps where its data are. Where its place is gone, it
 * gets every key and then the changes since. docs/internals/feed.md has the protocol.
 *
 * @code{.c}
 * hm_feed *feed;
 * hm_feed_event event;
 * const hm_feed_options options = {.size = sizeof options, .flags = HM_FEED_WITH_VALUES};
 * hm_feed_open(store, token_of_before, &options, &feed, &error);    // or "start": every key first, or "now"
 * while (hm_feed_next(feed, 1000, &event, &error) <= 0) {           // #HM_TIMEOUT is negative
 *     ...                                                           // apply the event, and keep event.token beside it
 * }
 * hm_feed_close(feed);
 * @endcode
 *
 * **What is promised.** Every change comes at least once, all of a transaction together, and those of a key in the order in which they were
 * committed. A repetition has the version of the first. A writer never waits for a consumer.
 *
 * Results, errors, `error` and growth of structures: as in hashmere.h. **Threads:** a consumer may be used by one thread at a time. **Fork:** a
 * consumer belongs to the process that opened it. **Lifetime:** closing the store while consumers are open is no mistake. What was closed is not
 * recognised: do not use it again.
 */
#ifndef HASHMERE_FEED_H
#define HASHMERE_FEED_H

#include <hashmere.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Results of change feeds, beside those of ::hm_result. */
enum hm_feed_result {
    HM_E_FEED_OFF = 80, /**< The store keeps no changes: hm_options::feed, ::hm_feed_enable. */
    HM_E_BAD_TOKEN = 81 /**< A text that is no token. */
};

/** @defgroup feeds Change feeds
 * @{ */

/** The feed of a store. */
typedef struct hm_feed_info {
    size_t size;       /**< Set it to `sizeof(hm_feed_info)` before the call. */
    uint64_t number;   /**< Tells it from others that the store had: the time when it was enabled. */
    uint64_t position; /**< Position of the next entry. */
    uint64_t oldest;   /**< The first position that is still kept. */
    uint64_t bytes;    /**< Bytes that it takes. */
    uint64_t values;   /**< 1: it keeps values. */
} hm_feed_info;

/**
 * Makes the store keep about this many bytes of changes, with values (not 0) or without, for all processes that have it open. A feed that is there
 * stays as it is. Every change that is committed after this has returned is kept.
 * @return #HM_OK; #HM_E_INVALID_STATE: a feed has 1 MiB to 32 GiB; errors of writing
 */
int hm_feed_enable(hm_store *store, uint64_t bytes, int values, hm_error *error);

/** Makes the store keep no changes, and gives back what they took. @return #HM_OK; #HM_ABSENT: it kept none; errors of writing */
int hm_feed_disable(hm_store *store, hm_error *error);

/** The feed of a store. @return #HM_OK; #HM_ABSENT: it keeps no changes */
int hm_feed_get_info(hm_store *store, hm_feed_info *info, hm_error *error);

/** Bits of hm_feed_options::flags. */
enum hm_feed_flags {
    HM_FEED_WITH_VALUES = 1 << 0 /**< Values come along; those that the feed does not keep are read from the store. */
};

/** What a consumer gets. All zero but the size, or NULL: every key, without values. */
typedef struct hm_feed_options {
    size_t size;     /**< `sizeof(hm_feed_options)`. */
    uint64_t flags;  /**< ::hm_feed_flags. */
    hm_bytes prefix; /**< Only keys that begin with these bytes. (A clear and a reset concern every key.) */
} hm_feed_options;

/** A consumer of a store's changes. */
typedef struct hm_feed hm_feed;

/**
 * Follows the changes of a store.
 * @param start    `"now"`: with the next change; `"start"`: with every key, then the changes; a token: behind what was dealt with before, or with
 *                 every key if that is not possible. NULL is `"now"`.
 * @param options  may be NULL: all defaults
 * @param feed     on #HM_OK; NULL otherwise. Close it with ::hm_feed_close.
 * @return #HM_OK, #HM_E_FEED_OFF, #HM_E_BAD_TOKEN, and errors of reading
 */
int hm_feed_open(hm_store *store, const char *start, const hm_feed_options *options, hm_feed **feed, hm_error *error);

/** What an event is: hm_feed_event::kind. */
enum hm_feed_kind {
    HM_FEED_RESET = 0,  /**< What the consumer has is worth nothing: every key follows as #HM_FEED_READ, then #HM_FEED_SYNCED. What is not among them is gone. */
    HM_FEED_READ = 1,   /**< A key of the first copy, as it was at some moment of it. */
    HM_FEED_SYNCED = 2, /**< The first copy is complete. What follows happened since it began. */
    HM_FEED_CHANGE = 3, /**< A change. */
    HM_FEED_CLEAR = 4   /**< Every key was removed at once. */
};

/** What happened to a key: hm_feed_event::operation. */
enum hm_feed_operation {
    HM_FEED_OP_READ = 0,   /**< Nothing: it is there, in a first copy. */
    HM_FEED_OP_SET = 1,    /**< It got a value. */
    HM_FEED_OP_DELETE = 2, /**< It was deleted. */
    HM_FEED_OP_TOUCH = 3,  /**< Expiry or flags changed; value and version stayed. */
    HM_FEED_OP_EVICT = 4,  /**< It was evicted by a cache. */
    HM_FEED_OP_EXPIRE = 5  /**< It had expired and was removed. */
};

/** Why a consumer begins with a copy of every key: hm_feed_event::reason. */
enum hm_feed_reason {
    HM_FEED_ASKED = 0,      /**< It asked for one. */
    HM_FEED_GONE = 1,       /**< The changes at its place are not kept any more. */
    HM_FEED_OTHER_FEED = 2, /**< Its token is of another store, or of a feed of before. */
    HM_FEED_GAP = 3         /**< A change was too long for the feed, or more threads wrote than it has room for. */
};

/** Where the value of a change is: hm_feed_event::value_state. */
enum hm_feed_value {
    HM_FEED_VALUE_ABSENT = 0,    /**< The key has none: it is gone. */
    HM_FEED_VALUE_BYTES = 1,     /**< In hm_feed_event::value. */
    HM_FEED_VALUE_NOT_KEPT = 2,  /**< The feed does not keep values, or the consumer did not ask for them. */
    HM_FEED_VALUE_SUPERSEDED = 3 /**< It was too long for the feed, and the key has been changed since: a later event has it. */
};

/**
 * One step of a feed, in the order in which a consumer gets them. What a kind does not have is zero or empty: only #HM_FEED_READ and
 * #HM_FEED_CHANGE are about a key.
 */
typedef struct hm_feed_event {
    int32_t kind;               /**< ::hm_feed_kind. */
    int32_t operation;          /**< ::hm_feed_operation. */
    int32_t reason;             /**< ::hm_feed_reason, of #HM_FEED_RESET. */
    int32_t value_state;        /**< ::hm_feed_value. */
    hm_bytes key;               /**< The key. */
    hm_bytes value;             /**< The value that it has now, if hm_feed_event::value_state is #HM_FEED_VALUE_BYTES. */
    uint64_t version;           /**< The version that the key has now; of a removal, one above every one that it had. */
    uint64_t expires_at_ms;     /**< Wall-clock expiry in milliseconds since 1970; 0 is never. */
    uint64_t ts_ms;             /**< When it happened, in milliseconds since 1970, within about 4 ms; of a read, when it was read. */
    uint32_t value_len;         /**< Length of the value, whether it is here or not. */
    uint32_t flags;             /**< Your flags. */
    uint32_t origin;            /**< hm_options::origin of the handle that made the change. */
    uint32_t has_supplied_hash; /**< 1: the key was stored with a hash of the caller's. */
    uint64_t supplied_hash;     /**< That hash. */
    uint64_t transaction_id;    /**< The same for all changes of a transaction, which follow each other. */
    uint32_t transaction_index; /**< Which of them this is, from 0. */
    uint32_t transaction_len;   /**< How many there are; 0: it is no part of one. */
    /**
     * Where a consumer resumes that has dealt with this event, NUL-terminated; of #HM_FEED_RESET empty: behind the event before. Within a
     * transaction: at its beginning, so that it comes whole again.
     */
    hm_bytes token;
} hm_feed_event;

/**
 * The next event, for which it waits as long as `timeout_ms`. Its pointers are good until the next call with this consumer.
 * @return #HM_OK; #HM_TIMEOUT; #HM_E_FEED_OFF: the feed was disabled; errors of reading. After an error try again: nothing is passed over.
 */
int hm_feed_next(hm_feed *feed, uint64_t timeout_ms, hm_feed_event *event, hm_error *error);

/**
 * Where it is: a consumer that is opened with this token goes on behind the event that ::hm_feed_next returned last. Within a transaction: at its
 * beginning.
 * @param buffer  receives the text, at most 160 bytes, and a NUL; may be NULL if `room` is 0
 * @param len     its length without the NUL, on #HM_OK and #HM_BUFFER_TOO_SMALL
 * @return #HM_OK, or #HM_BUFFER_TOO_SMALL if `room` is not more than `*len`
 */
int hm_feed_token(hm_feed *feed, char *buffer, size_t room, size_t *len, hm_error *error);

/**
 * A descriptor that is readable while there is an event, for event loops; a thread of this process, which the first call starts, raises it.
 * ::hm_feed_next takes that back when it finds none: call it with a `timeout_ms` of 0 until it says #HM_TIMEOUT, and wait again.
 * @param fd  belongs to `feed`: do not close or read it
 * @return #HM_OK, #HM_E_IO
 */
int hm_feed_ready_fd(hm_feed *feed, int *fd, hm_error *error);

/** How far behind the newest change it is, in positions: each change is one, and so is each transaction. @return #HM_OK */
int hm_feed_lag(hm_feed *feed, uint64_t *lag, hm_error *error);

/** Ends following. NULL is allowed. */
void hm_feed_close(hm_feed *feed);
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* HASHMERE_FEED_H */
