// Kyoto Cabinet: variants `stash` and `cache` (in process) and `hash` (a file on tmpfs).
// One bucket a record; the file's map covers all of it, its addresses are 32 bits wide and its chains linear, which is
// both its fastest and its smallest setting for small records.
#include <kccachedb.h>
#include <kchashdb.h>
#include <kcstashdb.h>

#include "common.hh"

using bench::fail;
namespace kc = kyotocabinet;

namespace {

template <class Db>
class Kyoto {
 public:
  template <class Tune>
  Kyoto(const std::string& path, Tune&& tune) {
    tune(db_);
    if (!db_.open(path, kc::BasicDB::OWRITER | kc::BasicDB::OCREATE | kc::BasicDB::OTRUNCATE)) refuse("open");
  }
  ~Kyoto() { db_.close(); }
  void begin(bench::Phase) {}
  void end() {}
  void set(std::string_view key, std::string_view value) {
    if (!db_.set(key.data(), key.size(), value.data(), value.size())) refuse("set");
  }
  bool holds(std::string_view key, std::string_view value) {
    char buffer[64];
    int32_t size = db_.get(key.data(), key.size(), buffer, sizeof buffer);
    return size == static_cast<int32_t>(value.size()) && std::memcmp(buffer, value.data(), value.size()) == 0;
  }

 private:
  [[noreturn]] void refuse(const char* what) { fail(std::string(what) + ": " + db_.error().message()); }
  Db db_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::Call call = bench::parse(argc, argv);
  int64_t buckets = call.records;
  if (call.variant == "stash") {
    return bench::run(Kyoto<kc::StashDB>(":", [&](auto& db) { db.tune_buckets(buckets); }), call);
  }
  if (call.variant == "cache") {
    return bench::run(Kyoto<kc::CacheDB>("*", [&](auto& db) { db.tune_buckets(buckets); }), call);
  }
  if (call.variant == "hash") {
    auto tune = [&](auto& db) {
      db.tune_buckets(buckets);
      db.tune_map(int64_t{2} << 30);
      db.tune_alignment(3);
      db.tune_options(kc::HashDB::TSMALL | kc::HashDB::TLINEAR);
    };
    return bench::run(Kyoto<kc::HashDB>(call.folder + "/bench.kch", tune), call);
  }
  fail("variants: stash, cache, hash");
}
