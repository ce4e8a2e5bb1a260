/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * @file hashmere_log.h
 * @brief One ordered log of many threads and processes, in the file of a store; nothing is lost when one of them is killed.
 *
 * Any thread of any process that has the store open appends lines, for some tens of nanoseconds each. One *drainer*, a thread of any of these
 * processes or the command `hashmere log`, writes them in the order of time to standard output, a file or a function. A line for which a
 * call has returned #HM_OK is in the store: it comes out, once, whatever becomes of the process. docs/internals/log.md has the protocol.
 *
 * @code{.c}
 * hm_log *log;
 * hm_drainer *drainer;
 * hm_log_open(store, "log", NULL, &log, &error);                // any process opens the same one
 * const hm_drain_options to_file = {.size = sizeof to_file, .to = HM_TO_FILE, .path = "/var/tmp/jobs.log"};
 * hm_log_drain(log, &to_file, &drainer, &error);                // one of them drains it
 *
 * HM_INFO(log, "%d workers of %s", 4, name);                    // checked by the compiler as printf is
 * HM_DEBUG(log, "state: %s", describe(all));                    // not wanted: describe() is not called
 * const hm_field fields[] = {hm_field_string("path", "/index"), hm_field_integer("ms", 1200)};
 * hm_log_line_fields(log, HM_LEVEL_WARN, "slow request", 12, fields, 2, &error);
 *
 * hm_drainer_stop(drainer, NULL, &error);                       // drains the rest
 * hm_log_close(log);
 * @endcode
 *
 * Results, errors, `error` and growth of structures: as in hashmere.h. **Threads:** a log may be used by any number of threads; a drainer by
 * any, a follower by one at a time. **Fork:** a log goes on working in parent and child, each with its own lines; a drainer and its thread
 * belong to the parent. **Lifetime:** closing the store or the log while others of these are open is no mistake. What was closed is not
 * recognised: do not use it again. **Names** are NUL-terminated UTF-8, 1 to 128 bytes.
 */
#ifndef HASHMERE_LOG_H
#define HASHMERE_LOG_H

#include <hashmere.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Results of logs, beside those of ::hm_result. */
enum hm_log_result {
    HM_SKIPPED = -9, /**< No line, but no error: its level is not wanted, or the ring was full and it was to be dropped then. */

    HM_E_LOG_NOT_FOUND = 70,  /**< There is no such log. */
    HM_E_LOG_BAD_OPTION = 71, /**< A size, a name or an option that cannot be. */
    HM_E_LOG_TOO_MANY = 72,   /**< Every ring of the log belongs to a living thread. */
    HM_E_LOG_TAKEN = 73,      /**< Another process, which is alive, drains the log; hm_error::pid says which. */
    HM_E_LOG_TOO_LONG = 74,   /**< The line is too long for one piece, and must not be split. */
    HM_E_LOG_FULL = 75,       /**< The thread's ring stayed full; hm_error::pid says which process should have drained it, 0: there is no drainer. */
    HM_E_LOG_REMOVED = 76,    /**< The log was removed. */
    HM_E_LOG_OUTPUT = 77,     /**< What the drainer writes to failed: hm_error::os_error. The lines stay in the log. */
    HM_E_LOG_REENTERED = 78   /**< A line was logged while this thread was logging one. */
};

/** How important a line is. A smaller number is more important. */
enum hm_level {
    HM_LEVEL_OFF = 0,   /**< No lines at all. A line cannot have it. */
    HM_LEVEL_ERROR = 1, /**< Something failed. */
    HM_LEVEL_WARN = 2,  /**< Something may be wrong. */
    HM_LEVEL_INFO = 3,  /**< What an operator wants to know. */
    HM_LEVEL_DEBUG = 4, /**< What a developer wants to know. */
    HM_LEVEL_TRACE = 5  /**< Everything. */
};

/** @defgroup logs Logs
 * @{ */

/** An open log. */
typedef struct hm_log hm_log;

/** Bits of hm_log_options::flags. */
enum hm_log_flags {
    HM_LOG_EXISTING = 1 << 0 /**< Only open: #HM_E_LOG_NOT_FOUND if there is none. */
};

