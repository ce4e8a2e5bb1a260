// The log in C++: formats, streams, fields, levels, draining and following, the death of a writer and of a drainer.
#include "test.hpp"

#include <algorithm>
// Lines below info are not compiled by the macros, whatever level the log has.
#define HM_LOG_LEVEL HM_LEVEL_INFO
#include <hashmere/log.hpp>
#include <csignal>
#include <fstream>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;
using hashmere::level;

namespace {

/// Text of the lines that wait, which are taken from the log.
std::vector<std::string> drained(hashmere::log &log) {
    std::vector<std::string> texts;
    auto drainer = log.drain(hashmere::output::callback([&](const hashmere::log_line &line) {
        CHECK(line.pid() == static_cast<std::uint32_t>(getpid()) && line.process().substr(0, 8) == "test-log");
        texts.emplace_back(line.text());
    }));
    CHECK(drainer.is_active() && drainer.stop() == texts.size());
    return texts;
}

struct point {
    int x, y;
};
std::ostream &operator<<(std::ostream &to, const point &p) { return to << p.x << '/' << p.y; }

using texts = std::vector<std::string>;

void formats(hashmere::store &store) {
    hashmere::log log(store, "formats", hashmere::log_options().keep());
    const std::string name = "Ada";
    const char *none = nullptr;
    CHECK(log.info("{} of {}: {}", 1u, -2, name) && log.warn("{}|{}|{}|{}", true, 'c', 0.1, std::string_view("v")));
    CHECK(log.error("{{}} }} {} {{", point{3, 4}) && log.debug("plain { } {x}") && log.trace("{}{}", none, std::uint8_t(7)));
    log.info() << "n = " << 42 << ", " << 2.5f << ' ' << false << ' ' << point{5, 6} << ' ' << std::uint64_t(-1);
    log.info() << "";
    CHECK(drained(log) == texts{"1 of -2: Ada", "true|c|0.1|v", "{} } 3/4 {", "plain { } {x}", "(null)7",
                                "n = 42, 2.5 false 5/6 18446744073709551615", ""});
#if !defined(__cpp_consteval)
    // Too few and too many arguments, which later standards refuse.
    CHECK(log.info("{} {}", 1) && log.info("one", 2, 3));
    CHECK(drained(log) == texts{"1 {}", "one 2 3"});
#endif
    // Beyond the room of a line that is put together, and beyond a piece of a ring.
    const std::string large(3000, 'x'), huge(40000, 'y');
    CHECK(log.info("{}{}", large, 1));
    log.info() << large << large;
    CHECK(log.line(level::info, huge));
    const auto pieces = drained(log);
    CHECK(pieces.size() == 2 + 3 && pieces[0] == large + "1" && pieces[1] == large + large && pieces[2].size() == 16384);
    CHECK(hashmere::log::remove(store, "formats") && !hashmere::log::remove(store, "formats"));
}

int evaluated = 0;
int evaluate() { return ++evaluated; }

void levels(hashmere::store &store) {
    hashmere::log log(store, "levels", hashmere::log_options().keep().level(level::trace));
    CHECK(log.level() == level::trace && log.enabled(level::trace) && !log.enabled(level::off));
    // Not compiled: the log would want it.
    HASHMERE_LOG(log, debug) << evaluate();
    CHECK(!HASHMERE_LOGF(log, trace, "{}", evaluate()) && evaluated == 0);
    if (evaluated == 0)
        HASHMERE_LOG(log, info) << "by macro " << evaluate();
    else
        CHECK(false);
    CHECK(HASHMERE_LOGF(log, warn, "by macro {}", evaluate()) && evaluated == 2);
    CHECK(HM_INFO(log.c(), "of C %d", 3) == HM_OK && HM_DEBUG(log.c(), "%d", evaluate()) == HM_SKIPPED);
    // Compiled, and not wanted.
    log.level(level::warn);
    HASHMERE_LOG(log, info) << evaluate();
    CHECK(!HASHMERE_LOGF(log, info, "{}", evaluate()) && !log.info("{}", 1) && !log.line(level::info, "x") && evaluated == 2);
    log.info() << "not written";
    log.error() << "written";
    CHECK(drained(log) == texts{"by macro 1", "by macro 2", "of C 3", "written"});
    log.level(level::off);
    CHECK(!log.error("{}", 1) && log.level() == level::off);
    CHECK(fails(HM_E_ARGUMENT, [&] { log.level(static_cast<level>(9)); }));
    CHECK(fails(HM_E_ARGUMENT, [&] { log.line(level::off, "x"); }));
}

void errors(hashmere::store &store) {
    CHECK(hashmere::log::open(store, "none", hashmere::log_options().existing()).code() == HM_E_LOG_NOT_FOUND);
    CHECK(fails(HM_E_LOG_NOT_FOUND, [&] { hashmere::log log(store, "none", hashmere::log_options().existing()); }));
    CHECK(fails(HM_E_LOG_BAD_OPTION, [&] { hashmere::log log(store, "none", hashmere::log_options().rings(5000)); }));
    auto small = hashmere::log_options().ring_bytes(4096).keep().refuse_long();
    hashmere::log log(store, "errors", small.block(5ms));
    auto calls = log.expected();
    CHECK(calls.line(level::info, std::string(2000, 'x')).code() == HM_E_LOG_TOO_LONG);
    int yes = 0;
    while (auto put = calls.info("{}", std::string(500, 'x'))) yes += *put;
    CHECK(yes >= 5 && yes < 8 && calls.info("{}", std::string(500, 'x')).why().pid == 0);
    CHECK(fails(HM_E_LOG_FULL, [&] { log.info("{}", std::string(500, 'x')); }));
    CHECK(fails(HM_E_LOG_FULL, [&] { log.info() << std::string(500, 'x'); }));
    calls.info() << std::string(500, 'x'); // this failure is not reported
    hashmere::log drops(store, "errors", small.drop()), overwrites(store, "errors", small.overwrite());
    int kept = 0;
    while (drops.info("{}", std::string(500, 'x'))) kept++;
    CHECK(kept == yes); // each of the three has a ring of its own
    for (int i = 0; i < 10; i++) CHECK(overwrites.info("{}", std::string(500, 'x')));
    CHECK(log.stats().rings_used >= 1 && log.stats().ring_bytes == 4096);
    CHECK(fails(HM_E_ARGUMENT, [&] { log.drain(hashmere::output::file("")); }));
    CHECK(fails(HM_E_ARGUMENT, [&] { log.drain(hashmere::output::descriptor(-1)); }));
    CHECK(calls.drain(hashmere::output::descriptor(1000)).code() == HM_E_LOG_OUTPUT);
    CHECK(hashmere::log::remove(store, "errors"));
    CHECK(fails(HM_E_LOG_REMOVED, [&] { log.line(level::info, std::string(1000, 'x')); }));
    hashmere::log moved(std::move(log));
    CHECK(!log.enabled(level::error)); // NOLINT: what was moved away wants nothing
    CHECK(fails(HM_E_ARGUMENT, [&] { log.line(level::info, "x"); }));
    log = std::move(moved);
}

void records(hashmere::store &store) {
    hashmere::log log(store, "records", hashmere::log_options().keep());
    const std::string path = "/index";
    CHECK(log.line(level::warn, "slow", {{"path", path}, {"ms", -7}, {"n", 8u}, {"part", 0.5}, {"ok", true}, {"by", "x"}}));
    bool seen = false;
    auto act = [&](const hashmere::log_line &line) {
        const auto now = std::chrono::system_clock::now();
        CHECK(line.level() == level::warn && line.fields() == 6 && line.key(1) == "ms" && line.lost() == 0);
        CHECK(std::get<hashmere::bytes>(line.value(0)) == path && std::get<std::int64_t>(line.value(1)) == -7);
        CHECK(std::get<std::uint64_t>(line.value(2)) == 8 && std::get<double>(line.value(3)) == 0.5);
        CHECK(std::get<bool>(line.value(4)) && std::get<hashmere::bytes>(line.value(5)) == "x");
        CHECK(line.time() <= now && now - line.time() < 60s && line.thread() == 1 && line.c().field_count == 6);
        seen = true;
        throw point{7, 8};
    };
    // What the function throws comes out of `stop`.
    auto drainer = log.drain(hashmere::output::callback(act));
    bool thrown = false;
    try {
        drainer.stop();
    } catch (const point &p) {
        thrown = p.x == 7;
    }
    CHECK(seen && thrown);

    // The line is there for followers; JSON of what is important.
    auto follower = log.follow(1);
    CHECK(follower.next()->text() == "slow" && !follower.next(2ms) && follower.missed_bytes() == 0);
    const std::string file = std::string(std::getenv("HASHMERE_DIR")) + "/cpp-log.lines";
    {
        auto important = log.drain(hashmere::output::file(file).json().only(level::warn).rotate(1 << 20, 2));
        CHECK(fails(HM_E_LOG_TAKEN, [&] { log.drain(); }));
        log.info("not written");
        log.line(level::error, "a", {{"b", 1}});
        CHECK(log.flush(30s));
        CHECK(follower.next(30s)->text() == "not written" && follower.next(30s)->text() == "a");
    } // goes by itself
    std::ifstream in(file);
    std::string line, more;
    CHECK(std::getline(in, line) && !std::getline(in, more));
    CHECK(line.find(R"("level":"error")") != line.npos && line.find(R"("text":"a","fields":{"b":1}})") != line.npos);
    CHECK(std::remove(file.c_str()) == 0);
}

bool is_readable(int fd, int ms) {
    pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, ms) == 1 && (one.revents & POLLIN) != 0;
}

