// A value read in place, and one written in place.
#include <hashmere.hpp>
#include <iostream>

static int first_byte(const hashmere::view &view) {
    return static_cast<unsigned char>(view.bytes().front());
}

int main() {
    hashmere::store store("sample-view");

    std::vector<unsigned char> frame(1 << 20, 1);
    store.set("frame", frame);
    {
        const auto view = store.view("frame");
        std::cout << "a view of " << view->size() << " bytes, " << (view->is_zero_copy() ? "not copied" : "copied")
                  << '\n';
        frame.assign(frame.size(), 2);
        store.set("frame", frame);
        std::cout << "overwritten; the view still begins with " << first_byte(*view) << ", the store with "
                  << first_byte(*store.view("frame")) << '\n';
    }

    auto room = store.reserve("squares", 8);
    for (std::size_t i = 0; i < room.size(); i++) room[i] = static_cast<char>(i * i);
    room.commit();

    std::cout << "written in place:";
    const auto squares = store.view("squares");
    for (const unsigned char square : *squares) std::cout << ' ' << int(square);
    std::cout << '\n';

    store.close();
    hashmere::store::remove("sample-view");
}
