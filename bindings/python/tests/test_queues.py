"""Queues between processes, and waiting for keys."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

import hashmere


def pool_of(store):
    return hashmere.Pool(store, "jobs", elements=16, bytes=32)


def test_elements(store):
    with pytest.raises(hashmere.QueueNotFound):
        hashmere.Pool(store, "jobs")
    pool = pool_of(store)
    todo = pool.queue("todo")
    with pool.hand() as hand:
        assert hand.pull(todo) is None and hand.pull(todo, timeout=0.01) is None
        job = hand.pull(pool.free)
        assert (job.number, len(job)) == (0, 32)
        job.write(0, b"hello")
        assert job.push(todo) and (len(pool.free), len(todo)) == (15, 1)
        with pytest.raises(hashmere.Closed):
            job.push(todo)
        job = hand.pull(todo, timeout=5)
        assert job.read(0, 5) == b"hello" and job.read()[5:] == job.read(5)
        for wrong in (lambda: job.read(30, 3), lambda: job.write(30, b"abc"), lambda: job.read(33)):
            with pytest.raises(IndexError):
                wrong()
        job.give_back()
        bounded = pool.queue("bounded", kind="mpsc", bound=1)
        with pytest.raises(hashmere.QueueExists):
            pool.queue("todo", kind="spsc")
        with pytest.raises(ValueError):
            pool.queue("x", kind="other")
        first, second = hand.pull(pool.free), hand.pull(pool.free)
        assert first.push(bounded) and not second.push(bounded) and second.push(pool.free)
        assert hand.pull(todo) and pool.stats()["held"] == 1
    assert pool.stats()["held"] == 0 and pool.stats()["hands"] == 0
    with pytest.raises(ValueError):
        hashmere.Pool(store, "jobs", elements=3)
    assert hashmere.Pool.remove(store, "jobs") and not hashmere.Pool.remove(store, "jobs")


def work(path, sleeps):
    store = hashmere.open(path)
    pool = pool_of(store)
    todo, done, hand = pool.queue("todo"), pool.queue("done"), pool.hand()
    while True:
        job = hand.pull(todo, timeout=20)
        if job is None:
            return
        if sleeps:
            time.sleep(1000)  # holds it until it is killed
        number = int(job.read(0, 4))
        job.write(0, b"%04d%08d" % (number, number * number))
        job.push(done)


def test_work_with_a_killed_worker(store):
    pool = pool_of(store)
    todo, done, hand = pool.queue("todo"), pool.queue("done"), pool.hand()
    spawn = multiprocessing.get_context("spawn")
    doomed = spawn.Process(target=work, args=(store.path, True))
    doomed.start()
    workers = []
    try:
        for number in range(10):
            job = hand.pull(pool.free)
            job.write(0, b"%04d" % number)
            job.push(todo)
        while pool.stats()["held"] == 0:
            time.sleep(0.01)
        doomed.kill()
        doomed.join()
        workers = [spawn.Process(target=work, args=(store.path, False)) for _ in range(2)]
        for worker in workers:
            worker.start()
        found = []
        for _ in range(10):
            job = hand.pull(done, timeout=30)
            found.append(job.read(0, 12))
            job.push(pool.free)
        assert sorted(found) == [b"%04d%08d" % (n, n * n) for n in range(10)]
    finally:
        for worker in [doomed, *workers]:
            worker.kill()
            worker.join()


def test_what_was_opened_before_a_fork_is_refused(store):
    pool = pool_of(store)
    hand = pool.hand()
    child = os.fork()
    if child == 0:
        try:
            hand.pull(pool.free)
        except hashmere.QueueForked:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0 and hand.pull(pool.free)


def test_others_run_and_signals_are_heard_during_a_wait(store):
    pool = pool_of(store)
    todo, hand = pool.queue("todo"), pool.hand()

    def push_later():
        time.sleep(0.05)
        other = pool.hand()
        job = other.pull(pool.free)
        job.write(0, "x")
        job.push(todo)
        other.close()

    thread = threading.Thread(target=push_later)
    thread.start()
    assert hand.pull(todo, timeout=20).read(0, 1) == b"x"
    thread.join()

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Alarm):
            hand.pull(todo, timeout=60)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_waiting_for_a_key(store):
    assert store.wait("a", None, timeout=0.01) is None
    thread = threading.Thread(target=lambda: (time.sleep(0.05), store.set("a", "1")))
    thread.start()
    version = store.wait("a", None, timeout=20)
    thread.join()
    assert version == store.record("a").version
    del store["a"]
    assert store.wait("a", version, timeout=1) == 0
    with pytest.raises(ValueError):
        store.wait("a", None, timeout=-1)
