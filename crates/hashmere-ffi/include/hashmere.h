/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * @file hashmere.h
 * @brief One hash table in one file that every process on a machine maps and reads and writes directly.
 *
 * @code{.c}
 * #include <hashmere.h>
 * #include <stdio.h>
 *
 * int main(void) {
 *     hm_error error;                     // where a failed call puts its text; NULL if you do not want it
 *     hm_store *store;
 *     if (hm_open("sessions", NULL, &store, &error) != HM_OK) {
 *         fprintf(stderr, "%s\n", error.text);
 *         return 1;
 *     }
 *     hm_set(store, "user:7", 6, "Ada", 3, &error);
 *
 *     char name[64];
 *     size_t len;
 *     switch (hm_get(store, "user:7", 6, name, sizeof name, &len, &error)) {
 *     case HM_OK: printf("%.*s\n", (int)len, name); break;
 *     case HM_ABSENT: puts("no such user"); break;
 *     case HM_BUFFER_TOO_SMALL: printf("it needs %zu bytes\n", len); break;
 *     default:        fprintf(stderr, "%s\n", error.text);
 *     }
 *     return hm_close(store, &error);
 * }
 * @endcode
 *
 * Build with `cc $(pkg-config --cflags hashmere) prog.c $(pkg-config --libs hashmere)`.
 *
 * **Results.** Every function that can fail returns an `int`: zero is *yes*, a negative number is *no* (the key is absent,
 * the condition did not hold, the buffer is too small: no error), and a positive number is an error: see ::hm_result. The
 * numbers of the errors are the same in every language.
 *
 * **Errors.** The last argument of every call is a `hm_error *`, which may be NULL. It is written if and only if the result is
 * positive. There is no global and no thread-local state that holds a result. After an error from a write the store is as it
 * was before.
 *
 * **Bytes.** Keys and values are any bytes, with their length; a length of zero is allowed, with any pointer, NULL included.
 * Together they have less than 4 GiB. What is passed in is not kept after the call. Names of stores are NUL-terminated.
 *
 * **Results by pointer.** An output argument is written when the result says so, and is otherwise left as it was. Those
 * that say "may be NULL" need not be given.
 *
 * **Threads.** A store may be used by any number of threads at the same time, without any locking of yours. A view may be read
 * by any thread and released by any thread. A reservation belongs to the thread that made it, a scan to one thread at a time. A
 * store, view, reservation or scan must not be used while another thread closes, releases, commits or abandons it.
 *
 * **Fork.** A store goes on working in parent and child. Reservations belong to the parent: a commit in the child
 * is refused. Views that the child inherits are good as long as the parent holds them. `vfork` children must only exec.
 *
 * **Lifetime.** ::hm_close may be called while views, reservations and scans of the store are still held; the file stays open until
 * the last of them is gone.
 *
 * **Bad arguments** that can be seen (NULL, closed stores, impossible lengths, unknown flags, negative times) are refused with
 * #HM_E_ARGUMENT or #HM_E_CLOSED. Nothing crashes for them.
 *
 * **Growth of this interface.** Structures with a field `size` may get more fields at their end; set it to `sizeof` of the
 * structure. Others never change. A flag bit that the library does not know is refused, not ignored. Functions are never
 * removed and never change their meaning within a major version of the library.
 *
 * **Caveats.**
 * - Callbacks must return: no `longjmp` and no exception may leave them. They may use the store.
 * - A pointer into a view or reservation is dead after its release; nothing can notice its use. Do not write through a view.
 * - A closed store is recognised as long as fewer than 256 others were closed since; after that the pointer may be another's.
 * - A signal handler must not call any of these functions.
 * - A file that is cut short while it is open raises `SIGBUS`.
 * - Static linking twice into one process (two plugins) makes two libraries that do not know each other; that works, but each
 *   takes its own client slots.
 * - Linux, 64 bits, little-endian only.
 */
#ifndef HASHMERE_H
#define HASHMERE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header; ::hm_version is that of the library. */
#define HM_VERSION_MAJOR 0
#define HM_VERSION_MINOR 1
#define HM_VERSION_PATCH 0

/** @defgroup results Results and errors
 * @{ */

/** What a function returns. The numbers never change. */
enum hm_result {
    HM_OK = 0, /**< Done; yes. */

    /* No, but no error. */
    HM_ABSENT = -1,           /**< There is no such key (or no such store). */
    HM_EXISTS = -2,           /**< The key is there already. */
    HM_MISMATCH = -3,         /**< The key is not as the caller expected it. */
    HM_BUFFER_TOO_SMALL = -4, /**< The buffer is too small; the length that is needed was stored. */
    HM_END = -5,              /**< The scan is finished. */
    HM_UNCHANGED = -6,        /**< The visitor left the key as it was. */
    HM_REMOVED = -7,          /**< The key was removed: by the visitor, or while it was waited for. */
    HM_QUEUE_FULL = -8,       /**< The queue has reached its bound: hashmere_queue.h. */
    HM_TIMEOUT = -10,         /**< What was waited for did not happen within the time. */

    /* Opening. */
    HM_E_NOT_FOUND = 1,            /**< There is no such store, and it was not to be created. */
    HM_E_ALREADY_EXISTS = 2,       /**< There is such a store, and it was only to be created. */
    HM_E_NOT_A_STORE = 3,          /**< The file is not a store, or of a format that this version cannot open. */
    HM_E_OPTION_MISMATCH = 4,      /**< The store was created with another value of an option. */
    HM_E_BAD_OPTION = 5,           /**< No store can have this value of an option. */
    HM_E_TOO_MANY_CLIENTS = 6,     /**< All client slots are taken by living processes. */
    HM_E_BAD_NAME = 7,             /**< A store cannot have this name. */
    HM_E_INSECURE_PERMISSIONS = 8, /**< The file or its folder is not safe to use. */
    HM_E_NOT_CLEANLY_CLOSED = 9,   /**< The file was open when the machine went down. */
    HM_E_IO = 10,                  /**< A system call failed; hm_error::os_error says how. */
    HM_E_NO_SPACE = 12,            /**< The file system has no room. */
    HM_E_ADDRESS_SPACE = 13,       /**< This process has no addresses for the file: RLIMIT_AS, vm.max_map_count. */

    /* Reading. */
    HM_E_CORRUPT = 20,       /**< The file contradicts itself. */
    HM_E_STALE = 21,         /**< The key that the UID or entry id named is gone. */
    HM_E_OUT_OF_MEMORY = 22, /**< The value does not fit the memory of this process. */
    HM_E_BAD_CURSOR = 23,    /**< The cursor does not come from a scan of this store. */
    HM_E_BAD_PATTERN = 24,   /**< A pattern that cannot match as it was meant; the text says what is wrong with it. */
    HM_E_BAD_PART = 25,      /**< A part of a scan that does not exist. */

