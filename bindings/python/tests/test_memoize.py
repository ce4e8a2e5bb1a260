"""One computation at a time over all processes, forever or for a while; the death of who computes lets the next begin. Catches
stampedes, waiters that hang, and results that differ by who computed them."""

import functools
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import hashmere

fork = multiprocessing.get_context("fork")


def test_results_are_kept_and_forgotten(store):
    calls = []

    @hashmere.memoize(store, name="add")
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

    @hashmere.memoize(store, name="f")
    def f(x):
        return (x, x)

    assert f(1) == [1, 1], "the first result has been through the coder too"
    with pytest.raises(TypeError, match="key= function"):
        f([1])
    with pytest.raises(TypeError, match="coroutine"):

        @hashmere.memoize(store)
        async def g():
            pass


def test_none_is_a_result_and_an_exception_is_not(store):
    calls = []

    @hashmere.memoize(store, name="f")
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


def test_a_clear_ends_no_computation(store):
    lock = store.key_lock("k")
    assert lock.acquire()
    store.clear()
    with hashmere.open(store.path) as again:
        assert not again.key_lock("k").acquire()
        lock.release()
        assert again.key_lock("k").acquire()


def test_a_full_store_only_keeps_nothing(folder):
    store = hashmere.open("full", max_bytes=4 << 20)

    @hashmere.memoize(store, name="f")
    def f(x):
        return "x" * 3_000_000 + str(x)

    assert f(1).endswith("x1") and f(2).endswith("x2") and f(2).endswith("x2")
    store.close()


def make(n):
    def f(x):
        return x * n

    return f


def area(a, b=2, *rest, scale=1, **more):
    return a * b * scale + sum(rest) + sum(more.values())


class Shape:
    def __init__(self, name):
        self.name = name

    def size(self, x):
        return x * len(self.name)


def test_who_has_no_name_of_its_own_is_refused_without_one(store):
    nameless = {
        "a closure": make(2),
        "a lambda": lambda x: x,
        "a partial": functools.partial(area, 1),
        "a bound method": Shape("a").size,
        "a built-in method": "text".count,
        "an object": Shape("a"),
    }
    for what, f in nameless.items():
        with pytest.raises(TypeError, match="name="):
            hashmere.memoize(store)(f)
        assert hashmere.memoize(store, key=str)(f), what
    double, triple = (hashmere.memoize(store, name=f"times {n}")(make(n)) for n in (2, 3))
    assert (double(5), triple(5), double(5), triple(5)) == (10, 15, 10, 15)
    assert hashmere.memoize(store, name="one")(functools.partial(area, 1))(b=4) == 4
    # Two wrappers of one function, which has a name.
    wrappers = [functools.wraps(area)(lambda *args, n=n: n * area(*args)) for n in (2, 3)]
    first = hashmere.memoize(store)(wrappers[0])
    assert first(1) == 4 and hashmere.memoize(store)(wrappers[0])(1) == 4
    with pytest.raises(TypeError, match="another wrapper.*name="):
        hashmere.memoize(store)(wrappers[1])
    assert hashmere.memoize(store, name="three times")(wrappers[1])(1) == 6
    for wrapper in (staticmethod, classmethod):
        with pytest.raises(TypeError, match="above"):
            hashmere.memoize(store)(wrapper(make(1)))
    for name in ("", "f(1)", "f@2"):
        with pytest.raises(ValueError, match="name"):
            hashmere.memoize(store, name=name)
    for more in ({"name": "f"}, {"version": 2}):
        with pytest.raises(TypeError, match="whole key"):
            hashmere.memoize(store, key=str, **more)


def test_one_call_has_one_key_and_others_have_others(store):
    key = hashmere.memoize(store)(area).cache_key
    assert key(1) == key(a=1) == key(1, 2) == key(1, b=2) == key(b=2, a=1) == key(1, scale=1)
    assert key(1, x=1, y=2) == key(1, y=2, x=1)
    calls = [
        key(1), key(1.0), key(True), key("1"), key(b"1"), key((1,)), key(((1,),)), key(None),
        key(1, 3), key(3, 1), key(1, 2, 3), key(1, 2, (3,)), key(1, scale=3), key(1, x=3),
        key(1, x=1, y=2), key(1, **{"x=1,y": 2}),
    ]  # fmt: skip
    assert len(set(calls)) == len(calls)
    for bad in ([1], {}, object(), ([1],), float):
        with pytest.raises(TypeError, match="key="):
            key(bad)
        with pytest.raises(TypeError, match="key="):
            key(1, x=bad)
    with pytest.raises(TypeError, match="argument"):
        key()
    # A default may be anything, as long as it is not given.
    sentinel = object()

    def f(x, y=sentinel):
        return x if y is sentinel else [x, y]

    f = hashmere.memoize(store, name="f")(f)
    assert f(1) == 1 and f(1, 2) == [1, 2] and f.cache_key(1) != f.cache_key(1, None)
    # Some built-in functions have no signature.
    hypot = hashmere.memoize(store)(math.hypot)
    assert hypot(3, 4) == 5 and hypot(4, 3) == 5 and hypot.cache_key(3, 4) != hypot.cache_key(4, 3)


def test_changed_code_has_another_version(store):
    old, new, plain = (hashmere.memoize(store, name="rate", version=v)(make(n)) for v, n in ((1, 2), (2, 3), (None, 4)))
    assert (old(5), new(5), plain(5), old(5), new(5)) == (10, 15, 20, 10, 15)
    assert new.forget(5) and old.cache_key(5) in store
    assert hashmere.memoize(store, version="1")(area).cache_key(1) != hashmere.memoize(store, version=1)(area).cache_key(1)


def test_methods(store):
    class Counted:
        calls = 0

        def __init__(self, name):
            self.name = name

        @hashmere.memoize(store, key=lambda self, x: f"counted:{self.name}:{x}")
        def size(self, x):
            """How large."""
            Counted.calls += 1
            return x * len(self.name)

        @hashmere.memoize(store, name="Counted.plain")
        def plain(self, x):
            return x

        @staticmethod
        @hashmere.memoize(store, name="Counted.double")
        def double(x):
            return 2 * x

    a, bb = Counted("a"), Counted("bb")
    assert (a.size(3), bb.size(3), a.size(3), a.size(x=3)) == (3, 6, 3, 3) and Counted.calls == 2
    assert a.size.__doc__ == "How large." and a.size.cache_key(3) == "counted:a:3"
    assert a.size.forget(3) and not a.size.forget(3) and bb.size.refresh(3) == 6 and Counted.calls == 3
    with pytest.raises(TypeError, match="Counted is no plain value.*key="):
        a.plain(1)
    assert a.double(4) == Counted.double(4) == 8


SCRIPT = """
import sys, hashmere
with hashmere.open("scripts") as store:
    @hashmere.memoize(store)
    def answer():
        return sys.argv[1]
    print(answer())
"""


def test_functions_of_two_scripts_are_two(folder, tmp_path):
    def run(name, word):
        done = subprocess.run([sys.executable, str(tmp_path / name), word], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(SCRIPT)
    assert [run("one.py", "a"), run("two.py", "b"), run("one.py", "c")] == ["a", "b", "a"]
    typed = subprocess.run([sys.executable, "-c", SCRIPT, "x"], capture_output=True, text=True, timeout=300)
    assert typed.returncode != 0 and "name=" in typed.stderr
