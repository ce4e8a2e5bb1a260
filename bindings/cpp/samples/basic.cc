// The first steps: open, set, get, scan, erase, and what an error looks like.
#include <hashmere.hpp>
#include <iostream>
#include <set>

int main() {
    hashmere::store store("sample-basic");
    store.clear();

    store.set("user:7", "Ada");
    if (const auto name = store.get("user:7")) std::cout << "user:7 is " << *name << '\n';
    if (!store.get("user:8")) std::cout << "user:8 is not there\n";

    store.replace("user:7", "Grace");
    const std::string name = store.get("user:7").value();
    std::cout << "now user:7 is " << name << ", " << name.size() << " bytes\n";

    store.add("user:9", "Edsger");
    std::set<std::string> keys; // a scan has no order
    auto scan = store.scan(hashmere::filter().prefix("user:").keys_only());
    for (const hashmere::pair &pair : scan) keys.emplace(pair.key);
    std::cout << "keys:";
    for (const std::string &key : keys) std::cout << ' ' << key;
    std::cout << '\n';

    store.erase("user:9");
    std::cout << "deleted user:9, " << store.size() << " key is left\n";
    store.close();
    hashmere::store::remove("sample-basic");

    try {
        hashmere::store missing("sample-basic", hashmere::options().create(false));
    } catch (const hashmere::error &error) {
        std::cout << "error " << error.code() << " (" << error.name() << ")\n";
    }
}