    /* Writing. */
    HM_E_READ_ONLY = 30,           /**< The store was opened read-only. */
    HM_E_FULL = 31,                /**< The store is at its maximum size. */
    HM_E_BUSY = 32,                /**< A living process holds the lock; hm_error::pid says which. */
    HM_E_TOO_LARGE = 33,           /**< Key and value together are too long. */
    HM_E_WRONG_LENGTH = 34,        /**< The store has a fixed key or value length, and this is another. */
    HM_E_NOT_A_NUMBER = 35,        /**< The value cannot be counted with. */
    HM_E_TOO_MANY_COLLISIONS = 36, /**< Too many keys share their hash. */
    HM_E_INVALID_STATE = 37,       /**< The call does not fit the state of things; the text says how. */
    HM_E_POISONED = 38,            /**< A durable store could not be written to disk earlier. */
    HM_E_REENTERED = 39,           /**< A function given to an update writes the key that it is asked about. */
    HM_E_CONFLICT = 40,            /**< Others changed each time what a transaction or a snapshot read. */
    HM_E_TOO_MANY_KEYS = 41,       /**< A transaction has more keys than it may. */
    HM_E_OVERFLOW = 42,            /**< A counter would be beyond the numbers of its kind. */

    /* Backups. Those of queues, 60 to 69, are in hashmere_queue.h, of logs, 70 to 78, in hashmere_log.h, of feeds, 80 and 81, in hashmere_feed.h, of dumps, 91, in hashmere_dump.h. */
    HM_E_BACKUP_RUNNING = 50,   /**< Another backup of this store is being made; hm_error::pid says by whom. */
    HM_E_BACKUP_ABANDONED = 51, /**< A write needed the room that the backup held back. */
    HM_E_BACKUP_EXISTS = 52,    /**< There is a file under the name of the copy already. */

    /* This interface. */
    HM_E_ARGUMENT = 100, /**< An argument is not allowed; the text names it. */
    HM_E_CLOSED = 101,   /**< The store is closed, or was never open. */
    HM_E_INTERNAL = 102  /**< A bug in the library was caught; the text helps to report it. */
};

/** What went wrong. Owned by the caller; the library keeps no pointer to it. */
typedef struct hm_error {
    int32_t code;     /**< As returned. */
    int32_t os_error; /**< `errno` of the system call that failed, or 0. */
    uint32_t pid;     /**< The process that is in the way, in its own PID namespace, where an error says so; otherwise 0. */
    uint32_t text_len; /**< Length of the text, without its NUL. */
    char text[1008];  /**< What happened and what to do, in UTF-8, NUL-terminated; cut if it is too long. */
} hm_error;

/** The name of a result, such as "Full" or "Absent"; "Unknown" for other numbers. Static; never NULL. Any thread. */
const char *hm_result_name(int result);

/** The version of the library, as 10000 * major + 100 * minor + patch. Any thread. */
uint32_t hm_version(void);
/** @} */

/** @defgroup values Small values
 * @{ */

/** Bytes with their length. */
typedef struct hm_bytes {
    const void *data;
    size_t len;
} hm_bytes;

/** When a record expires: hm_attributes::expiry and the argument of ::hm_touch. */
enum hm_expiry {
    HM_NEVER = 0, /**< Never; the time is ignored. */
    HM_AFTER = 1, /**< A number of milliseconds from now; zero expires at once. */
    HM_AT = 2     /**< At this wall-clock time, in milliseconds since 1970. */
};

/** What a write attaches to its value. All zero, or a NULL pointer: no flags, never expires. */
typedef struct hm_attributes {
    uint32_t flags;    /**< 32 bits of yours, stored and returned untouched. */
    int32_t expiry;    /**< One of ::hm_expiry. */
    int64_t expiry_ms; /**< Its time; negative is refused. */
    /**
     * The version that the write gives the key is this or a larger one: the larger of this and the key's next. For callers
     * with versions of their own, as times in milliseconds. At most 2^41 (#HM_E_INVALID_STATE); 0 asks for nothing.
     */
    uint64_t min_version;
} hm_attributes;

/** Everything about a present key except its bytes. */
typedef struct hm_metadata {
    uint64_t value_len;     /**< Length of the value. */
    uint64_t version;       /**< Version of this value: grows with every change of the key, also across deletion. Never 0. */
    uint64_t expires_at_ms; /**< Wall-clock expiry in milliseconds since 1970; 0 is never. */
    uint32_t uid;           /**< The key's UID. */
    uint32_t flags;         /**< Your flags. */
    uint64_t reserved;      /**< 0. */
} hm_metadata;

/** A write that took place. */
typedef struct hm_stored {
    uint64_t version; /**< The version that it gave the key. */
    uint32_t uid;     /**< The key's UID. */
    uint32_t created; /**< 1 if the key was absent before, else 0. */
} hm_stored;

/** A key with its value, shown to a callback or by a scan. The pointers die when the callback returns, or with the next step. */
typedef struct hm_pair {
    hm_bytes key;
    hm_bytes value; /**< Empty if only keys were asked for. */
    hm_metadata metadata;
} hm_pair;

/** Is shown a pair. `user` is what was passed with it. Return 0 to go on, anything else to end the call early. */
typedef int (*hm_show)(void *user, const hm_pair *pair);

/** Is called with the progress of a call: `done` of about `of`. */
typedef void (*hm_progress)(void *user, uint64_t done, uint64_t of);
/** @} */

/** @defgroup opening Opening and closing
 * @{ */

/** An open store. */
typedef struct hm_store hm_store;

/** Bits of hm_options::flags. */
enum hm_open_flags {
    HM_NO_CREATE = 1 << 0,            /**< Only open: #HM_E_NOT_FOUND if there is none. */
    HM_CREATE_NEW = 1 << 1,           /**< Only create: #HM_E_ALREADY_EXISTS if there is one. */
    HM_READ_ONLY = 1 << 2,           /**< Map the file read-only; implies #HM_NO_CREATE. Views are copies then. */
    HM_STRICT = 1 << 3,              /**< A full store refuses writes (the default when it is created). */
    HM_CACHE = 1 << 4,               /**< A full store drops what expired, then what was not used. Needs max_bytes to create. */
    HM_DURABLE = 1 << 5,             /**< Survives power cuts up to the last ::hm_sync. Creation only; not with #HM_CACHE. */
    /** The file is removed when the last process that has it open closes it or exits. If that one is killed (or calls `_exit`), the
     * next process that opens the name removes it first: docs/operations.md. */
    HM_REMOVE_ON_LAST_CLOSE = 1 << 6,
    HM_ALLOW_FOREIGN_OWNER = 1 << 7,       /**< Open a file that another user owns. */
    HM_NO_VALUES = 1 << 8,           /**< Every value is empty: a set of keys. Creation only. */
    HM_FEED_VALUES = 1 << 9          /**< Changes are kept with their values, where hm_options::feed makes the feed. */
};