/** What happens to a line for which the thread's ring has no room: hm_log_options::on_full. */
enum hm_log_on_full {
    HM_LOG_BLOCK = 0,    /**< The thread waits for the drainer, as long as hm_log_options::full_timeout_ms. */
    HM_LOG_DROP = 1,     /**< The line is dropped (#HM_SKIPPED) and counted; how many were is reported with the thread's next line, or when it has ended. */
    HM_LOG_OVERWRITE = 2 /**< The thread's oldest lines that were not drained are given up, and counted in the same way. */
};

/** What happens to lines when no process drains: hm_log_options::on_no_drainer. */
enum hm_log_on_no_drainer {
    HM_LOG_STDOUT = 0, /**< The thread that logs a line writes all there is to the standard output of its process, in order. */
    HM_LOG_KEEP = 1   /**< They stay in the log until a process drains it; a full ring does what ::hm_log_on_full says. */
};

/** What happens to a line that is longer than hm_log_stats::line_max: hm_log_options::on_too_long. */
enum hm_log_on_too_long {
    HM_LOG_SPLIT = 0, /**< It becomes several lines that are marked as such. Records with fields are refused all the same. */
    HM_LOG_REFUSE = 1 /**< #HM_E_LOG_TOO_LONG. */
};

/** How a log is opened. Zero in a field is its default. Sizes count when it is created; the rest is for this handle. */
typedef struct hm_log_options {
    size_t size;              /**< `sizeof(hm_log_options)`. */
    uint64_t flags;           /**< ::hm_log_flags. */
    uint64_t rings;           /**< How many threads of all processes can log at a time: 1 to 1024, default 64. */
    uint64_t ring_bytes;      /**< Bytes for each: a power of two (else rounded up), 4 KiB to 32 MiB, default 64 KiB. */
    uint64_t history_bytes;   /**< Bytes of drained lines that can still be followed: at least two rings, default 1 MiB. */
    uint64_t level;           /**< One of ::hm_level: as ::hm_log_set_level; 0: as it is (all lines, if the log is created). */
    uint64_t on_full;         /**< ::hm_log_on_full. */
    uint64_t full_timeout_ms; /**< With #HM_LOG_BLOCK: then #HM_E_LOG_FULL. Default: 30000. */
    uint64_t on_no_drainer;   /**< ::hm_log_on_no_drainer. */
    uint64_t on_too_long;     /**< ::hm_log_on_too_long. */
} hm_log_options;

/**
 * Opens the log of this name, and creates it if it is missing. An existing one keeps its sizes.
 * @param options  may be NULL: all defaults
 * @param log      on #HM_OK; NULL otherwise. Close it with ::hm_log_close.
 * @return #HM_OK, #HM_E_LOG_NOT_FOUND, #HM_E_LOG_BAD_OPTION, and errors of writing: the store has no room, or is read-only
 */
int hm_log_open(hm_store *store, const char *name, const hm_log_options *options, hm_log **log, hm_error *error);

/** Closes a log; what is in it stays. No other call may be using it. NULL is allowed. */
void hm_log_close(hm_log *log);

/**
 * Takes a log's name off it. A process that has it open may still drain it; a thread that logs gets #HM_E_LOG_REMOVED with its first line,
 * or when its ring is full. Its room is free when no process has it open. @return #HM_OK, #HM_ABSENT
 */
int hm_log_remove(hm_store *store, const char *name, hm_error *error);

/** The least important level that is wanted; #HM_LEVEL_OFF: none. @return #HM_OK */
int hm_log_get_level(hm_log *log, int *level, hm_error *error);

/** Sets it, for all processes, at once. @return #HM_OK */
int hm_log_set_level(hm_log *log, int level, hm_error *error);

/** Whether lines of this level are wanted: 1 or 0. One load. A NULL log and a level that a line cannot have are not wanted. */
int hm_log_enabled(const hm_log *log, int level);

/** Figures of a log. */
typedef struct hm_log_stats {
    size_t size;                /**< Set it to `sizeof(hm_log_stats)` before the call. */
    uint64_t bytes;             /**< Bytes of the whole log. */
    uint64_t rings;             /**< Rings that there are. */
    uint64_t ring_bytes;        /**< Bytes of each. */
    uint64_t history_bytes;     /**< Bytes of the history. */
    uint64_t line_max;          /**< Longest line that is not split: a quarter of a ring, at most 16 KiB. */
    uint64_t rings_used;        /**< Rings that have an owner. */
    uint64_t bytes_waiting;     /**< Bytes in rings that were not drained. */
    uint64_t bytes_undelivered; /**< Bytes that were drained and not delivered. */
    uint64_t lines;             /**< Lines drained so far. */
    uint64_t lost;              /**< Lines of which it is known so far that they were dropped or overwritten. */
    uint64_t halves;            /**< Lines that were cut off by the death of their writers. */
    uint64_t threads;           /**< Threads that have had a ring so far. */
    uint64_t drainer_pid;       /**< Process id of the drainer, which may be dead; 0: none. */
} hm_log_stats;

