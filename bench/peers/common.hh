// What every peer program shares: the keys, the clock, the two workloads, the lines that it prints.
//
// The generator, the shuffle and the texts are those of crates/hashmere-bench/src/workload.rs, bit for bit, so that
// every system sees the same keys in the same order. A peer program is one class with the members used below,
// handed to `run`, and is called like this (see bench/README.md):
//
//     PROGRAM VARIANT w1|w2 RECORDS OPERATIONS FOLDER SEED
//
// Every value read is compared; a wrong one ends the program with status 1 and no figures.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

// SplitMix64.
struct Random {
  uint64_t state;
  uint64_t next() {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }
};

// The text of a number: decimal as it is (W1), or eight digits (W2).
struct Text {
  char bytes[15];
  uint8_t length;
  std::string_view view() const { return {bytes, length}; }
};

inline Text decimal(uint32_t n) {
  Text text;
  text.length = static_cast<uint8_t>(std::snprintf(text.bytes, sizeof text.bytes, "%u", n));
  return text;
}

inline Text eight_digits(uint64_t n) {
  uint64_t fours = n / 10000 | (n % 10000) << 32;
  uint64_t upper = (fours * 10486 >> 20) & 0x7F0000007F;
  uint64_t twos = upper | (fours - 100 * upper) << 16;
  uint64_t tens = (twos * 103 >> 10) & 0xF000F000F000F;
  uint64_t digits = tens | (twos - 10 * tens) << 8 | 0x3030303030303030;
  Text text;
  std::memcpy(text.bytes, &digits, 8);
  text.length = 8;
  return text;
}

inline std::vector<uint32_t> shuffled(uint32_t n, uint64_t seed) {
  std::vector<uint32_t> order(n);
  for (uint32_t i = 0; i < n; i++) order[i] = i;
  Random random{seed};
  for (uint32_t i = n; i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

inline double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

inline double resident_bytes() {
  long pages = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) fail("cannot read /proc/self/statm");
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// What the files of a folder really take.
inline double blocks_in(const std::string& folder) {
  double bytes = 0;
  DIR* dir = opendir(folder.c_str());
  if (!dir) fail("cannot read " + folder);
  while (dirent* entry = readdir(dir)) {
    struct stat st;
    std::string path = folder + "/" + entry->d_name;
    if (stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode)) bytes += static_cast<double>(st.st_blocks) * 512;
  }
  closedir(dir);
  return bytes;
}

inline void say(const char* metric, double value) { std::printf("%s %.3f\n", metric, value); }

// What a phase of a workload does; LMDB opens another kind of transaction for each.
enum class Phase { Write, Read, Mixed };

template <class Table>
void must_hold(Table& table, const Text& text) {
  if (!table.holds(text.view(), text.view())) fail("wrong or missing value of " + std::string(text.view()));
}

// W1: hot keys; draw one, set it to its own text, get it and compare. Also only setting, only getting.
template <class Table>
void w1(Table& table, uint32_t records, uint64_t operations, uint64_t seed) {
  std::vector<Text> texts;
  for (uint32_t i = 0; i < records; i++) texts.push_back(decimal(i));
  table.begin(Phase::Write);
  for (const Text& text : texts) table.set(text.view(), text.view());
  table.end();
  table.begin(Phase::Read);
  for (const Text& text : texts) must_hold(table, text);
  table.end();
  auto timed = [&](const char* metric, Phase phase, double per, auto&& one) {
    Random random{seed};
    table.begin(phase);
    double start = now_ns();
    for (uint64_t i = 0; i < operations; i++) one(texts[random.below(records)]);
    table.end();
    say(metric, (now_ns() - start) / static_cast<double>(operations) / per);
  };
  timed("pair_ns", Phase::Mixed, 2, [&](const Text& text) {
    table.set(text.view(), text.view());
    must_hold(table, text);
  });
  timed("set_ns", Phase::Write, 1, [&](const Text& text) { table.set(text.view(), text.view()); });
  timed("get_ns", Phase::Read, 1, [&](const Text& text) { must_hold(table, text); });
}

// W2: many small records in shuffled order, then random gets; and what they take.
template <class Table>
void w2(Table& table, uint32_t records, uint64_t operations, uint64_t seed, const std::string& folder) {
  std::vector<uint32_t> order = shuffled(records, seed);
  double resident = resident_bytes();
  table.begin(Phase::Write);
  double start = now_ns();
  for (uint32_t n : order) {
    Text text = eight_digits(n);
    table.set(text.view(), text.view());
  }
  table.end();
  say("load_ns", (now_ns() - start) / records);
  double files = blocks_in(folder);
  say("bytes_per_record", (files > 0 ? files : resident_bytes() - resident) / records);
  Random random{seed + 1};
  table.begin(Phase::Read);
  start = now_ns();
  for (uint64_t i = 0; i < operations; i++) must_hold(table, eight_digits(random.below(records)));
  say("get_ns", (now_ns() - start) / static_cast<double>(operations));
  table.end();
}

struct Call {
  std::string variant, test, folder;
  uint32_t records;
  uint64_t operations, seed;
};

inline Call parse(int argc, char** argv) {
  if (argc != 7) fail("usage: PROGRAM VARIANT w1|w2 RECORDS OPERATIONS FOLDER SEED");
  return {argv[1], argv[2], argv[5], static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10)),
          std::strtoull(argv[4], nullptr, 10), std::strtoull(argv[6], nullptr, 10)};
}

template <class Table>
int run(Table&& table, const Call& call) {
  if (call.test == "w1") w1(table, call.records, call.operations, call.seed);
  else if (call.test == "w2") w2(table, call.records, call.operations, call.seed, call.folder);
  else fail("no such test: " + call.test);
  return 0;
}

}  // namespace bench