/**
 * How a store is opened. Zero in a field is "as the store has it; the default if it is created":
 * `hm_options options = {.size = sizeof options, .flags = HM_CACHE, .max_bytes = 64 << 20};`
 */
typedef struct hm_options {
    size_t size;              /**< `sizeof(hm_options)`. */
    uint64_t flags;           /**< ::hm_open_flags. */
    /**
     * The memory that the file may take. A store that exists gets this maximum, for all processes that have it open: of a cache what was
     * not used goes, a strict store refuses less than its keys take (#HM_E_OPTION_MISMATCH). Default: 2 TiB.
     */
    uint64_t max_bytes;
    uint64_t expected_items;  /**< Creates the index large enough for this many. */
    uint64_t busy_timeout_ms; /**< How long a write waits for a lock before #HM_E_BUSY. Default: 5000. */
    uint64_t sync_every_ms;   /**< Durable stores: a write that finds the last sync older than this syncs. */
    uint32_t segment_bytes;   /**< Unit of cleaning: a power of two, 4 KiB to 64 MiB, default 256 KiB. Creation only. */
    uint32_t leaf_bytes;      /**< Unit of the index: a power of two, 256 to 32768 bytes. Creation only. */
    uint32_t fixed_key_len;   /**< Every key has this length. Creation only. */
    uint32_t fixed_value_len; /**< Every value has this length. Creation only. */
    uint32_t permissions;     /**< Permission bits of a created file, default 0600. */
    uint32_t origin;          /**< Marks all changes that are made through this handle in the feed, such as that of a replicator. */
    hm_progress on_recovery;   /**< Called with the bytes done and in all, if a durable store has to be rebuilt after a power cut. */
    void *on_recovery_user;    /**< What it is given. */
    uint64_t feed; /**< Keep about this many bytes of changes, 1 MiB to 32 GiB: hashmere_feed.h. A feed that is there stays. Default: none. */
} hm_options;

/**
 * Opens a store, and creates it if it is missing.
 *
 * @param name     a *name* is a file in the namespace folder (`HASHMERE_DIR`, or else `/dev/shm/hashmere-<uid>`); with a slash in
 *                 it, or `.mere` at its end, it is a *path*
 * @param options  may be NULL: all defaults
 * @param store    the open store, on #HM_OK; NULL otherwise. Close it with ::hm_close.
 * @return #HM_OK, or any error of opening. Any thread.
 */
int hm_open(const char *name, const hm_options *options, hm_store **store, hm_error *error);

/**
 * Closes a store. NULL is allowed and does nothing.
 *
 * The last process to close a store flushes it and marks it clean. No other call may be using the store.
 * @return #HM_OK, or #HM_E_CLOSED if it was closed before
 */
int hm_close(hm_store *store, hm_error *error);

/** Removes a store's file. Processes that have it open go on with the removed one. @return #HM_OK, #HM_ABSENT: there was none */
int hm_remove(const char *name, hm_error *error);

/**
 * The file that a name means, whether it exists or not.
 * @param buffer  receives the path and a NUL; may be NULL if `room` is 0
 * @param len     its length without the NUL, on #HM_OK and #HM_BUFFER_TOO_SMALL
 * @return #HM_OK, or #HM_BUFFER_TOO_SMALL if `room` is not more than `*len`
 */
int hm_path_of(const char *name, char *buffer, size_t room, size_t *len, hm_error *error);

/** The file of an open store: see ::hm_path_of. */
int hm_path(hm_store *store, char *buffer, size_t room, size_t *len, hm_error *error);

/** @return #HM_OK if the store was opened read-only, #HM_ABSENT if it was not */
int hm_is_read_only(hm_store *store, hm_error *error);
/** @} */

/** @defgroup reading Reading
 *
 * Readers take no lock and write nothing that others read. Errors of all: #HM_E_CORRUPT, #HM_E_OUT_OF_MEMORY, #HM_E_ADDRESS_SPACE.
 * @{ */

/**
 * Copies the value of a key into a buffer. No memory is allocated.
 *
 * @param buffer  may be NULL if `room` is 0
 * @param len     the length of the value, on #HM_OK and #HM_BUFFER_TOO_SMALL
 * @return #HM_OK; #HM_ABSENT; #HM_BUFFER_TOO_SMALL: the value is longer than `room`, and what the buffer holds is not defined (the
 *         value may have grown again when you come back with a larger one)
 */
int hm_get(hm_store *store, const void *key, size_t key_len, void *buffer, size_t room, size_t *len, hm_error *error);

/** As ::hm_get, with everything else about the key; hm_metadata::value_len is the length. `meta` is written on #HM_OK and #HM_BUFFER_TOO_SMALL. */
int hm_get_item(hm_store *store, const void *key, size_t key_len, void *buffer, size_t room, hm_metadata *meta,
                hm_error *error);

/** Everything about a key except its value. `meta` may be NULL. @return #HM_OK, #HM_ABSENT */
int hm_get_metadata(hm_store *store, const void *key, size_t key_len, hm_metadata *meta, hm_error *error);

/** @return #HM_OK if the key is there, #HM_ABSENT if it is not */
int hm_contains(hm_store *store, const void *key, size_t key_len, hm_error *error);

/**
 * Whether a key is still there with the version that it was seen with. By ::hm_is_up_to_date_at with the number of an entry the
 * key is not looked up.
 * @return #HM_OK: it is; #HM_MISMATCH: it was changed or removed since
 */
int hm_is_up_to_date(hm_store *store, const void *key, size_t key_len, uint64_t version, hm_error *error);

/** The length of a value. @return #HM_OK, #HM_ABSENT */
int hm_value_len(hm_store *store, const void *key, size_t key_len, size_t *len, hm_error *error);

/** How long a key still lives, in milliseconds; -1 is forever. @return #HM_OK, #HM_ABSENT */
int hm_ttl(hm_store *store, const void *key, size_t key_len, int64_t *ms, hm_error *error);

/**
* A value in place in the file. You provide the structure, the library fills it.
 *
 * The bytes stay as they were until ::hm_view_release, also when the key is overwritten or deleted. A process can hold
 * 24 segments for each of its threads in this way; further views, those of a read-only store, and those of values of at
 * most 8 bytes, which writes replace in place, are copies, which `zero_copy` tells. It may be moved with `memcpy` if the old one is not used any more.
 */
typedef struct hm_view {
    const void *data;    /**< The value; never NULL. Read only. */
    size_t len;          /**< Its length. */
    hm_metadata metadata;        /**< Everything else, as it was when the view was taken. */
    uint32_t zero_copy;  /**< 1 if it looks into the file, 0 if it is a copy. */
    uint32_t reserved;   /**< 0. */
    uint64_t opaque[24]; /**< The library's. */
} hm_view;

/** Takes a view of a value: see ::hm_view. On #HM_OK release it with ::hm_view_release. @return #HM_OK, #HM_ABSENT */
int hm_view_acquire(hm_store *store, const void *key, size_t key_len, hm_view *view, hm_error *error);