/// Draining and following in an event loop; what logs and rings there are; what a thread that has ended had dropped last.
void loops(hashmere::store &store) {
    hashmere::log log(store, "loops", hashmere::log_options().keep().drop().ring_bytes(4096));
    const auto names = hashmere::log::list(store);
    CHECK(std::count(names.begin(), names.end(), "loops") == 1 && log.rings().empty());
    std::vector<std::string> came;
    std::uint32_t lost = 0;
    auto manual = log.drain_manual(hashmere::output::callback([&](const hashmere::log_line &line) {
        lost += line.lost();
        if (!line.is_note()) came.emplace_back(line.text());
        if (line.text() == "bad") throw std::runtime_error("bad line");
    }));
    auto follower = log.follow();
    const int in = manual.ready_fd(), out = follower.ready_fd();
    CHECK(!is_readable(in, 10) && !is_readable(out, 10) && fails(HM_E_LOG_TAKEN, [&] { log.drain_manual(); }));
    log.info("one");
    CHECK(is_readable(in, 30000));
    while (came.empty()) manual.poll();
    CHECK(came[0] == "one" && is_readable(out, 30000) && follower.next()->text() == "one" && !follower.next());
    CHECK(!is_readable(in, 10) && !is_readable(out, 10));
    log.info("bad");
    manual.wait(30s);
    bool thrown = false;
    try {
        while (came.size() < 2) manual.poll();
    } catch (const std::runtime_error &) {
        thrown = true;
    }
    CHECK(thrown && log.rings().size() == 1 && log.rings()[0].is_owned && log.rings()[0].thread == 1);
    std::uint32_t dropped = 0;
    std::thread([&] {
        for (int i = 0; i < 100; i++) dropped += !log.line(level::info, std::string(200, 'x'));
    }).join();
    CHECK(manual.finish() + dropped == 100 && lost == dropped && came.size() == 102 - dropped);
    hashmere::log::remove(store, "loops");
}

