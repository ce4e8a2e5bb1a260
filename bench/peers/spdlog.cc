// spdlog's asynchronous logger with one thread behind it and its default queue, which blocks when it is full: variant `async`.
//
//     spdlog async log RECORDS OPERATIONS FOLDER SEED
//
// OPERATIONS bursts of RECORDS lines, what a call costs the caller, with a pause after each burst as long as Hashmere's; then a million
// lines in one go, until they are in the file. The file is read back and every line checked.
#include <sched.h>
#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>

#include "common.hh"

using bench::fail;
using bench::now_ns;

namespace {

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The texts behind the `: ` of each line, one after the other.
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(path) {}
  void must_be(const std::string& text) {
    std::string line;
    if (!std::getline(file_, line)) fail("a line is missing: " + text);
    size_t at = line.find(": ");
    if (at == std::string::npos || line.compare(at + 2, std::string::npos, text) != 0) fail("not the line " + text + ": " + line);
  }
  void must_end() {
    std::string line;
    if (std::getline(file_, line)) fail("too many lines");
  }

 private:
  std::ifstream file_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7 || std::string(argv[1]) != "async" || std::string(argv[2]) != "log") fail("spdlog async log RECORDS OPERATIONS FOLDER SEED");
  const uint64_t lines = std::stoull(argv[3]), bursts = std::stoull(argv[4]), many = bursts * lines;
  const std::string path = std::string(argv[5]) + "/log";
  std::vector<std::string> texts;
  for (uint64_t n = 0; n < lines; n++) texts.push_back("request of user " + std::to_string(10000000 + n) + " is done");
  spdlog::init_thread_pool(8192, 1);
  auto logger = spdlog::create_async<spdlog::sinks::basic_file_sink_mt>("bench", path);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %l %n[%P] %t: %v", spdlog::pattern_time_type::utc);
  pin(0);
  std::vector<double> plain, formatted;
  const timespec pause{0, 5000000};
  for (uint64_t burst = 0; burst < bursts; burst++) {
    double start = now_ns();
    for (const std::string& text : texts) logger->info(spdlog::string_view_t(text.data(), text.size()));
    plain.push_back((now_ns() - start) / static_cast<double>(lines));
    nanosleep(&pause, nullptr);
    start = now_ns();
    for (uint64_t n = 0; n < lines; n++) logger->info("request of user {} is done", 10000000 + n);
    formatted.push_back((now_ns() - start) / static_cast<double>(lines));
    nanosleep(&pause, nullptr);
  }
  double start = now_ns();
  for (uint64_t n = 0; n < many; n++) logger->info("line {}", n);
  // Ends when everything is written.
  logger.reset();
  spdlog::shutdown();
  double sustained = (now_ns() - start) / static_cast<double>(many);
  Reader reader(path);
  for (uint64_t burst = 0; burst < 2 * bursts; burst++)
    for (const std::string& text : texts) reader.must_be(text);
  for (uint64_t n = 0; n < many; n++) reader.must_be("line " + std::to_string(n));
  reader.must_end();
  bench::say("line_ns", median(plain));
  bench::say("format_ns", median(formatted));
  bench::say("sustained_ns", sustained);
}