/**
 * Whether the key still has this value. Of a value in place that does not expire this is one load, of the word that leads to it, as long
 * as it is so; the key is never looked up. A touch is no change.
 * @return #HM_OK; #HM_MISMATCH: it was changed or removed, or has expired; #HM_E_ARGUMENT: the view was released
 */
int hm_view_is_up_to_date(const hm_view *view, hm_error *error);

/** Releases a view. One that was not acquired, or was released before, is left alone. NULL is allowed. */
void hm_view_release(hm_view *view);
/** @} */

/** @defgroup writing Writing
 *
 * A new value is complete and visible to every process when the call returns; until then every reader sees the old one.
 * Errors of all: #HM_E_READ_ONLY, #HM_E_FULL, #HM_E_NO_SPACE, #HM_E_ADDRESS_SPACE, #HM_E_BUSY, #HM_E_TOO_LARGE, #HM_E_WRONG_LENGTH,
 * #HM_E_TOO_MANY_CLIENTS, #HM_E_TOO_MANY_COLLISIONS, #HM_E_POISONED, #HM_E_CORRUPT, #HM_E_IO. Nothing has changed then.
 * `attributes` and `stored` may be NULL everywhere.
 * @{ */

/** Stores a value without attributes, whether the key was there or not. @return #HM_OK */
int hm_set(hm_store *store, const void *key, size_t key_len, const void *value, size_t value_len, hm_error *error);

/** Stores a value with flags and expiry. @return #HM_OK */
int hm_set_with(hm_store *store, const void *key, size_t key_len, const void *value, size_t value_len,
                const hm_attributes *attributes, hm_stored *stored, hm_error *error);

/** Stores a value if the key is absent. @return #HM_OK, #HM_EXISTS */
int hm_add(hm_store *store, const void *key, size_t key_len, const void *value, size_t value_len,
           const hm_attributes *attributes, hm_stored *stored, hm_error *error);

/** Stores a value if the key is there. @return #HM_OK, #HM_ABSENT */
int hm_replace(hm_store *store, const void *key, size_t key_len, const void *value, size_t value_len,
               const hm_attributes *attributes, hm_stored *stored, hm_error *error);

/** Puts bytes behind a value, keeping flags and expiry. @return #HM_OK, #HM_ABSENT */
int hm_append(hm_store *store, const void *key, size_t key_len, const void *tail, size_t tail_len, hm_stored *stored,
              hm_error *error);

/** Puts bytes in front of a value, keeping flags and expiry. @return #HM_OK, #HM_ABSENT */
int hm_prepend(hm_store *store, const void *key, size_t key_len, const void *head, size_t head_len, hm_stored *stored,
               hm_error *error);

/** Removes a key. Needs no room. @return #HM_OK, #HM_ABSENT */
int hm_delete(hm_store *store, const void *key, size_t key_len, hm_error *error);

/**
 * Removes a key and copies its value into a buffer; exactly one of several callers gets it. `meta` may be NULL.
 * @return #HM_OK; #HM_ABSENT; #HM_BUFFER_TOO_SMALL: nothing was removed, `*len` is what is needed
 */
int hm_take(hm_store *store, const void *key, size_t key_len, void *buffer, size_t room, size_t *len, hm_metadata *meta,
            hm_error *error);

/**
 * Room for a value in the file, to be filled in place. You provide the structure, the library fills it.
 *
* It is not visible before ::hm_reservation_commit. Commit or abandon it in the thread that made it.
 */
typedef struct hm_reservation {
    void *data;          /**< `len` writable bytes; what they hold at first is not defined. */
    size_t len;          /**< The length asked for. */
    uint64_t opaque[46]; /**< The library's. */
} hm_reservation;

/** Makes room for a value: see ::hm_reservation. An expiry is reckoned from now. @return #HM_OK */
int hm_reserve(hm_store *store, const void *key, size_t key_len, size_t value_len, const hm_attributes *attributes,
               hm_reservation *reservation, hm_error *error);

/**
 * Makes what was written the key's value. The reservation is gone afterwards, whatever the result.
 * @return #HM_OK; #HM_E_INVALID_STATE: it is not live, or belongs to another thread (then it stays) or to the parent process
 */
int hm_reservation_commit(hm_reservation *reservation, hm_stored *stored, hm_error *error);

/** Gives a reservation up; the key is as it was. One that is not live is left alone. @return #HM_OK, #HM_E_INVALID_STATE as above */
int hm_reservation_abandon(hm_reservation *reservation, hm_error *error);
/** @} */

/** @defgroup conditions Conditions
 *
 * On #HM_MISMATCH, `stored->version` is the version that the key has now and the rest of `stored` is zero.
 * @{ */

/** Stores a value if the key has this version; version 0 is "absent". @return #HM_OK, #HM_MISMATCH, #HM_ABSENT */
int hm_cas_version(hm_store *store, const void *key, size_t key_len, uint64_t version, const void *value,
                   size_t value_len, const hm_attributes *attributes, hm_stored *stored, hm_error *error);

/** Stores a value if the key has the value `old`. @return #HM_OK, #HM_MISMATCH, #HM_ABSENT */
int hm_cas_value(hm_store *store, const void *key, size_t key_len, const void *old, size_t old_len, const void *value,
                 size_t value_len, const hm_attributes *attributes, hm_stored *stored, hm_error *error);

/** Removes a key if it has this version. @return #HM_OK, #HM_MISMATCH, #HM_ABSENT */
int hm_delete_version(hm_store *store, const void *key, size_t key_len, uint64_t version, hm_error *error);

/** Removes a key if it has this value. @return #HM_OK, #HM_MISMATCH, #HM_ABSENT */
int hm_delete_value(hm_store *store, const void *key, size_t key_len, const void *old, size_t old_len,
                    hm_error *error);

/** What a visitor wants done. */
enum hm_action {
    HM_KEEP = 0,     /**< Leave the key as it is. */
    HM_SET = 1,      /**< Store hm_change::value, keeping the flags and the expiry that the key has. */
    HM_SET_WITH = 2, /**< Store hm_change::value with hm_change::attributes. */
    HM_REMOVE = 3    /**< Remove the key. */
};

/** A visitor's answer. All zero when the visitor is called. */
typedef struct hm_change {
    int32_t action;           /**< One of ::hm_action; another one is #HM_E_ARGUMENT, and nothing happens. */
    uint32_t reserved;        /**< Leave it 0. */
    hm_bytes value;           /**< Yours; must stay valid until the visitor is called again or the whole call returns. */
    hm_attributes attributes; /**< For #HM_SET_WITH. */
} hm_change;

/**
 * Sees a key (`old` is NULL if it is absent) and fills `change`. Its pointers die when it returns. When the key was named by a UID
 * or entry id, `old->key` is empty: ::hm_key_of_at has it.
 */