/// Children die, one as a writer, one as the drainer; every line is in the file once.
void deaths(hashmere::store &store) {
    constexpr int lines = 2000;
    const std::string file = std::string(std::getenv("HASHMERE_DIR")) + "/cpp-log.lines";
    hashmere::log log(store, "deaths", hashmere::log_options().keep());
    const pid_t first = fork();
    if (first == 0) {
        auto drainer = log.drain(hashmere::output::file(file));
        for (;;) pause();
    }
    const pid_t writer = fork();
    if (writer == 0) {
        for (int i = 0; i < lines; i++) log.info("line {}", i);
        kill(getpid(), SIGKILL);
    }
    auto reap = [](pid_t pid) {
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    };
    reap(writer);
    while (log.stats().lines == 0) std::this_thread::sleep_for(1ms);
    kill(first, SIGKILL);
    reap(first);
    auto second = log.drain(hashmere::output::file(file).standby());
    while (!second.is_active()) std::this_thread::sleep_for(1ms);
    second.stop();
    std::ifstream in(file);
    std::string line;
    for (int i = 0; i < lines; i++) {
        CHECK(std::getline(in, line));
        const auto wanted = ": line " + std::to_string(i);
        CHECK(line.size() > wanted.size() && line.compare(line.size() - wanted.size(), wanted.size(), wanted) == 0);
    }
    CHECK(!std::getline(in, line) && std::remove(file.c_str()) == 0);
}

} // namespace

int main() {
    auto store = new_store("cpp-log");
    deaths(store);
    formats(store);
    levels(store);
    errors(store);
    records(store);
    loops(store);
}
