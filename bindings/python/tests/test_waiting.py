"""Waiting for several keys, a mutex, a value computed once, a barrier: across threads, processes, and deaths."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

import hashmere

SPAWN = multiprocessing.get_context("spawn")


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_waiting_for_several_keys(store):
    version = store.set("b", "1")
    keys = [("a", None), (b"b", version)]
    timed_out = store.wait_any(keys, timeout=0.01)
    assert timed_out.timed_out and not timed_out and timed_out.index is None
    thread = threading.Thread(target=lambda: (time.sleep(0.05), store.set("b", "2")))
    thread.start()
    changed = store.wait_any(keys, timeout=120)
    thread.join()
    assert changed.changed and (changed.index, changed.version) == (1, store.version("b"))
    store["a"] = "1"
    assert (store.wait_any(keys).index, store.wait_any(keys).version) == (0, store.version("a"))
    del store["b"]
    assert store.wait_any([("b", changed.version)]).removed
    for wrong in ([1], [("a",)], [(1, None)], ["ab"], None):
        with pytest.raises((TypeError, ValueError)):
            store.wait_any(wrong, timeout=0)
    with pytest.raises(hashmere.InvalidState):
        store.wait_any([], timeout=0)


def test_a_mutex_is_held_once(store):
    mutex, other = hashmere.Mutex(store, "lock"), hashmere.Mutex(store, "lock")
    assert mutex.acquire() and mutex.held_here and not other.held_here
    assert not other.acquire(0) and not mutex.acquire(0)
    with pytest.raises(RuntimeError):
        other.release()
    mutex.release()
    with pytest.raises(RuntimeError):
        mutex.release()
    with other as abandoned:
        assert not abandoned and not mutex.acquire(0)
    assert "lock" not in store and mutex.acquire(0)
    mutex.release()


def test_a_mutex_taken_twice_by_one_thread_is_refused(store):
    mutex = hashmere.Mutex(store, "lock")
    with mutex:
        for wait in (mutex.acquire, lambda: hashmere.Mutex(store, "lock").acquire(1), mutex.__enter__):
            with pytest.raises(hashmere.QueueReentered, match='the mutex "lock" was locked by this thread'):
                wait()
    with mutex:
        pass


def test_a_clear_releases_no_mutex_and_tells_who_waits_at_a_barrier(store):
    def is_free():
        got = []
        thread = threading.Thread(target=lambda: got.append(hashmere.Mutex(store, "lock").acquire(0.01)))
        thread.start()
        thread.join()
        return got[0]

    barrier = hashmere.Barrier(store, "start", 2)
    with hashmere.Mutex(store, "lock") as abandoned:
        assert not abandoned
        store.clear()
        assert not is_free()
    assert is_free()
    with pytest.raises(hashmere.QueueBroken, match="cleared"):
        barrier.wait()
    barrier.close()


def test_a_mutex_between_threads(store):
    mutex, inside, most = hashmere.Mutex(store, "lock"), [], []

    def work():
        for _ in range(50):
            with mutex:
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1} and len(most) == 200


def hold(store, ready):
    mutex = hashmere.Mutex(store, "lock")
    mutex.acquire()
    ready.set()
    time.sleep(1000)


def test_a_mutex_of_a_crashed_owner_is_free(store):
    ready = SPAWN.Event()
    holder = SPAWN.Process(target=hold, args=(store, ready), daemon=True)
    holder.start()
    assert ready.wait(120)
    mutex = hashmere.Mutex(store, "lock")
    assert not mutex.acquire(0.02)
    holder.kill()
    holder.join()
    with mutex as abandoned:
        assert abandoned


def test_a_readers_writer_lock(store):
    lock = hashmere.RwLock(store, "lock")
    with lock.read() as guard:
        assert not guard.was_abandoned and lock.readers == [os.getpid()] and lock.writer is None
        with pytest.raises(hashmere.QueueReentered, match='the readers-writer lock "lock" was locked by this thread'):
            lock.write(1)
        store.clear()
        got = []

        def contend():
            with lock.read(0.01):
                got.append("read")
            got.append(lock.write(0.01))

        thread = threading.Thread(target=contend)
        thread.start()
        thread.join()
        assert got == ["read", None]
    with pytest.raises(RuntimeError):
        guard.release()
    with lock.write(0):
        assert lock.writer == os.getpid() and lock.readers == []
        child = os.fork()
        if child == 0:
            os._exit(0 if lock.read(0.01) is None else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert "lock" not in store


def write_and_wait(store, ready):
    held = [hashmere.RwLock(store, "lock").write(), hashmere.Semaphore(store, "two", 2).acquire()]
    ready.set()
    time.sleep(1000)
    del held


def test_a_writer_and_a_permit_of_a_crashed_process(store):
    ready = SPAWN.Event()
    holder = SPAWN.Process(target=write_and_wait, args=(store, ready), daemon=True)
    holder.start()
    assert ready.wait(120)
    lock, semaphore = hashmere.RwLock(store, "lock"), hashmere.Semaphore(store, "two", 2)
    assert lock.writer == holder.pid and semaphore.holders == [holder.pid] and lock.read(0.02) is None
    holder.kill()
    holder.join()
    for take in (lock.read, lock.write, semaphore.acquire):
        with take() as guard:
            assert guard.was_abandoned
    for take in (lock.read, lock.write, semaphore.acquire):
        with take() as guard:
            assert not guard.was_abandoned


def test_a_semaphore(store):
    semaphore = hashmere.Semaphore(store, "two", 2)
    with semaphore.acquire(), semaphore.acquire(0):
        assert semaphore.holders == [os.getpid()] * 2
        with pytest.raises(hashmere.QueueReentered, match="holds every permit"):
            semaphore.acquire(1)
        with pytest.raises(hashmere.QueueBroken, match="another number of permits"):
            hashmere.Semaphore(store, "two", 3).acquire(1)
        got = []
        thread = threading.Thread(target=lambda: got.append(semaphore.acquire(0.01)))
        thread.start()
        thread.join()
        assert got == [None]
    assert "two" not in store and semaphore.holders == []
    with pytest.raises(hashmere.QueueBadOption):
        hashmere.Semaphore(store, "two", 0)


def count_up(store, steps):
    atomic = hashmere.Atomics(store, "set").atomic("count")
    for _ in range(steps):
        atomic.fetch_add()


def test_shared_atomics(store):
    atomic = hashmere.Atomics(store, "set").atomic("a")
    same = hashmere.Atomics(store, "set").atomic("a")
    assert atomic.load() == 0 and atomic.fetch_add(5) == 0 and same.fetch_add(-6) == 5 and same.load() == 2**64 - 1
    assert atomic.fetch_add(2**64 - 1) == 2**64 - 1 and atomic.swap(4) == 2**64 - 2
    assert atomic.fetch_or(3) == 4 and atomic.fetch_and(5) == 7 and atomic.fetch_xor(4) == 5 and atomic.swap(9) == 1
    assert atomic.compare_exchange(8, 1) == 9 and atomic.compare_exchange(9, 2) == 9 and same.load() == 2
    assert atomic.wait(2, 0.002) is None and atomic.wait(1, timeout=0) == 2
    for call in (atomic.store, atomic.swap, atomic.fetch_or, atomic.wait):
        with pytest.raises(OverflowError, match="must be from 0 to"):
            call(-1)
        with pytest.raises(TypeError, match="must be an int"):
            call("1")
    with pytest.raises(OverflowError):
        atomic.fetch_add(2**64)
    for name in ("", "x" * 57, "a\0b"):
        with pytest.raises(hashmere.QueueBadOption, match="1 to 56 bytes"):
            hashmere.Atomics(store, "set").atomic(name)
    with pytest.raises(hashmere.QueueBadOption):
        hashmere.Atomics(store, "")
    waker = threading.Thread(target=lambda: same.store(7))
    waker.start()
    assert atomic.wait(2) == 7
    waker.join()
    store.clear()
    assert same.load() == 7, "clear leaves it"
    with hashmere.open(store.path, read_only=True) as reader, pytest.raises(hashmere.ReadOnly):
        hashmere.Atomics(reader, "set")

    processes = [SPAWN.Process(target=count_up, args=(store, 2000)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert hashmere.Atomics(store, "set").atomic("count").load() == 4000

    child = os.fork()
    if child == 0:
        failed = 1
        try:
            with pytest.raises(hashmere.QueueForked):
                atomic.load()
            hashmere.Atomics(store, "set").atomic("a").store(8)
            failed = 0
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0 and atomic.load() == 8
    assert hashmere.Atomics.remove(store, "set") and not hashmere.Atomics.remove(store, "set")
    with pytest.raises(hashmere.QueueRemoved):
        atomic.wait(8, 60)


def test_a_forked_child_has_not_what_its_parent_holds(store):
    mutex, barrier = hashmere.Mutex(store, "lock"), hashmere.Barrier(store, "start", 2)
    mutex.acquire()
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            with pytest.raises(RuntimeError):
                mutex.release()
            with pytest.raises(hashmere.InvalidState):
                barrier.wait(0)
            # Going away here must not let go of them.
            del mutex, barrier
            failed = 0
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0
    assert not hashmere.Mutex(store, "lock").acquire(0)
    mutex.release()
    with hashmere.Barrier(store, "start", 2) as other:
        assert other.wait(0) is None and barrier.wait(120) == (1, 0)
    barrier.close()


def test_once(store):
    made = []

    def compute():
        made.append(1)
        time.sleep(0.05)
        return "value"

    found = []
    threads = [threading.Thread(target=lambda: found.append(store.once("key", compute, timeout=120))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [b"value"] * 4 and made == [1]
    assert store.once("key", lambda: 1 / 0) == b"value"
    with pytest.raises(ZeroDivisionError):
        store.once("other", lambda: 1 / 0)
    with pytest.raises(TypeError):
        store.once("other", lambda: 7)
    assert store.once("other", lambda: b"now") == b"now"


def compute_for_ever(store, ready):
    store.once("key", lambda: (ready.set(), time.sleep(1000)))


def test_once_within_once_is_refused(store):
    def compute():
        assert store.once_holder("key") == os.getpid()
        with pytest.raises(hashmere.QueueReentered, match="`once` of \"key\""):
            store.once("key", compute)
        return b"value"

    assert store.once("key", compute) == b"value" and store.once_holder("key") is None


def test_who_holds_a_mutex(store):
    mutex = hashmere.Mutex(store, "lock")
    assert mutex.holder is None
    with mutex:
        assert hashmere.Mutex(store, "lock").holder == os.getpid()
        assert not hashmere.Mutex(store, "lock").acquire(0)
        store.clear()
        assert mutex.holder == os.getpid()
        with hashmere.open(store.path) as other:
            assert hashmere.Mutex(other, "lock").holder == 0, "held, but its name went with the key"
    assert mutex.holder is None and mutex.acquire(1e30)
    mutex.release()


def test_once_after_a_death(store):
    ready = SPAWN.Event()
    doomed = SPAWN.Process(target=compute_for_ever, args=(store, ready), daemon=True)
    doomed.start()
    assert ready.wait(120)
    assert store.once("key", lambda: "mine", timeout=0.02) is None
    doomed.kill()
    doomed.join()
    assert store.once("key", lambda: "mine", timeout=120) == b"mine"


def take_part(store, rounds, results):
    with hashmere.Barrier(store, "start", 3) as barrier:
        for _ in range(rounds):
            results.put(barrier.wait(120))


def test_a_barrier_and_a_death(store):
    results = SPAWN.Queue()
    others = [SPAWN.Process(target=take_part, args=(store, rounds, results), daemon=True) for rounds in (2, 1000)]
    barrier = hashmere.Barrier(store, "start", 3)
    assert barrier.wait(0.02) is None
    for other in others:
        other.start()
    assert barrier.wait(120) == (1, 0) and barrier.wait(120) == (2, 0)
    assert sorted(results.get(timeout=120) for _ in range(4)) == [(1, 0), (1, 0), (2, 0), (2, 0)]
    # One has left after two rounds; the other is killed while it waits for us in the third, or before.
    others[0].join()
    others[1].kill()
    others[1].join()
    assert barrier.wait(120)[0] == 3 and barrier.wait(120) == (4, 2)
    with pytest.raises(hashmere.QueueBroken):
        hashmere.Barrier(store, "start", 4)
    barrier.close()
    with pytest.raises(hashmere.InvalidState):
        barrier.wait(0)


def test_signals_are_heard(store):
    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    other = hashmere.Mutex(store, "held")
    thread = threading.Thread(target=other.acquire)
    thread.start()
    thread.join()
    waits = [
        lambda: store.wait("absent", None),
        lambda: store.wait_any([("absent", None)]),
        lambda: hashmere.Mutex(store, "held").acquire(),
        lambda: hashmere.Barrier(store, "start", 2).wait(),
    ]
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for wait in waits:
            with pytest.raises(Alarm):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    other.release()


def test_bad_arguments(folder):
    with hashmere.open("cache", cache=True, max_bytes=8 << 20) as cache:
        for make in (lambda: hashmere.Mutex(cache, "a"), lambda: hashmere.Barrier(cache, "a", 2)):
            with pytest.raises(hashmere.QueueBadOption):
                make()
    with pytest.raises(hashmere.Closed):
        hashmere.Mutex(cache, "a")
    with hashmere.open("strict") as store:
        with pytest.raises(hashmere.QueueBadOption):
            hashmere.Barrier(store, "a", 0)
        store["other"] = "something"
        with pytest.raises(hashmere.QueueBroken):
            hashmere.Mutex(store, "other").acquire(0)
        for timeout in (-1, float("nan")):
            with pytest.raises(ValueError):
                hashmere.Mutex(store, "a").acquire(timeout)