typedef void (*hm_visitor)(void *user, const hm_pair *old, hm_change *change);

/**
 * Calls a visitor with a key and does what it returns, atomically for that key.
 *
 * No lock is held during the call, so the visitor may take its time and use the store: read any key, this one too (it sees what is
 * stored, not what it is going to return), and write others. If another writer changed the key during the call, it is called again with
 * what is there then. So it must not change that key itself, nor clear the store: that call is refused with #HM_E_REENTERED.
 * @return #HM_OK: stored; #HM_UNCHANGED; #HM_REMOVED; #HM_E_INVALID_STATE: the key was changed each of 1,000 times that the visitor ran, within 5 seconds
 * or more: writers let one that was beaten 16 times go first, for up to 5 ms
 */
int hm_update_with(hm_store *store, const void *key, size_t key_len, hm_visitor visitor, void *user, hm_stored *stored,
              hm_error *error);
/** @} */

/** @defgroup counters Counters and references
 *
 * A counter is a key whose value is a decimal number: one below 2^64; with ::hm_incr_signed one from -2^63 to 2^63 - 1; with
 * ::hm_incr_float a decimal fraction. Other values are #HM_E_NOT_A_NUMBER. A value has no type: the call decides.
 * @{ */

/** How a counter call treats a missing key. */
typedef struct hm_counter {
    uint64_t initial;         /**< What it is created with; the step is not applied to it. */
    hm_attributes attributes; /**< What is attached to it then. An existing key keeps its own. */
} hm_counter;

/**
 * Adds to a counter, wrapping at 2^64.
 * @param create  what to create it with if it is missing; NULL: it is left missing
 * @param now     its new value; may be NULL
 * @return #HM_OK, #HM_ABSENT
 */
int hm_incr(hm_store *store, const void *key, size_t key_len, uint64_t by, const hm_counter *create, uint64_t *now,
            hm_error *error);

/** Subtracts from a counter, stopping at zero: see ::hm_incr. */
int hm_decr(hm_store *store, const void *key, size_t key_len, uint64_t by, const hm_counter *create, uint64_t *now,
            hm_error *error);

/** Adds a signed number to a counter: below zero it stops at zero, beyond 2^64 it wraps. See ::hm_incr. */
int hm_incr_by(hm_store *store, const void *key, size_t key_len, int64_t by, const hm_counter *create,
                  uint64_t *now, hm_error *error);

/** How ::hm_incr_signed treats a missing key. */
typedef struct hm_signed_counter {
    int64_t initial;          /**< What it is created with; the step is not applied to it. */
    hm_attributes attributes; /**< What is attached to it then. An existing key keeps its own. */
} hm_signed_counter;

/** How ::hm_incr_float treats a missing key. */
typedef struct hm_float_counter {
    double initial;           /**< What it is created with, a finite number; the step is not applied to it. */
    hm_attributes attributes; /**< What is attached to it then. An existing key keeps its own. */
} hm_float_counter;

/**
 * Adds to a signed counter, which may be below zero.
 * @param create  what to create it with if it is missing; NULL: it is left missing
 * @param now     its new value; may be NULL
 * @return #HM_OK, #HM_ABSENT; #HM_E_OVERFLOW: the sum is below -2^63 or above 2^63 - 1, and nothing has changed
 */
int hm_incr_signed(hm_store *store, const void *key, size_t key_len, int64_t by, const hm_signed_counter *create,
                   int64_t *now, hm_error *error);

/**
 * Adds to a decimal fraction, exactly: the value becomes the sum of its text and of the shortest text of `by`, with at most 17
 * digits behind the point, no exponent and no zeros at the end.
 * @param create  what to create it with if it is missing; NULL: it is left missing
 * @param now     the number next to its new value; may be NULL
 * @return #HM_OK, #HM_ABSENT; #HM_E_OVERFLOW: no double holds the sum, and nothing has changed; #HM_E_INVALID_STATE: the step
 *         or the initial value is not finite
 */
int hm_incr_float(hm_store *store, const void *key, size_t key_len, double by, const hm_float_counter *create,
                  double *now, hm_error *error);

/**
 * Counts references: adds them, and creates the key with them if it is absent. Of 0 nothing is changed.
 * @param now  how many there are; may be NULL
 * @return #HM_OK; #HM_E_OVERFLOW: there would be more than 2^64 - 1
 */
int hm_inc_ref(hm_store *store, const void *key, size_t key_len, uint64_t by, uint64_t *now, hm_error *error);

/**
 * Gives references back: subtracts them, and deletes the key when that leaves none.
 * @param now  how many are left; may be NULL
 * @return #HM_OK, #HM_ABSENT
 */
int hm_dec_ref(hm_store *store, const void *key, size_t key_len, uint64_t by, uint64_t *now, hm_error *error);
/** @} */

/** @defgroup expiry Expiry
 * @{ */

/** Gives a key another expiry; its version stays. `expiry` is one of ::hm_expiry. @return #HM_OK, #HM_ABSENT */
int hm_touch(hm_store *store, const void *key, size_t key_len, int expiry, int64_t expiry_ms, hm_error *error);

/** Touches a key and copies its value as ::hm_get_item does. On #HM_BUFFER_TOO_SMALL it has been touched all the same. */
int hm_get_and_touch(hm_store *store, const void *key, size_t key_len, int expiry, int64_t expiry_ms, void *buffer,
                     size_t room, hm_metadata *meta, hm_error *error);
/** @} */

/** @defgroup bulk Several keys at once
 * @{ */

/** Is shown the value of key number `index` (`value` is NULL if it is absent), in order. Return 0 to go on, else to end. */
typedef int (*hm_show_value)(void *user, size_t index, const hm_bytes *value);

/**
 * Shows the values of several keys. Their cache misses overlap, so in a large table this is several times as fast as one by
 * one. Each key is read atomically, not all together.
 * @return #HM_OK, also if the callback ended it
 */
int hm_get_many(hm_store *store, const hm_bytes *keys, size_t count, hm_show_value show, void *user, hm_error *error);

/**
 * Stores several values: `values[i]` for `keys[i]`, in order, all with the same attributes.
 * @return #HM_OK; at an error those before the one that failed are stored
 */
int hm_set_many(hm_store *store, const hm_bytes *keys, const hm_bytes *values, size_t count,
                const hm_attributes *attributes, hm_error *error);

/** Removes several keys; `removed`, which may be NULL, says how many were there. @return #HM_OK; at an error as ::hm_set_many */
int hm_delete_many(hm_store *store, const hm_bytes *keys, size_t count, size_t *removed, hm_error *error);
/** @} */

/** @defgroup keys Keys of every kind
 *
 * Every key has a 32-bit *UID*, by which it is found without hashing or comparing its bytes for as long as it exists. An *entry id* is
 * a UID with a fingerprint of the key: it does not find another key to which the UID was given later.
 *
 * Every call that names one key by its bytes has a sister, `..._at`, that takes an ::hm_key in their place: bytes, bytes with a hash of
 * yours, a UID or an entry id. It does the same and returns the same. By the number of an entry that is gone, it does what it does
 * for an absent key; where that would be to create the key, nothing is known of the key, and it is #HM_E_STALE.
 * @{ */

