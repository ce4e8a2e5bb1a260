/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hashmere::Error and one class for each code of the library. */
#include "binding.h"

enum { CODES = 128 };

VALUE error_class;
static VALUE class_of_code[CODES];

static VALUE error_code(VALUE self) {
    return rb_const_get(CLASS_OF(self), rb_intern("CODE"));
}

void raise_error(const hm_error *error) {
    VALUE kind = error->code > 0 && error->code < CODES ? class_of_code[error->code] : Qnil;
    VALUE text = rb_utf8_str_new(error->text, error->text_len);
    VALUE raised = rb_exc_new_str(NIL_P(kind) ? error_class : kind, text);
    rb_ivar_set(raised, rb_intern("@os_error"), error->os_error ? INT2NUM(error->os_error) : Qnil);
    rb_ivar_set(raised, rb_intern("@pid"), error->pid ? UINT2NUM(error->pid) : Qnil);
    rb_exc_raise(raised);
}

void raise_closed(const char *what) {
    rb_raise(class_of_code[HM_E_CLOSED], "%s is closed", what);
}

void init_errors(void) {
    error_class = rb_define_class_under(hashmere_module, "Error", rb_eStandardError);
    rb_define_const(error_class, "CODE", INT2FIX(0));
    rb_define_method(error_class, "code", error_code, 0);
    rb_define_attr(error_class, "os_error", 1, 0);
    rb_define_attr(error_class, "pid", 1, 0);
    for (int code = 1; code < CODES; code++) {
        const char *name = hm_result_name(code);
        class_of_code[code] = Qnil;
        if (strcmp(name, "Unknown") == 0)
            continue;
        class_of_code[code] = rb_define_class_under(hashmere_module, name, error_class);
        rb_define_const(class_of_code[code], "CODE", INT2FIX(code));
    }
}
