/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * @file hashmere_dump.h
 * @brief Stores as text, and what is done with a store that is not open, in one call.
 *
 * A dump is a file with all records of a store, one on a line: key, value, flags and expiry, as TSV or as JSON. It outlives any change of the format
 * of stores, and other programs read and write it. Versions, UIDs and hashes of the caller's are not kept: a copy that has them is a backup.
 *
 * @code{.c}
 * uint64_t records;
 * hm_dump_named("sessions", "sessions.tsv", HM_FORMAT_OF_NAME, NULL, &records, &error);
 * hm_load_named("copy", NULL, "sessions.tsv", HM_FORMAT_OF_NAME, &records, &error);
 * if (hm_check_named("copy", NULL, NULL, NULL, &error) == HM_MISMATCH) puts("damaged");
 * @endcode
 *
 * Results, errors, `error` and growth of structures: as in hashmere.h. The calls ending in `_named` take a name or path, as ::hm_open does, and open
 * the store for the call; only ::hm_load_named creates one.
 */
#ifndef HASHMERE_DUMP_H
#define HASHMERE_DUMP_H

#include <hashmere.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Results of dumps, beside those of ::hm_result. */
enum hm_dump_result {
    HM_E_MALFORMED = 91 /**< A line of the file is no record; the text names it. */
};

/** The form of a record. */
enum hm_format {
    HM_FORMAT_OF_NAME = 0, /**< #HM_JSONL if the name of the file ends in .jsonl, .ndjson or .json, else #HM_TSV. */
    HM_TSV = 1,            /**< key TAB value [TAB flags [TAB expires_at_ms]], escaped with `\\ \t \n \r \xNN`. */
    HM_JSONL = 2           /**< An object with key, value, flags, expires_at_ms; key_base64, value_base64 where the bytes are not UTF-8. */
};

/** @defgroup dump Dump and load
 * @{ */

/**
 * Writes all records that pass a filter to a file, which appears, or is replaced, when it is complete. Others may write during it: a key that is
 * there during the whole dump is written exactly once.
 * @param format   ::hm_format
 * @param filter   as of ::hm_scan_open; may be NULL
 * @param records  receives how many there are; may be NULL
 * @return #HM_OK; #HM_E_IO: the file cannot be written, and nothing is there that was not there before; errors of reading
 */
int hm_dump(hm_store *store, const char *path, int format, const hm_filter *filter, uint64_t *records, hm_error *error);

/**
 * Stores all records of a file, in order.
 * @param format   ::hm_format
 * @param records  receives how many there are; may be NULL
 * @return #HM_OK; #HM_E_IO, #HM_E_MALFORMED and errors of writing: the text says how many lines are stored, which are the first ones
 */
int hm_load(hm_store *store, const char *path, int format, uint64_t *records, hm_error *error);
/** @} */

/** @defgroup named A store by its name
 * @{ */

/** As ::hm_check, read-only. @return #HM_OK if all is well, #HM_MISMATCH if something is not; errors of opening */
int hm_check_named(const char *name, hm_report *report, hm_show_problem show, void *user, hm_error *error);

/** As ::hm_get_stats, read-only. @return #HM_OK; errors of opening */
int hm_get_stats_named(const char *name, hm_stats *stats, hm_error *error);

/** As ::hm_backup. @return that of ::hm_backup; errors of opening */
int hm_backup_named(const char *name, const char *path, uint64_t flags, hm_backup_report *report, hm_error *error);

/** As ::hm_dump, read-only. @return that of ::hm_dump; errors of opening */
int hm_dump_named(const char *name, const char *path, int format, const hm_filter *filter, uint64_t *records,
                  hm_error *error);

/**
 * As ::hm_load. A file that cannot be opened creates no store.
 * @param options  how the store is opened, or created if it is missing; may be NULL
 * @return that of ::hm_load; errors of opening
 */
int hm_load_named(const char *name, const hm_options *options, const char *path, int format, uint64_t *records,
                  hm_error *error);
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* HASHMERE_DUMP_H */
