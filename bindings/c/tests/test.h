/* What the tests of C share: checks that end the program with the place and the error text, and a store of their own. */
#ifndef TEST_H
#define TEST_H

#include <hashmere.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hm_error error;

#define FAIL(...)                                       \
    do {                                                \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                   \
        fprintf(stderr, "\n");                          \
        exit(1);                                        \
    } while (0)

#define CHECK(condition)                            \
    do {                                            \
        if (!(condition)) FAIL("not: %s", #condition); \
    } while (0)

/* The result of a call. If it is an error, its number and its name must be in the structure, and a text. */
#define EXPECT(wanted, call)                                                                                     \
    do {                                                                                                         \
        memset(&error, 0, sizeof error);                                                                         \
        const int got_ = (call);                                                                                 \
        if (got_ != (wanted))                                                                                    \
            FAIL("%s is %d (%s) %s, not %d (%s)", #call, got_, hm_result_name(got_), error.text, (int)(wanted),  \
                 hm_result_name(wanted));                                                                        \
        if (got_ > 0 && (error.code != got_ || error.text_len < 10 || strlen(error.text) != error.text_len))     \
            FAIL("%s tells no error: %d, \"%s\"", #call, error.code, error.text);                                \
        if (got_ <= 0 && error.code != 0) FAIL("%s is no error but writes one", #call);                          \
    } while (0)

#define KEY(text) (text), (sizeof(text) - 1)
#define EQUAL(data, len, text) CHECK((len) == sizeof(text) - 1 && memcmp((data), (text), sizeof(text) - 1) == 0)

/* A new store of this program, whose file goes when it is closed. HASHMERE_DIR says where. */
static inline hm_store *new_store(const char *name, uint64_t flags) {
    hm_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = HM_CREATE_NEW | HM_REMOVE_ON_LAST_CLOSE | flags;
    hm_store *store = NULL;
    EXPECT(HM_OK, hm_open(name, &options, &store, &error));
    CHECK(store != NULL);
    return store;
}

#endif