/** Figures of about now. No process is stopped for them. @return #HM_OK */
int hm_log_get_stats(hm_log *log, hm_log_stats *stats, hm_error *error);

/** Is shown a name, which dies when it returns. Return 0 to go on, anything else to end. */
typedef int (*hm_show_name)(void *user, hm_bytes name);

/** Shows the names of the logs of a store. @return #HM_OK */
int hm_each_log(hm_store *store, hm_show_name show, void *user, hm_error *error);

/** A ring that a thread has, or had last. */
typedef struct hm_ring {
    uint64_t ring;             /**< Its number, from 0. */
    uint32_t is_owned;         /**< 1: a thread has it; one that was killed counts until that is noticed. */
    uint32_t thread;           /**< That thread's number: hm_line::thread. */
    uint32_t pid;              /**< Process id, in the PID namespace of the process. */
    uint32_t reserved;         /**< 0. */
    hm_bytes process;          /**< What the process calls itself, its first 16 bytes; empty: not known any more. */
    uint64_t bytes_waiting;    /**< Bytes in it that were not drained. */
    uint64_t unreported_drops; /**< Lines that were dropped last, of which nothing has told yet. */
} hm_ring;

/** Is shown a ring, whose pointers die when it returns. Return 0 to go on, anything else to end. */
typedef int (*hm_show_ring)(void *user, const hm_ring *ring);

/** Shows the rings of a log that threads have, or had, at about this moment. @return #HM_OK */
int hm_each_ring(hm_log *log, hm_show_ring show, void *user, hm_error *error);
/** @} */

/** @defgroup lines Lines
 * @{ */

/**
 * Logs a line of text, which may be any bytes; one line break at its end is left out where it is written. For formatted text there are
 * ::HM_INFO and its like.
 * @return #HM_OK: it is in the store; #HM_SKIPPED; #HM_E_LOG_TOO_MANY, #HM_E_LOG_FULL, #HM_E_LOG_TOO_LONG, #HM_E_LOG_REMOVED,
 *         #HM_E_LOG_REENTERED. Without a drainer, and if standard output is closed or fails, the line stays in the log.
 */
int hm_log_line(hm_log *log, int level, const void *text, size_t len, hm_error *error);

/** What a field holds: hm_field::kind. */
enum hm_field_kind {
    HM_FIELD_TEXT = 0,    /**< hm_field::text. */
    HM_FIELD_INTEGER = 1, /**< hm_field::integer. */
    HM_FIELD_NATURAL = 2, /**< hm_field::natural. */
    HM_FIELD_REAL = 3,    /**< hm_field::real. */
    HM_FIELD_TRUTH = 4    /**< hm_field::truth. */
};

/** A key with a value, of a record. ::hm_field_string and its like make one. */
typedef struct hm_field {
    hm_bytes key;     /**< Its name; what is behind its first 255 bytes is left out. */
    uint32_t kind;    /**< ::hm_field_kind: which of those below counts. */
    uint32_t truth;   /**< 0 or 1. */
    hm_bytes text;    /**< Any bytes. */
    int64_t integer;  /**< With a sign. */
    uint64_t natural; /**< Without. */
    double real;      /**< With a fraction. */
} hm_field;

/**
 * Logs a structured record: a text and fields. It is never split.
 * @return as ::hm_log_line
 */
int hm_log_line_fields(hm_log *log, int level, const void *text, size_t len, const hm_field *fields, size_t count,
                  hm_error *error);

/**
 * Waits until all lines that were logged before were delivered. Without a drainer, and unless they are to be kept, writes them itself.
 * @return #HM_OK; #HM_TIMEOUT; #HM_E_LOG_REMOVED
 */
int hm_log_flush(hm_log *log, uint64_t timeout_ms, hm_error *error);
/** @} */

/** @defgroup draining Draining and following
 * @{ */

