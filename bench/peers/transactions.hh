// Transactions of 2 and of 10 sets, and transfers between accounts, as many as go in a fixed time: the same for the
// peers as crates/hashmere-bench/src/work/transactions.rs for Hashmere.
//
// A table has begin(), put(key, value), get(key) -> std::string, commit(). Several processes begin at one moment: each
// says `ready`, reads the start time (nanoseconds since 1970), and spins until then.
#pragma once

#include <iostream>

#include "common.hh"

namespace bench {

constexpr uint64_t start_amount = 1000;

inline std::string value_of(std::string_view key, uint64_t number) {
  std::string value(20, '0');
  value.replace(0, 8, key);
  value.replace(12, 8, eight_digits(number % 100'000'000).view());
  return value;
}

inline void wait_for_start() {
  std::cout << "ready" << std::endl;
  uint64_t start = 0;
  if (!(std::cin >> start)) fail("no start time");
  timespec now;
  do {
    clock_gettime(CLOCK_REALTIME, &now);
  } while (static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec) < start);
}

template <class Once>
void in_time(const Call& call, Once&& once) {
  wait_for_start();
  double start = now_ns(), length = static_cast<double>(call.operations) * 1e6, elapsed = 0;
  uint64_t done = 0;
  do {
    for (int i = 0; i < 64; i++) once(done++);
    elapsed = now_ns() - start;
  } while (elapsed < length);
  say("ops_per_s", static_cast<double>(done) / elapsed * 1e9);
}

template <class Table>
void load(Table& table, uint32_t records, bool accounts) {
  for (uint32_t n = 0; n < records;) {
    table.begin();
    for (int i = 0; i < 1000 && n < records; i++, n++) {
      Text key = eight_digits(n);
      table.put(key.view(), accounts ? std::string(eight_digits(start_amount).view()) : value_of(key.view(), 0));
    }
    table.commit();
  }
}

// Each process has every other key.
template <class Table>
void sets(Table& table, const Call& call, int width) {
  auto own = [&](uint64_t n) { return eight_digits(2 * n + call.seed % 2); };
  const uint64_t half = call.records / 2;
  Random random{call.seed};
  in_time(call, [&](uint64_t number) {
    table.begin();
    for (int i = 0; i < width; i++) {
      Text key = own(random.below(half));
      table.put(key.view(), value_of(key.view(), number));
    }
    table.commit();
  });
  table.begin();
  for (uint64_t n = 0; n < half; n++) {
    Text key = own(n);
    std::string found = table.get(key.view());
    if (found.size() != 20 || found.compare(0, 8, key.view()) != 0) fail("wrong value of " + std::string(key.view()));
  }
  table.commit();
}

inline uint64_t amount_of(const std::string& value) {
  if (value.size() != 8) fail("an account holds no amount");
  return std::strtoull(value.c_str(), nullptr, 10);
}

template <class Table>
void bank(Table& table, const Call& call) {
  Random random{call.seed};
  const uint64_t accounts = call.records;
  in_time(call, [&](uint64_t number) {
    const uint64_t one = random.below(accounts), other = (one + 1 + random.below(accounts - 1)) % accounts;
    const Text from = eight_digits(one), to = eight_digits(other);
    const uint64_t amount = 1 + number % 9;
    table.begin();
    const uint64_t there = amount_of(table.get(from.view())), theirs = amount_of(table.get(to.view()));
    if (there >= amount) {
      table.put(from.view(), std::string(eight_digits(there - amount).view()));
      table.put(to.view(), std::string(eight_digits(theirs + amount).view()));
    }
    table.commit();
  });
}

template <class Table>
void check_bank(Table& table, const Call& call) {
  uint64_t sum = 0;
  table.begin();
  for (uint32_t n = 0; n < call.records; n++) sum += amount_of(table.get(eight_digits(n).view()));
  table.commit();
  if (sum != start_amount * call.records) fail("the sum of all accounts is " + std::to_string(sum));
}

template <class Table>
int run_transactions(Table&& table, const Call& call) {
  if (call.test == "txn-fill") load(table, call.records, false);
  else if (call.test == "txn-fill-bank") load(table, call.records, true);
  else if (call.test == "txn-2") sets(table, call, 2);
  else if (call.test == "txn-10") sets(table, call, 10);
  else if (call.test == "txn-bank") bank(table, call);
  else if (call.test == "txn-check-bank") check_bank(table, call);
  else fail("no such test: " + call.test);
  return 0;
}

}  // namespace bench
