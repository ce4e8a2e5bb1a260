// Three processes log into one stream, which a fourth writes to a file.
#include <algorithm>
#include <array>
#include <fstream>
#include <hashmere/log.hpp>
#include <iostream>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

constexpr int lines = 100;
using pids = std::array<pid_t, 3>;

[[noreturn]] void fail(const std::string &what) {
    std::cerr << what << '\n';
    std::exit(1);
}

void work(hashmere::log &log) {
    for (int i = 0; i < lines; i++) {
        log.info("line {}", i);
        if (i % 10 == 0) log.debug() << "line " << i << ", with all the details";
    }
}

// Reads lines such as `2026-11-22T01:12:56.123456Z INFO  log[4711] 3: line 7`. Returns how many are those of debug.
int look(const std::string &path, const pids &workers) {
    std::ifstream file(path);
    std::set<std::pair<pid_t, int>> seen;
    std::string line, last;
    int debug = 0;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string time, level, who, thread, word;
        int number = -1;
        if (!(words >> time >> level >> who >> thread >> word >> number)) fail("not a line of the log: " + line);
        const pid_t pid = std::stoi(who.substr(who.rfind('[') + 1));
        if (time < std::exchange(last, time)) fail("out of the order of time: " + line);
        if (level == "DEBUG") {
            debug++;
        } else if (level != "INFO" || std::count(workers.begin(), workers.end(), pid) != 1 || number < 0 || number >= lines ||
                   !seen.emplace(pid, number).second) {
            fail("this was not logged, or it is there twice: " + line);
        }
    }
    if (seen.size() != workers.size() * lines) fail("lines are lost");
    return debug;
}

int main() {
    hashmere::store::remove("sample-log");
    hashmere::store store("sample-log");
    hashmere::log log(store, "log", hashmere::log_options().level(hashmere::level::info));
    const auto path = "/tmp/hashmere-sample-log-" + std::to_string(getpid()) + ".log";
    auto drainer = log.drain(hashmere::output::file(path)); // without one, lines go to standard output

    pids workers;
    for (auto &worker : workers) {
        worker = fork();
        if (worker == 0) { // the child goes on with the open log
            work(log);
            _exit(0);
        }
    }
    for (const pid_t worker : workers) {
        int status = 0;
        if (waitpid(worker, &status, 0) != worker || status != 0) fail("a worker has failed");
    }
    drainer.stop(); // what was not written yet is written now

    const int debug = look(path, workers);
    std::remove(path.c_str());
    std::cout << workers.size() * lines << " lines of " << workers.size() << " processes, none lost, none twice\n";
    std::cout << "in the order of time, with levels and process ids\n";
    std::cout << "the debug lines were not wanted: " << debug << '\n';
    hashmere::store::remove("sample-log");
}
