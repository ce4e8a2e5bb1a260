/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes that are collected while the library is on the stack, where no Ruby object can be made. */
#include "binding.h"
#include <stdlib.h>
#include <string.h>

int texts_append(texts *t, const void *bytes, size_t len) {
    if (t->room - t->len < len) {
        size_t room = t->room * 2 + len + 1024;
        char *larger = realloc(t->bytes, room);
        if (!larger) {
            t->failed = 1;
            return 1;
        }
        t->bytes = larger;
        t->room = room;
    }
    memcpy(t->bytes + t->len, bytes, len);
    t->len += len;
    return 0;
}

void texts_collected(const texts *t) {
    if (t->failed)
        rb_memerror();
}

static VALUE release(VALUE argument) {
    free(((listing *)argument)->texts.bytes);
    return Qnil;
}

VALUE make_list(VALUE (*make)(VALUE), VALUE self) {
    listing l = {.self = self};
    return rb_ensure(make, (VALUE)&l, release, (VALUE)&l);
}
