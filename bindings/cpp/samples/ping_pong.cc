// Two processes pass one element to and fro; it carries a number that each of them checks and counts on.
#include <hashmere/queue.hpp>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono_literals;

constexpr std::uint64_t passes = 20000;

[[noreturn]] void fail(const char *what) {
    std::cerr << what << '\n';
    std::exit(1);
}

// A pool with one element of eight bytes. A child that was forked opens it for itself.
hashmere::pool ball_of(const hashmere::store &store) { return {store, "ball", hashmere::pool_options(1, 8)}; }

// Takes the ball as long as it is in play, finds in it the number that must be next, and passes on the one behind that.
void play(hashmere::pool &pool, const hashmere::queue &from, const hashmere::queue &to, std::uint64_t first) {
    auto endpoint = pool.endpoint();
    for (auto number = first; number < passes; number += 2) {
        auto ball = endpoint.pop(from, 30s);
        if (!ball) fail("the other player has gone");
        auto &carried = ball->as<std::uint64_t>();
        if (carried != number) fail("the ball carries another number");
        carried = number + 1;
        ball->push(number + 1 < passes ? to : pool.free());
    }
}

int main() {
    hashmere::store::remove("sample-ping-pong");
    hashmere::store store("sample-ping-pong");
    const pid_t partner = fork();
    if (partner == 0) {
        {
            auto pool = ball_of(store);
            play(pool, pool.queue("there"), pool.queue("back"), 0);
        }
        _exit(0);
    }

    auto pool = ball_of(store);
    const auto there = pool.queue("there"), back = pool.queue("back");
    auto endpoint = pool.endpoint();
    if (auto ball = endpoint.pop(pool.free())) {
        ball->as<std::uint64_t>() = 0;
        ball->push(there);
    }
    play(pool, back, there, 1);
    int status = 0;
    if (waitpid(partner, &status, 0) != partner || status != 0) fail("the other player has failed");
    auto ball = endpoint.pop(pool.free());
    if (!ball || ball->as<std::uint64_t>() != passes) fail("the ball was passed on too often, or too seldom");

    std::cout << "two processes passed one element " << passes << " times\n";
    std::cout << "it carried every number from 0 to " << passes - 1 << '\n';
    hashmere::store::remove("sample-ping-pong");
}