/** What names a key. */
enum hm_key_kind {
    HM_KEY_BYTES = 0,  /**< Its bytes. */
    /**
     * Its bytes, and a 64-bit hash of it that you have already. A key stored with a hash is found with the same hash only; the same bytes
     * stored without one, or with another, are another key.
     */
    HM_KEY_HASHED = 1,
    HM_KEY_UID = 2,    /**< Its UID. */
    HM_KEY_ID = 3      /**< Its entry id. */
};

/** A key: made by ::hm_key_bytes, ::hm_key_hashed, ::hm_key_uid or ::hm_key_id. All zero is the key without bytes. */
typedef struct hm_key {
    const void *data;  /**< Its bytes; NULL for the number of an entry. */
    size_t len;        /**< How many. */
    uint64_t number;   /**< The hash, UID or entry id; 0 for bytes alone. */
    uint32_t kind;     /**< One of ::hm_key_kind. */
    uint32_t reserved; /**< 0. */
} hm_key;

/** A key by its bytes, which must stay valid as long as it is used. */
static inline hm_key hm_key_bytes(const void *data, size_t len) {
    hm_key key = {data, len, 0, HM_KEY_BYTES, 0};
    return key;
}

/** A key by its bytes, with a hash of yours. */
static inline hm_key hm_key_hashed(const void *data, size_t len, uint64_t hash) {
    hm_key key = {data, len, hash, HM_KEY_HASHED, 0};
    return key;
}

/** A key by its UID. */
static inline hm_key hm_key_uid(uint32_t uid) {
    hm_key key = {NULL, 0, uid, HM_KEY_UID, 0};
    return key;
}

/** A key by its entry id. */
static inline hm_key hm_key_id(uint64_t id) {
    hm_key key = {NULL, 0, id, HM_KEY_ID, 0};
    return key;
}

/** The UID of a key. @return #HM_OK, #HM_ABSENT */
int hm_uid_of(hm_store *store, const void *key, size_t key_len, uint32_t *uid, hm_error *error);
/** The entry id of a key. @return #HM_OK, #HM_ABSENT */
int hm_id_of(hm_store *store, const void *key, size_t key_len, uint64_t *id, hm_error *error);
/** Copies the bytes of a key that is there into a buffer, as ::hm_get does with its value. */
int hm_key_of_at(hm_store *store, const hm_key *key, void *buffer, size_t room, size_t *len, hm_error *error);

/** As ::hm_get. */
int hm_get_at(hm_store *store, const hm_key *key, void *buffer, size_t room, size_t *len, hm_error *error);
/** As ::hm_get_item. */
int hm_get_item_at(hm_store *store, const hm_key *key, void *buffer, size_t room, hm_metadata *meta, hm_error *error);
/** As ::hm_get_metadata. */
int hm_get_metadata_at(hm_store *store, const hm_key *key, hm_metadata *meta, hm_error *error);
/** As ::hm_contains. */
int hm_contains_at(hm_store *store, const hm_key *key, hm_error *error);
/** As ::hm_is_up_to_date. */
int hm_is_up_to_date_at(hm_store *store, const hm_key *key, uint64_t version, hm_error *error);
/** As ::hm_value_len. */
int hm_value_len_at(hm_store *store, const hm_key *key, size_t *len, hm_error *error);
/** As ::hm_ttl. */
int hm_ttl_at(hm_store *store, const hm_key *key, int64_t *ms, hm_error *error);
/** As ::hm_view_acquire. */
int hm_view_acquire_at(hm_store *store, const hm_key *key, hm_view *view, hm_error *error);

/** As ::hm_set. */
int hm_set_at(hm_store *store, const hm_key *key, const void *value, size_t value_len, hm_error *error);
/** As ::hm_set_with. */
int hm_set_with_at(hm_store *store, const hm_key *key, const void *value, size_t value_len,
                   const hm_attributes *attributes, hm_stored *stored, hm_error *error);
/** As ::hm_add. */
int hm_add_at(hm_store *store, const hm_key *key, const void *value, size_t value_len,
              const hm_attributes *attributes, hm_stored *stored, hm_error *error);
/** As ::hm_replace. */
int hm_replace_at(hm_store *store, const hm_key *key, const void *value, size_t value_len,
                  const hm_attributes *attributes, hm_stored *stored, hm_error *error);
/** As ::hm_append. */
int hm_append_at(hm_store *store, const hm_key *key, const void *tail, size_t tail_len, hm_stored *stored,
                 hm_error *error);
/** As ::hm_prepend. */
int hm_prepend_at(hm_store *store, const hm_key *key, const void *head, size_t head_len, hm_stored *stored,
                  hm_error *error);
/** As ::hm_delete. */
int hm_delete_at(hm_store *store, const hm_key *key, hm_error *error);
/** As ::hm_take. */
int hm_take_at(hm_store *store, const hm_key *key, void *buffer, size_t room, size_t *len, hm_metadata *meta,
               hm_error *error);
/** As ::hm_reserve. */
int hm_reserve_at(hm_store *store, const hm_key *key, size_t value_len, const hm_attributes *attributes,
                  hm_reservation *reservation, hm_error *error);

/** As ::hm_cas_version. */
int hm_cas_version_at(hm_store *store, const hm_key *key, uint64_t version, const void *value, size_t value_len,
                      const hm_attributes *attributes, hm_stored *stored, hm_error *error);
/** As ::hm_cas_value. */
int hm_cas_value_at(hm_store *store, const hm_key *key, const void *old, size_t old_len, const void *value,
                    size_t value_len, const hm_attributes *attributes, hm_stored *stored, hm_error *error);
/** As ::hm_delete_version. */
int hm_delete_version_at(hm_store *store, const hm_key *key, uint64_t version, hm_error *error);
/** As ::hm_delete_value. */
int hm_delete_value_at(hm_store *store, const hm_key *key, const void *old, size_t old_len, hm_error *error);
/** As ::hm_update_with. */
int hm_update_with_at(hm_store *store, const hm_key *key, hm_visitor visitor, void *user, hm_stored *stored,
                      hm_error *error);

/** As ::hm_incr. */
int hm_incr_at(hm_store *store, const hm_key *key, uint64_t by, const hm_counter *create, uint64_t *now,
               hm_error *error);
/** As ::hm_decr. */
int hm_decr_at(hm_store *store, const hm_key *key, uint64_t by, const hm_counter *create, uint64_t *now,
               hm_error *error);
/** As ::hm_incr_by. */
int hm_incr_by_at(hm_store *store, const hm_key *key, int64_t by, const hm_counter *create, uint64_t *now,
                  hm_error *error);
