"""One computation at a time over all processes, for ever or for a while; the death of who computes lets the next begin. Catches
stampedes, waiters that hang, and results that differ by who computed them."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

import hashmere

fork = multiprocessing.get_context("fork")


def test_results_are_kept_and_forgotten(store):
    calls = []

    @hashmere.memoize(store)
    def add(a, b=1, *, c=None):
        """Adds."""
        calls.append((a, b))
        return {"sum": a + b, "pair": [a, b]}

    assert add.__name__ == "add" and add.__doc__ == "Adds."
    assert add(1, 2) == add(1, 2) == {"sum": 3, "pair": [1, 2]} and len(calls) == 1
    add(1), add(1, c=(1, "x", None)), add(1.5)
    assert len(calls) == 4
    assert add.forget(1, 2) and not add.forget(1, 2)
    add(1, 2)
    assert len(calls) == 5
    add.refresh(1, 2)
    assert len(calls) == 6 and add.cache_key(1, 2) in store


def test_time_to_live(store, in_time):
    def twice(ttl):
        """The function, and what it said at once; what was kept before has another key."""
        calls = []

        @hashmere.memoize(store, ttl=ttl, key=lambda: f"ttl {ttl}")
        def now():
            calls.append(1)
            return len(calls)

        return now, (now(), now())

    (now, said), ttl = in_time(twice)
    assert said == (1, 1)
    time.sleep(ttl + 0.03)
    assert now() == 2


def test_keys_coders_and_what_is_no_plain_value(store):
    @hashmere.memoize(store, key=lambda user: f"user:{user['id']}", coder=hashmere.PICKLE)
    def load(user):
        return {"id": user["id"], "tags": {1, 2}}

    assert load({"id": 7}) == load({"id": 7}) == {"id": 7, "tags": {1, 2}} and "user:7" in store

    @hashmere.memoize(store)
    def f(x):
        return (x, x)

    assert f(1) == [1, 1], "the first result has been through the coder too"
    with pytest.raises(TypeError, match="key function"):
        f([1])
    with pytest.raises(TypeError, match="coroutine"):

        @hashmere.memoize(store)
        async def g():
            pass


def test_none_is_a_result_and_an_exception_is_not(store):
    calls = []

    @hashmere.memoize(store)
    def f(x):
        calls.append(x)
        if x:
            raise ZeroDivisionError("on purpose")

    assert f(0) is None and f(0) is None and calls == [0]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            f(1)
    assert calls == [0, 1, 1]


def slow(store, seconds):
    def f(x):
        store.incr("computed", initial=1)
        time.sleep(seconds)
        return os.getpid()

    f.__qualname__ = "slow"
    return hashmere.memoize(store)(f)


def call_slow(store, results, seconds=0.3):
    results.put(slow(store, seconds)(1))


def test_one_of_many_processes_computes(store):
    results = fork.Queue()
    children = [fork.Process(target=call_slow, args=(store, results)) for _ in range(6)]
    for child in children:
        child.start()
    answers = [results.get(timeout=120) for _ in children]
    for child in children:
        child.join(120)
    assert len(set(answers)) == 1 and store["computed"] == b"1"


def test_one_of_many_threads_computes(store):
    f, answers = slow(store, 0.2), []
    threads = [threading.Thread(target=lambda: answers.append(f(1))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == 6 and store["computed"] == b"1"


def test_the_death_of_who_computes_lets_the_next_begin(store):
    results = fork.Queue()
    child = fork.Process(target=call_slow, args=(store, results, 600))
    child.start()
    while "computed" not in store:
        time.sleep(0.005)
    start = time.monotonic()
    threading.Timer(0.1, os.kill, (child.pid, signal.SIGKILL)).start()
    f = slow(store, 0)
    f._wait = 600
    assert f(1) == os.getpid()
    assert 0.05 < time.monotonic() - start < 300 and store["computed"] == b"2"
    child.join(120)


def test_who_takes_too_long_is_not_waited_for(store):
    results = fork.Queue()
    child = fork.Process(target=call_slow, args=(store, results, 600))
    child.start()
    while "computed" not in store:
        time.sleep(0.005)
    os.kill(child.pid, signal.SIGSTOP)
    f = slow(store, 0)
    f._wait = 0.1
    assert f(1) == os.getpid()
    child.kill()
    child.join(120)


def test_a_fork_within_a_computation_does_not_hold_it(store):
    lock = store.key_lock("k")
    assert lock.acquire()
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    other = store.key_lock("k")
    assert not other.acquire()
    lock.release()
    assert other.acquire()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_full_store_only_keeps_nothing(folder):
    store = hashmere.open("full", max_bytes=4 << 20)

    @hashmere.memoize(store)
    def f(x):
        return "x" * 3_000_000 + str(x)

    assert f(1).endswith("x1") and f(2).endswith("x2") and f(2).endswith("x2")
    store.close()
