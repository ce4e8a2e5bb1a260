/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes that are collected while the library is on the stack, where no Ruby object can be made. */
#include "binding.h"
#include <stdlib.h>
#include <string.h>

int collect_bytes(collected *c, const void *bytes, size_t len) {
    if (c->room - c->len < len) {
        size_t room = c->room * 2 + len + 1024;
        char *larger = realloc(c->data, room);
        if (!larger) {
            c->failed = 1;
            return 1;
        }
        c->data = larger;
        c->room = room;
    }
    memcpy(c->data + c->len, bytes, len);
    c->len += len;
    return 0;
}

void raise_if_failed(const collected *c) {
    if (c->failed)
        rb_memerror();
}

static VALUE release(VALUE argument) {
    free(((listing *)argument)->bytes.data);
    return Qnil;
}

VALUE make_list(VALUE (*make)(VALUE), VALUE self) {
    listing l = {.self = self};
    return rb_ensure(make, (VALUE)&l, release, (VALUE)&l);
}
