// SQLite: variant `transactions`. A table of two columns without rowids, write-ahead log, no sync; statements are prepared once.
#include <sqlite3.h>

#include "transactions.hh"

using bench::fail;

namespace {

class Sqlite {
 public:
  explicit Sqlite(const std::string& folder) {
    const std::string path = folder + "/transactions.sqlite";
    if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) fail(sqlite3_errmsg(db_));
    sqlite3_busy_timeout(db_, 60'000);
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=OFF");
    run("PRAGMA mmap_size=1073741824");
    run("CREATE TABLE IF NOT EXISTS t (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    put_ = prepare("INSERT INTO t (k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v");
    get_ = prepare("SELECT v FROM t WHERE k = ?1");
  }
  ~Sqlite() {
    for (sqlite3_stmt* statement : {begin_, commit_, put_, get_}) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }
  Sqlite(const Sqlite&) = delete;

  void begin() { step(begin_); }
  void commit() { step(commit_); }
  void put(std::string_view key, std::string_view value) {
    bind(put_, 1, key);
    bind(put_, 2, value);
    step(put_);
  }
  std::string get(std::string_view key) {
    bind(get_, 1, key);
    std::string found;
    if (sqlite3_step(get_) == SQLITE_ROW) {
      found.assign(static_cast<const char*>(sqlite3_column_blob(get_, 0)), static_cast<size_t>(sqlite3_column_bytes(get_, 0)));
    }
    if (sqlite3_reset(get_) != SQLITE_OK) fail(sqlite3_errmsg(db_));
    return found;
  }

 private:
  void run(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(sqlite3_errmsg(db_));
  }
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) fail(sqlite3_errmsg(db_));
    return statement;
  }
  void bind(sqlite3_stmt* statement, int place, std::string_view bytes) {
    if (sqlite3_bind_blob(statement, place, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC) != SQLITE_OK) {
      fail(sqlite3_errmsg(db_));
    }
  }
  void step(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) fail(sqlite3_errmsg(db_));
    sqlite3_reset(statement);
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt *begin_, *commit_, *put_, *get_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::Call call = bench::parse(argc, argv);
  if (call.variant != "transactions") fail("variants: transactions");
  return bench::run_transactions(Sqlite(call.folder), call);
}
