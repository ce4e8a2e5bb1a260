/* `get` and `set` of a Python package that would be made on the C ABI, and no more than that: see c_abi. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000 /* one wheel for all versions, as the package is */
#include <Python.h>
#include <hashmere.h>

static hm_store *store;

static PyObject *raise(const hm_error *error) {
    PyErr_SetString(PyExc_RuntimeError, error->text);
    return NULL;
}

static PyObject *open_store(PyObject *module, PyObject *name) {
    hm_error error;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    (void)module;
    if (text == NULL) return NULL;
    if (hm_open(text, NULL, &store, &error) != HM_OK) return raise(&error);
    Py_RETURN_NONE;
}

static PyObject *close_store(PyObject *module, PyObject *unused) {
    hm_error error;
    (void)module, (void)unused;
    if (hm_close(store, &error) != HM_OK) return raise(&error);
    Py_RETURN_NONE;
}

static int key_of(PyObject *object, const char **key, Py_ssize_t *len) {
    if (PyBytes_CheckExact(object)) {
        char *bytes;
        if (PyBytes_AsStringAndSize(object, &bytes, len) != 0) return 0;
        *key = bytes;
        return 1;
    }
    *key = PyUnicode_AsUTF8AndSize(object, len);
    return *key != NULL;
}

/* The arguments of a call: a key, and behind it as many more as wanted. */
static int arguments(PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted, const char **key, Py_ssize_t *len) {
    if (count != wanted) {
        PyErr_SetString(PyExc_TypeError, "a wrong number of arguments");
        return 0;
    }
    return key_of(args[0], key, len);
}

/* The length of a value is not known before it is read: a short one goes through the stack, a long one is looked up twice. */
static PyObject *get(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    char buffer[4096];
    const char *key;
    Py_ssize_t key_len;
    size_t len;
    hm_error error;
    int result;
    (void)module;
    if (!arguments(args, count, 1, &key, &key_len)) return NULL;
    result = hm_get(store, key, (size_t)key_len, buffer, sizeof buffer, &len, &error);
    if (result == HM_OK) return PyBytes_FromStringAndSize(buffer, (Py_ssize_t)len);
    while (result == HM_BUFFER_TOO_SMALL) {
        size_t room = len;
        PyObject *value = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)room);
        if (value == NULL) return NULL;
        result = hm_get(store, key, (size_t)key_len, PyBytes_AsString(value), room, &len, &error);
        if (result == HM_OK && len == room) return value;
        /* Another process stored one of another length since. */
        Py_DECREF(value);
        if (result == HM_OK) result = HM_BUFFER_TOO_SMALL;
    }
    if (result == HM_ABSENT) Py_RETURN_NONE;
    return raise(&error);
}

/* A set may wait for another writer, so other Python threads must be able to run: whether it will wait, the ABI does not tell before. */
static PyObject *set(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    const char *key, *value;
    Py_ssize_t key_len, len;
    hm_error error;
    int result;
    (void)module;
    if (!arguments(args, count, 2, &key, &key_len) || !key_of(args[1], &value, &len)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    result = hm_set(store, key, (size_t)key_len, value, (size_t)len, &error);
    Py_END_ALLOW_THREADS
    if (result != HM_OK) return raise(&error);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"open", open_store, METH_O, NULL},
    {"close", close_store, METH_NOARGS, NULL},
    {"get", (PyCFunction)(void (*)(void))get, METH_FASTCALL, NULL},
    {"set", (PyCFunction)(void (*)(void))set, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "c_abi", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_c_abi(void) { return PyModule_Create(&module); }