/** Bits of hm_line::flags. */
enum hm_line_flags {
    HM_LINE_MORE = 1 << 0,      /**< The thread's next line continues this one, which was too long. */
    HM_LINE_CONTINUED = 1 << 1, /**< It continues the thread's line before. */
    /** Not logged, without text: only hm_line::lost counts, of a thread that has left, or that had its ring before. */
    HM_LINE_NOTE = 1 << 2
};

/** A line as a reader of the log sees it. */
typedef struct hm_line {
    hm_bytes text;          /**< What was logged. */
    const hm_field *fields; /**< Its fields, in their order. */
    size_t field_count;     /**< How many. */
    hm_bytes process;       /**< What the process calls itself, its first 16 bytes. */
    uint64_t position;      /**< Its position in the log: grows from line to line, and is never used again. */
    uint64_t time_ns;       /**< When it was logged, in nanoseconds since 1970. */
    int32_t level;          /**< ::hm_level. */
    uint32_t pid;           /**< Process id, in the PID namespace of the process. */
    uint32_t thread;        /**< A small number that the thread has had since its first line, and no other thread has. 0, in a note: several. */
    uint32_t lost;          /**< How many lines of the thread were lost before this one, because its ring was full. */
    uint32_t flags;         /**< ::hm_line_flags. */
    uint32_t reserved;      /**< 0. */
} hm_line;

/** Is shown a line, whose pointers die when it returns. */
typedef void (*hm_show_line)(void *user, const hm_line *line);

/** Where lines go: hm_drain_options::to. */
enum hm_drain_to {
    HM_TO_STDOUT = 0,  /**< Standard output of this process, as it is now. */
    HM_TO_FD = 1,      /**< A descriptor: a pipe, a socket, a file at the offset where it is to be written. */
    HM_TO_FILE = 2,    /**< A file, appended to; made, with mode 0600, if it is not there. */
    HM_TO_CALLBACK = 3 /**< A function of yours. A line that the process died with in there is shown to the next drainer again. */
};

/** In which form lines are written: hm_drain_options::format. */
enum hm_log_format {
    HM_LOG_TEXT = 0,   /**< `2026-11-22T01:12:56.123456Z INFO  web[4711] 3: text key=value`. */
    HM_LOG_COLOUR = 1, /**< The same with colours for a terminal. */
    HM_LOG_JSON = 2    /**< One object a line: `time`, `level`, `process`, `pid`, `thread`, `text`, and `fields` if there are any. */
};

/** Bits of hm_drain_options::flags. */
enum hm_drain_flags {
    HM_DRAIN_STANDBY = 1 << 0 /**< if another process drains: wait until that one stops or dies, in place of #HM_E_LOG_TAKEN. */
};

/** What a drainer writes, and where. All zero but the size, or NULL: text, to standard output. */
typedef struct hm_drain_options {
    size_t size;        /**< `sizeof(hm_drain_options)`. */
    uint64_t flags;     /**< ::hm_drain_flags. */
    uint64_t to;        /**< ::hm_drain_to. */
    uint64_t format;    /**< ::hm_log_format. */
    uint64_t level;     /**< Lines that are less important than this are taken and not written. 0: all are. */
    int64_t fd;         /**< #HM_TO_FD: it is copied; yours may be closed. */
    const char *path;   /**< #HM_TO_FILE: NUL-terminated; not kept. */
    uint64_t max_bytes; /**< #HM_TO_FILE: before a line that would be too much it becomes `path.1`, that `path.2`, ... 0: never. */
    uint64_t keep;      /**< The last of these; 0: it is begun again. */
    hm_show_line show;  /**< #HM_TO_CALLBACK: called from the drainer's thread, one line at a time. It must not log to this log. */
    void *user;         /**< What it is given. */
} hm_drain_options;

/** A thread of this process that drains a log. */
typedef struct hm_drainer hm_drainer;

/**
 * Becomes the drainer, in a thread of this process. It drains until it is stopped, or the process exits (which drains the rest, for 5 s at
 * most). If the process is killed, the next drainer goes on where it was.
 * @return #HM_OK, #HM_E_LOG_TAKEN, #HM_E_LOG_OUTPUT, #HM_E_LOG_REMOVED
 */
int hm_log_drain(hm_log *log, const hm_drain_options *options, hm_drainer **drainer, hm_error *error);

/** Whether it drains. @return #HM_OK; #HM_ABSENT: not yet, for another does, or not any more, because it failed */
int hm_drainer_is_active(hm_drainer *drainer, hm_error *error);

