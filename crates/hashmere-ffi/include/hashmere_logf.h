/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * @file hashmere_logf.h
 * @brief What of the log is code of the caller's: formatted lines, and fields. A part of hashmere_log.h, which includes it.
 *
 * Nothing here is a symbol of the library: it is compiled into the program, so that the compiler checks formats, and leaves out what is
 * not wanted. Names end in `_` so that none of the caller's is hidden.
 */
#ifndef HASHMERE_LOGF_H
#define HASHMERE_LOGF_H

#include <hashmere_log.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** @defgroup logf Formatted lines
 * @{ */

/**
 * Lines that are less important than this are not compiled: define it before this header is included, or by `-DHM_LOG_LEVEL=3`
 * (::hm_level: 0 none, 3 up to info, 5 all). Their arguments are still checked, and never evaluated.
 */
#ifndef HM_LOG_LEVEL
#define HM_LOG_LEVEL 5
#endif

/** Text up to this length is formatted on the stack; more is allocated for the time of the call. */
#define HM_LOG_ROOM 1024

/** Says which argument of a function is a format of `printf`, and where what is formatted begins. */
#if defined(__GNUC__)
#define HM_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#else
#define HM_PRINTF(at, first)
#endif

/**
 * Formats a line and logs it, as `vprintf`. The level is not looked at before it is formatted: ::HM_LOGF does.
 * @return as ::hm_log_line; #HM_E_OUT_OF_MEMORY: there is none for a long line; #HM_E_ARGUMENT: `vsnprintf` refuses the format
 */
HM_PRINTF(4, 0)
static inline int hm_log_vprintf(hm_log *log_, int level_, hm_error *error_, const char *format_, va_list arguments_) {
    char buffer_[HM_LOG_ROOM];
    va_list again_;
    va_copy(again_, arguments_);
    const int len_ = vsnprintf(buffer_, sizeof buffer_, format_, arguments_);
    int result_ = len_ < 0 ? HM_E_ARGUMENT : HM_E_OUT_OF_MEMORY;
    if (len_ >= 0 && (size_t)len_ < sizeof buffer_) {
        result_ = hm_log_line(log_, level_, buffer_, (size_t)len_, error_);
    } else {
        char *longer_ = len_ < 0 ? NULL : (char *)malloc((size_t)len_ + 1);
        if (longer_ != NULL) {
            vsnprintf(longer_, (size_t)len_ + 1, format_, again_);
            result_ = hm_log_line(log_, level_, longer_, (size_t)len_, error_);
            free(longer_);
        } else if (error_ != NULL) {
            memset(error_, 0, sizeof *error_);
            error_->code = result_;
            error_->text_len = (uint32_t)snprintf(error_->text, sizeof error_->text, "a line could not be formatted: %s",
                                                 len_ < 0 ? "its format or an argument is wrong" : "no memory");
        }
    }
    va_end(again_);
    return result_;
}

/** The same, as `printf`. */
HM_PRINTF(4, 5)
static inline int hm_log_printf(hm_log *log_, int level_, hm_error *error_, const char *format_, ...) {
    va_list arguments_;
    va_start(arguments_, format_);
    const int result_ = hm_log_vprintf(log_, level_, error_, format_, arguments_);
    va_end(arguments_);
    return result_;
}

/** Whether a line of this level is compiled, and wanted. */
#define HM_LOG_IS_WANTED(log, level) ((level) <= HM_LOG_LEVEL && hm_log_enabled((log), (level)))

/**
 * Logs a formatted line: `HM_LOGF(log, HM_LEVEL_INFO, "%d users", n)`. If its level is not wanted no other argument is evaluated; `log`
 * and `level` are, more than once. An expression: what ::hm_log_line returns.
 */
#define HM_LOGF(log, level, ...) \
    (HM_LOG_IS_WANTED(log, level) ? hm_log_printf((log), (level), NULL, __VA_ARGS__) : (int)HM_SKIPPED)

/** ::HM_LOGF at this level: `HM_ERROR(log, "cannot open %s", path)`. */
#define HM_ERROR(log, ...) HM_LOGF(log, HM_LEVEL_ERROR, __VA_ARGS__)
/** ::HM_LOGF at this level. */
#define HM_WARN(log, ...) HM_LOGF(log, HM_LEVEL_WARN, __VA_ARGS__)
/** ::HM_LOGF at this level. */
#define HM_INFO(log, ...) HM_LOGF(log, HM_LEVEL_INFO, __VA_ARGS__)
/** ::HM_LOGF at this level. */
#define HM_DEBUG(log, ...) HM_LOGF(log, HM_LEVEL_DEBUG, __VA_ARGS__)
/** ::HM_LOGF at this level. */
#define HM_TRACE(log, ...) HM_LOGF(log, HM_LEVEL_TRACE, __VA_ARGS__)
/** @} */

/** @defgroup fields Fields of records
 *
 * Keys and strings are NUL-terminated, and must live until the record is logged.
 * @{ */

/** A field of this kind, whose value is still to be set. */
static inline hm_field hm_field_of(const char *key_, enum hm_field_kind kind_) {
    hm_field field_;
    memset(&field_, 0, sizeof field_);
    field_.key.data = key_;
    field_.key.len = key_ == NULL ? 0 : strlen(key_);
    field_.kind = (uint32_t)kind_;
    return field_;
}
/** Any bytes. */
static inline hm_field hm_field_text(const char *key_, const void *data_, size_t len_) {
    hm_field field_ = hm_field_of(key_, HM_FIELD_TEXT);
    field_.text.data = data_;
    field_.text.len = len_;
    return field_;
}
/** A string; NULL is an empty one. */
static inline hm_field hm_field_string(const char *key_, const char *string_) {
    return hm_field_text(key_, string_, string_ == NULL ? 0 : strlen(string_));
}
/** A number with a sign. */
static inline hm_field hm_field_integer(const char *key_, int64_t number_) {
    hm_field field_ = hm_field_of(key_, HM_FIELD_INTEGER);
    field_.integer = number_;
    return field_;
}
/** A number without. */
static inline hm_field hm_field_natural(const char *key_, uint64_t number_) {
    hm_field field_ = hm_field_of(key_, HM_FIELD_NATURAL);
    field_.natural = number_;
    return field_;
}
/** A number with a fraction. */
static inline hm_field hm_field_real(const char *key_, double number_) {
    hm_field field_ = hm_field_of(key_, HM_FIELD_REAL);
    field_.real = number_;
    return field_;
}
/** True, unless the number is 0. */
static inline hm_field hm_field_truth(const char *key_, int truth_) {
    hm_field field_ = hm_field_of(key_, HM_FIELD_TRUTH);
    field_.truth = truth_ != 0;
    return field_;
}
/** @} */

#endif /* HASHMERE_LOGF_H */
