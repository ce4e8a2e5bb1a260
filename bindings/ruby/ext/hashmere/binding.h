/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the extension share. Ruby's exceptions are longjmps: none is raised while the library is on the stack. */
#ifndef HASHMERE_RUBY_BINDING_H
#define HASHMERE_RUBY_BINDING_H

#include <hashmere.h>
#include <ruby.h>
#include <ruby/encoding.h>
#include <sys/types.h>

/* A value from here on is copied without the GVL: below, letting go of it costs more than the copy. */
#define LONG_VALUE ((size_t)128 << 10)
/* Keys from which on a bulk call lets go of the GVL. */
#define MANY_KEYS 256

/* An open store: Hashmere::Store. */
typedef struct store {
    hm_store *hm;        /* NULL: closed, or never opened. */
    hm_store *closing;   /* Closed by Ruby while a call of another thread was still in it. */
    int encoding;        /* What strings that are read are tagged with. */
    uint64_t timeout_ms; /* How long a write waits for a lock. */
    unsigned in_use;     /* Calls in the library without the GVL. */
    pid_t pid;           /* The process to which in_use belongs. */
} store;

/* One call of the library, so that it can be made without the GVL and repeated. */
typedef struct call {
    int (*run)(struct call *);
    hm_store *hm;
    hm_key key;
    hm_bytes value;
    hm_bytes old;
    hm_attributes attributes;
    uint64_t number;
    double fraction;
    const void *input;
    void *output;
    size_t room;
    size_t len;
    hm_stored stored;
    int result;
    int ran;
    hm_error error;
} call;

#ifndef RBOOL /* public from Ruby 3.2 on */
#define RBOOL(is) ((is) ? Qtrue : Qfalse)
#endif

extern VALUE hashmere_module, store_class, error_class;
extern const rb_data_type_t store_type;

/* error.c */
NORETURN(void raise_error(const hm_error *error));
NORETURN(void raise_closed(const char *what));
void init_errors(void);

/* store.c: the open store of a receiver, or Hashmere::Closed. */
static inline store *open_store(VALUE self) {
    store *s = RTYPEDDATA_DATA(self);
    if (RB_UNLIKELY(!s->hm))
        raise_closed("the store");
    return s;
}
void init_store(void);

/* call.c */
/* Makes a call; without the GVL if `release`, and in any case again without it as long as a lock is held by another thread and
 * the time is not over. Raises what is an error; returns zero or a negative result. */
int perform(store *s, call *c, int release);
/* The same behind a call that was made directly and had this result. */
int perform_on(store *s, call *c, int result);

/* Around what uses the store without the GVL: a store that is closed during it is released when the last user has left it. */
void enter_store(store *s);
void leave_store(store *s);

/* convert.c */
uint64_t to_u64(VALUE number, const char *what);
int64_t to_i64(VALUE number, const char *what);
uint32_t to_u32(VALUE number, const char *what);
hm_attributes to_attributes(VALUE flags, VALUE expiry, VALUE ms);
VALUE from_meta(const hm_metadata *meta, VALUE value);

/* The String of a name: a String, a Symbol, or what has `to_str`. */
VALUE string_of(VALUE name);
/* Its bytes. `*string` becomes the String that holds them. */
static inline hm_bytes bytes_of(VALUE *string) {
    if (RB_UNLIKELY(!RB_TYPE_P(*string, T_STRING)))
        *string = string_of(*string);
    return (hm_bytes){RSTRING_PTR(*string), (size_t)RSTRING_LEN(*string)};
}
/* Bytes that stay as they are while other threads run: a frozen String that shares the buffer. */
static inline hm_bytes frozen_bytes_of(VALUE *string) {
    bytes_of(string);
    *string = rb_str_new_frozen(*string);
    return bytes_of(string);
}

/* key.c */
/* What a key is that is no String. `*key` becomes what holds its bytes, if it has any. */
hm_key other_key_of(VALUE *key);
/* A key: a String, a Symbol, what has `to_str`, or a Uid, EntryId or HashedKey. */
static inline hm_key key_of(VALUE *key) {
    if (RB_UNLIKELY(!RB_TYPE_P(*key, T_STRING)))
        return other_key_of(key);
    return hm_key_bytes(RSTRING_PTR(*key), (size_t)RSTRING_LEN(*key));
}
/* The same, whose bytes stay as they are while other threads run. */
hm_key frozen_key_of(VALUE *key);
/* The String of a key that can be nothing but bytes. */
VALUE string_key_of(VALUE key);
VALUE new_uid(uint32_t uid);
VALUE new_entry_id(uint64_t id);
void init_key(void);

/* Strings (keys, or else values) of an Array as the library wants them: freeze and keep them in `kept`, free `room`. (bulk.c) */
hm_bytes *bytes_of_all(VALUE array, VALUE *kept, VALUE *room, int keys);

static inline VALUE tag(const store *s, VALUE string) {
    if (RB_LIKELY(s->encoding < ENCODING_INLINE_MAX))
        RB_ENCODING_SET_INLINED(string, s->encoding);
    else
        rb_enc_associate_index(string, s->encoding);
    return string;
}
/* Puts a key, and a value unless that is Qundef, into a call on the store of a receiver. */
static inline store *prepare(VALUE self, call *c, VALUE *key, VALUE *value) {
    c->key = frozen_key_of(key);
    c->value = (hm_bytes){NULL, 0};
    if (*value != Qundef) {
        StringValue(*value);
        c->value = frozen_bytes_of(value);
    }
    store *s = open_store(self);
    c->hm = s->hm;
    return s;
}
/* Makes a prepared call that reads a value into `output` and the rest of its record into `input`, again with more room if the value
 * needs it; the parts of the record, or nil. (call.c) */
VALUE item_of(VALUE self, call *c);

/* A new String with these bytes, in the encoding of the store. */
static inline VALUE new_string(const store *s, const void *bytes, size_t len) {
    return tag(s, rb_str_new(bytes, (long)len));
}

/* A filter from [prefix, glob, regex, part, parts]; `*which` becomes what keeps its bytes. (scan.c) */
hm_filter filter_of(VALUE *which);

/* Defines a class whose objects are made by the extension alone. (init.c) */
VALUE sealed_class(VALUE outer, const char *name);

/* Bytes that are collected while the library is on the stack, where no Ruby object can be made. */
typedef struct collected {
    char *data;
    size_t len, room;
    int failed; /* There was no memory. */
} collected;
/* Not 0: it failed. */
int collect_bytes(collected *c, const void *bytes, size_t len);
/* Behind a call of the library: raises what went wrong while they were collected. */
void raise_if_failed(const collected *c);

/* What a list is made of, and what is collected for it. */
typedef struct listing {
    VALUE self;
    collected bytes;
} listing;
/* What `make` returns for a listing of `self`, which it is given as its argument. What was collected is freed behind it, whatever it raises. */
VALUE make_list(VALUE (*make)(VALUE), VALUE self);

void init_hot(void);
void init_write(void);
void init_bulk(void);
void init_update(void);
void init_transaction(void);
void init_scan(void);
void init_store_wide(void);
void init_dump(void);
void init_view(void);
void init_endpoint(void);
void init_queue(void);
void init_locks(void);

/* atomic.c */
void init_atomic(void);
void init_waiting(void);
void init_log(void);
void init_feed(void);

#endif
