// Tkrzw: variants `tiny` (in process) and `hash` (a file on tmpfs, its default memory-mapped file class, updated in
// place). One bucket a record.
#include <tkrzw_dbm_hash.h>
#include <tkrzw_dbm_tiny.h>

#include "common.hh"

using bench::fail;

namespace {

template <class Dbm>
class Tkrzw {
 public:
  explicit Tkrzw(std::unique_ptr<Dbm> dbm) : dbm_(std::move(dbm)) {}
  ~Tkrzw() {
    if (dbm_ && dbm_->IsOpen()) dbm_->Close();
  }
  Tkrzw(Tkrzw&&) = default;
  void begin(bench::Phase) {}
  void end() {}
  void set(std::string_view key, std::string_view value) {
    tkrzw::Status status = dbm_->Set(key, value);
    if (!status.IsOK()) fail("set: " + tkrzw::ToString(status));
  }
  bool holds(std::string_view key, std::string_view value) { return dbm_->Get(key, &buffer_).IsOK() && buffer_ == value; }

 private:
  std::unique_ptr<Dbm> dbm_;
  std::string buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::Call call = bench::parse(argc, argv);
  if (call.variant == "tiny") {
    return bench::run(Tkrzw(std::make_unique<tkrzw::TinyDBM>(call.records)), call);
  }
  if (call.variant == "hash") {
    tkrzw::HashDBM::TuningParameters tuning;
    tuning.num_buckets = call.records;
    tuning.offset_width = 4;
    tuning.align_pow = 0;  // its smallest; 3 was no faster here
    auto dbm = std::make_unique<tkrzw::HashDBM>();
    tkrzw::Status status = dbm->OpenAdvanced(call.folder + "/bench.tkh", true, tkrzw::File::OPEN_TRUNCATE, tuning);
    if (!status.IsOK()) fail("open: " + tkrzw::ToString(status));
    return bench::run(Tkrzw(std::move(dbm)), call);
  }
  fail("variants: tiny, hash");
}