/** As ::hm_incr_signed. */
int hm_incr_signed_at(hm_store *store, const hm_key *key, int64_t by, const hm_signed_counter *create, int64_t *now,
                      hm_error *error);
/** As ::hm_incr_float. */
int hm_incr_float_at(hm_store *store, const hm_key *key, double by, const hm_float_counter *create, double *now,
                     hm_error *error);
/** As ::hm_inc_ref. */
int hm_inc_ref_at(hm_store *store, const hm_key *key, uint64_t by, uint64_t *now, hm_error *error);
/** As ::hm_dec_ref. */
int hm_dec_ref_at(hm_store *store, const hm_key *key, uint64_t by, uint64_t *now, hm_error *error);

/** As ::hm_touch. */
int hm_touch_at(hm_store *store, const hm_key *key, int expiry, int64_t expiry_ms, hm_error *error);
/** As ::hm_get_and_touch. */
int hm_get_and_touch_at(hm_store *store, const hm_key *key, int expiry, int64_t expiry_ms, void *buffer, size_t room,
                        hm_metadata *meta, hm_error *error);

/** As ::hm_uid_of. */
int hm_uid_of_at(hm_store *store, const hm_key *key, uint32_t *uid, hm_error *error);
/** As ::hm_id_of. */
int hm_id_of_at(hm_store *store, const hm_key *key, uint64_t *id, hm_error *error);
/** @} */

/** @defgroup scanning All keys
 *
 * A key that exists during the whole scan is returned exactly once, however the store grows, is written to and cleaned
 * during it; one that comes or goes during it is returned or not. Writers never wait for a scan.
 * @{ */

/** A running scan. */
typedef struct hm_scan hm_scan;

/** Bits of hm_filter::flags. */
enum hm_filter_flags {
    HM_KEYS_ONLY = 1 << 0 /**< Leave the values out. */
};

/** Which keys a scan returns. All zero but the size, or NULL: all of them. */
typedef struct hm_filter {
    size_t size;     /**< `sizeof(hm_filter)`. */
    uint64_t flags;  /**< ::hm_filter_flags. */
    hm_bytes prefix; /**< Only keys that start with this. */
    hm_bytes glob;   /**< Only keys that match: `*`, `?`, `[a-z]`, `[!a-z]`, `\x`; else #HM_E_BAD_PATTERN. A NULL pointer: all. */
    hm_bytes regex;  /**< Only keys in which this regular expression is found; else #HM_E_BAD_PATTERN. A NULL pointer: all. The syntax is that of
                          Rust's crate regex, without back-references and look-around: a key takes time linear in its length. `^` and `$` tie it to
                          the ends of the key; `(?-u)` takes the key as bytes, not as UTF-8. */
    uint32_t part;   /**< Only keys of this one, from 0, of `parts` parts, into which the hashes are divided evenly: several processes share a scan. */
    uint32_t parts;  /**< 1 to 65,536; else #HM_E_BAD_PART. Both 0: all keys. */
} hm_filter;

/**
 * Starts a scan.
 * @param cursor  0, or where an earlier scan of any process stopped: see ::hm_scan_cursor
 * @param scan    on #HM_OK; close it with ::hm_scan_close
 * @return #HM_OK; whether the cursor is one is seen by the first ::hm_scan_next
 */
int hm_scan_open(hm_store *store, const hm_filter *filter, uint64_t cursor, hm_scan **scan, hm_error *error);

/**
 * The next pair. Its pointers are good until the next call with this scan.
 * @return #HM_OK, #HM_END, #HM_E_BAD_CURSOR, #HM_E_CORRUPT, #HM_E_OUT_OF_MEMORY
 */
int hm_scan_next(hm_scan *scan, hm_pair *pair, hm_error *error);

/** Where to go on behind the pairs returned so far, at any later time. @return #HM_OK, #HM_END */
int hm_scan_cursor(hm_scan *scan, uint64_t *cursor, hm_error *error);

/**
 * Where a scan begins with this key: it is the first that a scan from `cursor` returns, if it passes the filter; those that a whole scan returns before
 * it are left out. Valid afterwards like any cursor. @return #HM_OK, #HM_ABSENT
 */
int hm_cursor_of(hm_store *store, const void *key, size_t key_len, uint64_t *cursor, hm_error *error);
/** As ::hm_cursor_of. */
int hm_cursor_of_at(hm_store *store, const hm_key *key, uint64_t *cursor, hm_error *error);

/** Ends a scan. NULL is allowed. A scan that was closed is not recognised: do not use it again. */
void hm_scan_close(hm_scan *scan);

/**
 * Scans with several threads at once, each its own part. `show` is called from all of them at the same time. After a result
 * that is not 0 nothing more is shown (but for what the other threads are showing just then).
 * @param threads  1 to 1024
 * @return #HM_OK, also if the callback ended it
 */
int hm_parallel_scan(hm_store *store, size_t threads, const hm_filter *filter, hm_show show, void *user,
                     hm_error *error);

/**
 * Calls a visitor with every key that passes a filter and does what it returns, each key atomically as ::hm_update_with does. A key that exists during
 * the whole call is visited exactly once, beside writers and growth; the visitor runs again for a key that another writer changed during its call.
 * @param changed  receives how many keys were stored or removed; may be NULL
 * @return #HM_OK; errors of ::hm_update_with, for the first key that fails: those visited before it are changed
 */
int hm_update_each(hm_store *store, const hm_filter *filter, hm_visitor visitor, void *user, uint64_t *changed,
                   hm_error *error);

/** Shows a pair chosen at random, each with nearly the same chance. @return #HM_OK; #HM_ABSENT: the store is empty */
int hm_random(hm_store *store, hm_show show, void *user, hm_error *error);
/** @} */

/** @defgroup whole The whole store
 * @{ */

/**
 * How many keys are stored, at once and without reading any of them: exact while there are no writers, except that expired ones, which no
 * read returns, count until they are cleaned away (::hm_compact does so). @return #HM_OK
 */
int hm_len(hm_store *store, uint64_t *count, hm_error *error);
/** How many keys a scan returns now: those that have expired do not count. It looks at every key. @return #HM_OK */
int hm_len_exact(hm_store *store, uint64_t *count, hm_error *error);

/**
 * Removes every key. No reader or writer waits. Mutexes and computations of ::hm_once stay held, pools and logs stay; a wait at a barrier
 * ends with #HM_E_QUEUE_BROKEN. @return #HM_OK; #HM_E_REENTERED: within a visitor
 */
int hm_clear(hm_store *store, hm_error *error);

/**
 * Makes everything that any process was acknowledged before this call survive a power cut. Durable stores only, else
 * #HM_E_INVALID_STATE. Takes as long as the disk does.
 * @return #HM_OK; #HM_E_BUSY; #HM_E_IO, and then #HM_E_POISONED forever
 */
int hm_sync(hm_store *store, hm_error *error);