/**
 * Drains the rest, ends the thread and the drainer, which is gone whatever is returned. NULL is allowed.
 * @param lines  how many lines it has taken in all; may be NULL
 * @return #HM_OK; #HM_E_LOG_OUTPUT: what could not be written stays in the log
 */
int hm_drainer_stop(hm_drainer *drainer, uint64_t *lines, hm_error *error);

/** The role of the drainer in your hands, for a loop of your own: one thread at a time. */
typedef struct hm_manual_drainer hm_manual_drainer;

/**
 * Becomes the drainer, without a thread: lines are written when ::hm_manual_drainer_poll is called, by its caller.
 * @param options  as of ::hm_log_drain; not #HM_DRAIN_STANDBY. A function may throw nothing, but it may log to other logs.
 * @param drainer     on #HM_OK; end it with ::hm_manual_drainer_finish
 * @return #HM_OK, #HM_E_LOG_TAKEN (try again later), #HM_E_LOG_OUTPUT, #HM_E_LOG_REMOVED
 */
int hm_manual_drainer_open(hm_log *log, const hm_drain_options *options, hm_manual_drainer **drainer, hm_error *error);

/**
 * A descriptor that is readable while there is something to drain, for `poll`, `epoll` and event loops on them; a thread of this process,
 * which the first call starts, sleeps as a drainer would and raises it. ::hm_manual_drainer_poll takes that back when it leaves nothing.
 * @param fd  belongs to `drainer`: do not close or read it
 * @return #HM_OK, #HM_E_IO
 */
int hm_manual_drainer_ready_fd(hm_manual_drainer *drainer, int *fd, hm_error *error);

/**
 * Takes the lines that are in the rings, and writes them out; what is too young by some millionths of a second stays for the next call.
 * @param lines  how many it has taken; may be NULL
 * @return #HM_OK; #HM_E_LOG_OUTPUT: the lines stay in the log, the next call tries again; #HM_E_LOG_REMOVED
 */
int hm_manual_drainer_poll(hm_manual_drainer *drainer, uint64_t *lines, hm_error *error);

/** Without an event loop: waits for something to drain, at most so long; may return early. @return #HM_OK */
int hm_manual_drainer_wait(hm_manual_drainer *drainer, uint64_t timeout_ms, hm_error *error);

/**
 * Drains what there is and gives the role back; the drainer is gone whatever is returned. NULL is allowed. It is not done by itself when the
 * process exits: then the next drainer goes on.
 * @param lines  how many this last call has taken; may be NULL
 * @return as ::hm_manual_drainer_poll
 */
int hm_manual_drainer_finish(hm_manual_drainer *drainer, uint64_t *lines, hm_error *error);

/** Reads the lines of a log that were drained, without consuming them. */
typedef struct hm_follower hm_follower;

/**
 * Starts to follow.
 * @param last      number of lines to go back from now; `UINT64_MAX`: from the oldest that is left
 * @param follower  on #HM_OK; close it with ::hm_follower_close
 * @return #HM_OK
 */
int hm_log_follow(hm_log *log, uint64_t last, hm_follower **follower, hm_error *error);

/**
 * The next line, for which it waits as long as `timeout_ms`. Its pointers are good until the next call with this follower.
 * @return #HM_OK, #HM_TIMEOUT, #HM_E_CORRUPT
 */
int hm_follower_next(hm_follower *follower, uint64_t timeout_ms, hm_line *line, hm_error *error);

/**
 * A descriptor that is readable while there is a line, for event loops; a thread of this process, which the first call starts, raises it.
 * ::hm_follower_next takes that back when it finds none: call it with a `timeout_ms` of 0 until it says #HM_TIMEOUT, and wait again.
 * @param fd  belongs to `follower`: do not close or read it
 * @return #HM_OK, #HM_E_IO
 */
int hm_follower_ready_fd(hm_follower *follower, int *fd, hm_error *error);

/** Bytes of lines that were written over before this follower came to read them. @return #HM_OK */
int hm_follower_missed_bytes(hm_follower *follower, uint64_t *bytes, hm_error *error);

/** Ends following. NULL is allowed. */
void hm_follower_close(hm_follower *follower);
/** @} */

#ifdef __cplusplus
}
#endif

#include <hashmere_logf.h>

#endif /* HASHMERE_LOG_H */
