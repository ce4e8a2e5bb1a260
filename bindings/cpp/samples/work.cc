// Jobs are handed out to worker processes; one of them is killed, and what it was working on is done by another.
#include <array>
#include <csignal>
#include <hashmere/queue.hpp>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono_literals;

constexpr std::uint64_t jobs = 1000, elements = 64;
constexpr std::uint64_t no_more = UINT64_MAX; // a job that says that there are no more

struct job {
    std::uint64_t number, square;
};

[[noreturn]] void fail(const char *what) {
    std::cerr << what << '\n';
    std::exit(1);
}

// What each process has for itself.
struct office {
    hashmere::pool pool;
    hashmere::queue todo = pool.queue("todo"), done = pool.queue("done");
    hashmere::endpoint endpoint = pool.endpoint();

    explicit office(const hashmere::store &store) : pool(store, "jobs", hashmere::pool_options(elements, sizeof(job))) {}

    // Puts a job into `todo`, if there is an element for it.
    bool put(std::uint64_t number) {
        auto element = endpoint.pop(pool.free());
        if (!element) return false;
        element->as<job>() = {number, 0};
        return element->push(todo);
    }
};

void work(office &mine, int tell) {
    for (;;) {
        auto element = mine.endpoint.pop(mine.todo, 30s);
        if (!element) fail("there is nothing to do");
        while (tell >= 0) { // says that it has a job, and waits to be killed
            if (write(tell, "!", 1) != 1) fail("the parent does not listen");
            pause();
        }
        auto &[number, square] = element->as<job>();
        if (number == no_more) {
            element->push(mine.pool.free());
            return;
        }
        square = number * number;
        element->push(mine.done);
    }
}

pid_t start(const hashmere::store &store, int tell = -1) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    {
        office mine(store);
        work(mine, tell);
    }
    _exit(0);
}

// Endpoints out the jobs from `next` on and takes the results of all. As many as the pool has elements are under way at a time.
void hand_out(office &mine, std::uint64_t next) {
    std::array<bool, jobs> was_done = {};
    for (std::uint64_t i = 0; i < jobs; i++) {
        while (next < jobs && mine.put(next)) next++;
        // A pop that waits recovers the elements of crashed processes: each goes back to where it came from.
        auto element = mine.endpoint.pop(mine.done, 30s);
        if (!element) fail("a job is lost");
        const auto [number, square] = element->as<job>();
        if (number >= jobs || square != number * number || std::exchange(was_done[number], true))
            fail("a job was done twice, or wrongly");
        element->push(mine.pool.free());
    }
}

int main() {
    hashmere::store::remove("sample-work");
    hashmere::store store("sample-work");

    // The first worker gets the first job, and is killed with it.
    int ends[2], status = 0;
    if (pipe(ends) != 0) fail("no pipe");
    const pid_t victim = start(store, ends[1]);
    office mine(store);
    mine.put(0);
    char said = 0;
    if (read(ends[0], &said, 1) != 1) fail("the worker has no job");
    kill(victim, SIGKILL);
    if (waitpid(victim, &status, 0) != victim || !WIFSIGNALED(status) || !mine.todo.empty()) fail("the worker was not killed");
    std::cout << "a worker was killed with a job in its endpoint" << std::endl;

    const pid_t workers[] = {start(store), start(store)};
    hand_out(mine, 1);
    for (std::size_t i = 0; i < std::size(workers); i++)
        if (!mine.put(no_more)) fail("an element is lost");
    for (const pid_t worker : workers)
        if (waitpid(worker, &status, 0) != worker || status != 0) fail("a worker has failed");
    if (mine.pool.stats().recovered != 1 || mine.pool.free().size() != elements) fail("not every element is back");
    std::cout << jobs << " jobs done by the others, none lost, none twice\n";
    hashmere::store::remove("sample-work");
}