/** Repairs what dead clients left, removes every key that has expired and cleans what pays. `freed`, which may be NULL, says how many bytes became free. @return #HM_OK */
int hm_compact(hm_store *store, uint64_t *freed, hm_error *error);

/** Statistics of a store: see docs/operations.md for what to look at. Bytes unless said otherwise. */
typedef struct hm_stats {
    size_t size;               /**< Set it to `sizeof(hm_stats)` before the call. */
    uint64_t is_cache;         /**< 1: cache; 0: strict. */
    uint64_t items;            /**< Keys, expired ones included until they are cleaned away. */
    uint64_t bytes_live;       /**< Records that live. */
    uint64_t bytes_dead;       /**< Records that were superseded or deleted and still take room. */
    uint64_t bytes_free;       /**< Room in segments that nothing was written to yet. */
    uint64_t bytes_file;       /**< Size of the file as `ls` shows it. */
    uint64_t bytes_allocated;  /**< Memory or disk that the file really takes. */
    uint64_t bytes_max;        /**< The maximum size; 0 is none. */
    uint64_t segments_total;   /**< Segments of the file. */
    uint64_t segments_log;     /**< Segments of records. */
    uint64_t segments_index;   /**< Segments of the index. */
    uint64_t segments_large;   /**< Segments of large records. */
    uint64_t segments_free;    /**< Free segments, with memory behind them or without. */
    uint64_t segments_waiting; /**< Durable stores: segments that are free after the next sync. */
    uint64_t segments_offline; /**< Segments without memory that a smaller maximum took out of use. */
    uint64_t segment_bytes;    /**< Bytes of a segment. */
    uint64_t index_slots;      /**< Slots of the index. */
    uint64_t index_used;       /**< Slots in use: one for each key. */
    uint64_t index_depth;      /**< Depth of the directory. */
    uint64_t index_overflow;   /**< Keys in the overflow tree. */
    uint64_t splits;           /**< Leaves split. */
    uint64_t segments_cleaned; /**< Segments cleaned. */
    uint64_t records_moved;    /**< Records moved by cleaning. */
    uint64_t evictions;        /**< Records dropped to make room. */
    uint64_t expiries;         /**< Records dropped because they had expired. */
    uint64_t hits;             /**< Reads that found their key. */
    uint64_t misses;           /**< Reads that did not. */
    uint64_t sets;             /**< Values stored. */
    uint64_t deletes;          /**< Keys deleted. */
    uint64_t lock_waits;       /**< Locks that were not free at once. */
    uint64_t takeovers;        /**< Dead clients repaired. */
    uint64_t read_retries;     /**< Reads repeated because a segment was recycled during them. */
    uint64_t clears;           /**< Times the store was cleared. */
    uint64_t recycle_epoch;    /**< Segments recycled. */
    uint64_t is_durable;       /**< 1 if the store is durable. */
    uint64_t syncs;            /**< Durable stores: syncs completed, the creation included. */
    uint64_t last_sync_ms;     /**< Durable stores: when the last one was completed, in milliseconds since 1970. */
    uint64_t is_poisoned;      /**< Durable stores: 1 if a flush has failed. */
    uint64_t clients;          /**< Clients of this moment: see ::hm_each_client. */
    uint64_t no_space_since_ms; /**< Since when the file system has refused memory to the store, in milliseconds since
                                     1970; 0: it does not, as far as any client has asked. */
} hm_stats;

/** Statistics. No process is stopped for them. @return #HM_OK */
int hm_get_stats(hm_store *store, hm_stats *stats, hm_error *error);

/** One client: a writing thread of a process. */
typedef struct hm_client {
    uint32_t slot;     /**< Client slot. */
    uint32_t pid;      /**< Process id in its own PID namespace. */
    uint64_t since_ms; /**< When it opened the store, in milliseconds since 1970. */
    uint64_t hits;     /**< Reads that found their key. */
    uint64_t misses;   /**< Reads that did not. */
    uint64_t sets;     /**< Values stored. */
    uint64_t deletes;  /**< Keys deleted. */
    uint64_t pins;     /**< Views that it holds. */
    hm_bytes name;     /**< The name of the process. */
} hm_client;

/** Is shown a client, whose pointers die when it returns. Return 0 to go on, anything else to end. */
typedef int (*hm_show_client)(void *user, const hm_client *client);

/** Shows the clients of this moment. @return #HM_OK */
int hm_each_client(hm_store *store, hm_show_client show, void *user, hm_error *error);

/** Bits of the flags of ::hm_backup. */
enum hm_backup_flags {
    HM_REPLACE = 1 << 0 /**< Replaces a store of that name in one step, when the copy is complete. */
};

/** What ::hm_backup did. */
typedef struct hm_backup_report {
    size_t size;         /**< Set it to `sizeof(hm_backup_report)` before the call. */
    uint64_t items;      /**< Keys in the copy. */
    uint64_t bytes_file; /**< Size of the copy, as `ls` shows it. */
    uint64_t is_thinned; /**< 1: a full cache dropped, while it was copied, keys that were there at the moment. */
} hm_backup_report;

/**
 * Copies the store to a new file as it is at one moment, while others go on reading and writing (docs/internals/backup.md). The copy is a store
 * that was closed in order; its name appears when it is complete and on the medium.
 * @param path      a path, also without a slash in it
 * @param flags     ::hm_backup_flags
 * @param progress  is called with the number of keys copied and about how many there are, first when the moment has passed; may be NULL
 * @param report    may be NULL
 * @return #HM_OK, #HM_E_BACKUP_RUNNING, #HM_E_BACKUP_ABANDONED, #HM_E_BACKUP_EXISTS, #HM_E_BUSY, and errors of opening the copy
 */
int hm_backup(hm_store *store, const char *path, uint64_t flags, hm_progress progress, void *user,
              hm_backup_report *report, hm_error *error);

/** What ::hm_check found. */
typedef struct hm_report {
    size_t size;       /**< Set it to `sizeof(hm_report)` before the call. */
    uint64_t problems; /**< How many things are wrong, at most 1000. */
    uint64_t items;    /**< Index entries that lead to a good record. */
    uint64_t segments; /**< Segments looked at. */
    uint64_t leaves;   /**< Leaves of the index looked at. */
    uint64_t dead_locks; /**< Locks that clients died with: no damage, the next to need one repairs what it covers. */
} hm_report;

/** Is shown a problem: a stable word for its kind, the byte of the file, and what it is. Return 0 to go on, else to end. */
typedef int (*hm_show_problem)(void *user, hm_bytes code, uint64_t offset, hm_bytes text);

/**
 * Reads the whole store and names what contradicts itself. `report` and `show` may be NULL.
 * @return #HM_OK if all is well, #HM_MISMATCH if something is not
 */
int hm_check(hm_store *store, hm_report *report, hm_show_problem show, void *user, hm_error *error);
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* HASHMERE_H */
