// What the tests of C++ share: checks that end the program with their place, and a store of their own.
#ifndef TEST_HPP
#define TEST_HPP

#include <cstdio>
#include <cstdlib>
#include <hashmere.hpp>
#include <string>

#define CHECK(...)                                                                    \
    do {                                                                              \
        if (!(__VA_ARGS__)) {                                                         \
            std::fprintf(stderr, "%s:%d: not: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
            std::exit(1);                                                             \
        }                                                                             \
    } while (0)

/// Whether `f` throws a hashmere::error with this code.
template <class F> bool fails(int code, F &&f) {
    try {
        f();
    } catch (const hashmere::error &e) {
        if (e.code() == code && e.what() == e.why().text && e.why().text.size() > 9) return true;
        std::fprintf(stderr, "error %d (%s) %s, not %d\n", e.code(), e.name(), e.what(), code);
    }
    return false;
}

/// A new store of this program, whose file goes with it. HASHMERE_DIR says where.
inline hashmere::store new_store(const std::string &name, hashmere::options options = {}) {
    return hashmere::store(name, options.create_new(true).remove_on_last_close());
}

#endif
