// LMDB: variants `batch` (1,000 operations a transaction), `single` (one each), `transactions` (transactions.hh).
// MDB_WRITEMAP and MDB_NOSYNC on tmpfs: as fast as it goes, and nothing that we promise on tmpfs is lost by it.
#include <lmdb.h>

#include "transactions.hh"

using bench::fail;
using bench::Phase;

namespace {

void check(int code, const char* what) {
  if (code != 0) fail(std::string(what) + ": " + mdb_strerror(code));
}

class Lmdb {
 public:
  Lmdb(const std::string& folder, uint64_t batch) : batch_(batch) {
    check(mdb_env_create(&env_), "mdb_env_create");
    check(mdb_env_set_mapsize(env_, size_t{8} << 30), "mdb_env_set_mapsize");
    check(mdb_env_open(env_, folder.c_str(), MDB_WRITEMAP | MDB_NOSYNC | MDB_NOMETASYNC, 0600), "mdb_env_open");
    MDB_txn* txn;
    check(mdb_txn_begin(env_, nullptr, 0, &txn), "mdb_txn_begin");
    check(mdb_dbi_open(txn, nullptr, 0, &dbi_), "mdb_dbi_open");
    check(mdb_txn_commit(txn), "mdb_txn_commit");
    check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_), "mdb_txn_begin");
    mdb_txn_reset(reader_);
  }
  ~Lmdb() {
    mdb_txn_abort(reader_);
    mdb_env_close(env_);
  }

  void begin(Phase phase) { phase_ = phase; }
  void end() { close(); }

  void set(std::string_view key, std::string_view value) {
    open(true);
    MDB_val k = wrap(key), v = wrap(value);
    check(mdb_put(writer_, dbi_, &k, &v, 0), "mdb_put");
    count(Phase::Write);
  }
  bool holds(std::string_view key, std::string_view value) {
    // In a batch of W1 a get sees the set before it in the same transaction.
    MDB_txn* txn = batch_ > 1 && phase_ == Phase::Mixed ? open(true) : open(false);
    MDB_val k = wrap(key), v;
    int code = mdb_get(txn, dbi_, &k, &v);
    bool same = code == 0 && v.mv_size == value.size() && std::memcmp(v.mv_data, value.data(), value.size()) == 0;
    count(Phase::Read);
    return same;
  }

 private:
  static MDB_val wrap(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

  MDB_txn* open(bool write) {
    if (write && !writer_) check(mdb_txn_begin(env_, nullptr, 0, &writer_), "mdb_txn_begin");
    if (!write && !reading_) {
      check(mdb_txn_renew(reader_), "mdb_txn_renew");
      reading_ = true;
    }
    return write ? writer_ : reader_;
  }
  void close() {
    if (writer_) check(mdb_txn_commit(writer_), "mdb_txn_commit");
    if (reading_) mdb_txn_reset(reader_);
    writer_ = nullptr;
    reading_ = false;
    used_ = 0;
  }
  // In a mixed batch a set and its get count as one.
  void count(Phase kind) {
    if (batch_ > 1 && phase_ == Phase::Mixed && kind == Phase::Write) return;
    if (++used_ >= batch_ || batch_ == 1) close();
  }

  uint64_t batch_, used_ = 0;
  Phase phase_ = Phase::Mixed;
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  MDB_txn *writer_ = nullptr, *reader_ = nullptr;
  bool reading_ = false;
};

// Each transaction for itself.
class Transactions {
 public:
  explicit Transactions(const std::string& folder) {
    check(mdb_env_create(&env_), "mdb_env_create");
    check(mdb_env_set_mapsize(env_, size_t{1} << 30), "mdb_env_set_mapsize");
    check(mdb_env_open(env_, folder.c_str(), MDB_WRITEMAP | MDB_NOSYNC | MDB_NOMETASYNC, 0600), "mdb_env_open");
    begin();
    check(mdb_dbi_open(txn_, nullptr, 0, &dbi_), "mdb_dbi_open");
    commit();
  }
  ~Transactions() { mdb_env_close(env_); }
  Transactions(const Transactions&) = delete;

  void begin() { check(mdb_txn_begin(env_, nullptr, 0, &txn_), "mdb_txn_begin"); }
  void commit() { check(mdb_txn_commit(txn_), "mdb_txn_commit"); }
  void put(std::string_view key, std::string_view value) {
    MDB_val k = wrap(key), v = wrap(value);
    check(mdb_put(txn_, dbi_, &k, &v, 0), "mdb_put");
  }
  std::string get(std::string_view key) {
    MDB_val k = wrap(key), v;
    if (mdb_get(txn_, dbi_, &k, &v) != 0) return {};
    return std::string(static_cast<const char*>(v.mv_data), v.mv_size);
  }

 private:
  static MDB_val wrap(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  MDB_txn* txn_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  bench::Call call = bench::parse(argc, argv);
  if (call.variant == "transactions") return bench::run_transactions(Transactions(call.folder), call);
  if (call.variant != "batch" && call.variant != "single") fail("variants: batch, single, transactions");
  return bench::run(Lmdb(call.folder, call.variant == "batch" ? 1000 : 1), call);
}
