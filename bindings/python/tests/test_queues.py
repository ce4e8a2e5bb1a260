"""Queues between processes, and waiting for keys."""

import asyncio
import gc
import multiprocessing
import os
import selectors
import signal
import threading
import time

import pytest

import hashmere
import hashmere.aio


def pool_of(store):
    return hashmere.Pool(store, "jobs", elements=16, bytes=32)


def test_elements(store):
    with pytest.raises(hashmere.QueueNotFound):
        hashmere.Pool(store, "jobs")
    pool = pool_of(store)
    todo = pool.queue("todo")
    with pool.endpoint() as endpoint:
        assert endpoint.pop(todo) is None and endpoint.pop(todo, timeout=0.01) is None
        job = endpoint.pop(pool.free)
        assert (job.index, len(job)) == (0, 32)
        job.write(0, b"hello")
        assert job.push(todo) and (len(pool.free), len(todo)) == (15, 1)
        with pytest.raises(hashmere.Closed, match="the element is not held any more: it was pushed or given back"):
            job.push(todo)
        job = endpoint.pop(todo, timeout=5)
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
        first, second = endpoint.pop(pool.free), endpoint.pop(pool.free)
        assert first.push(bounded) and not second.push(bounded) and second.push(pool.free)
        assert endpoint.pop(todo) and pool.stats()["held"] == 1
    assert pool.stats()["held"] == 0 and pool.stats()["endpoints"] == 0
    with pytest.raises(ValueError):
        hashmere.Pool(store, "jobs", elements=3)
    assert hashmere.Pool.remove(store, "jobs") and not hashmere.Pool.remove(store, "jobs")


def work(path, sleeps):
    store = hashmere.open(path)
    pool = pool_of(store)
    todo, done, endpoint = pool.queue("todo"), pool.queue("done"), pool.endpoint()
    while True:
        job = endpoint.pop(todo, timeout=120)
        if job is None:
            return
        if sleeps:
            time.sleep(1000)  # holds it until it is killed
        number = int(job.read(0, 4))
        job.write(0, b"%04d%08d" % (number, number * number))
        job.push(done)


def test_work_with_a_killed_worker(store):
    pool = pool_of(store)
    todo, done, endpoint = pool.queue("todo"), pool.queue("done"), pool.endpoint()
    spawn = multiprocessing.get_context("spawn")
    doomed = spawn.Process(target=work, args=(store.path, True))
    doomed.start()
    workers = []
    try:
        for number in range(10):
            job = endpoint.pop(pool.free)
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
            job = endpoint.pop(done, timeout=120)
            found.append(job.read(0, 12))
            job.push(pool.free)
        assert sorted(found) == [b"%04d%08d" % (n, n * n) for n in range(10)]
    finally:
        for worker in [doomed, *workers]:
            worker.kill()
            worker.join()


def test_what_was_opened_before_a_fork_is_refused(store):
    pool = pool_of(store)
    endpoint = pool.endpoint()
    child = os.fork()
    if child == 0:
        try:
            endpoint.pop(pool.free)
        except hashmere.QueueForked:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0 and endpoint.pop(pool.free)


def test_others_run_and_signals_are_heard_during_a_wait(store):
    pool = pool_of(store)
    todo, endpoint = pool.queue("todo"), pool.endpoint()

    def push_later():
        time.sleep(0.05)
        other = pool.endpoint()
        job = other.pop(pool.free)
        job.write(0, "x")
        job.push(todo)
        other.close()

    thread = threading.Thread(target=push_later)
    thread.start()
    assert endpoint.pop(todo, timeout=120).read(0, 1) == b"x"
    thread.join()

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(Alarm):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            endpoint.pop(todo, timeout=60)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_waiting_for_a_key(store):
    assert store.wait("a", None, timeout=0.01).timed_out
    thread = threading.Thread(target=lambda: (time.sleep(0.05), store.set("a", "1")))
    thread.start()
    version = store.wait("a", None, timeout=120).version
    thread.join()
    assert version == store.get_item("a").version
    del store["a"]
    gone = store.wait("a", version, timeout=1)
    assert gone and gone.removed and not gone.changed and gone.version is None
    with pytest.raises(ValueError):
        store.wait("a", None, timeout=-1)


def test_batches(store):
    pool = pool_of(store)
    todo, done = pool.queue("todo"), pool.queue("done", bound=3)
    with pool.endpoint() as endpoint, pool.endpoint() as single:
        assert endpoint.pop_many(todo, 4) == 0 and endpoint.pop_many(todo, 4, timeout=0.01) == 0
        assert endpoint.pop_many(pool.free, 5) == 5 and endpoint.batch_len == 5 and endpoint.pop_many(pool.free, 0) == 0
        for i in range(5):
            endpoint.batch_write(i, 0, b"%d" % i)
            with endpoint.batch_view(i) as room:
                assert bytes(room[:1]) == b"%d" % i and len(room) == 32
                room[1:2] = b"x"
                with pytest.raises(BufferError):
                    endpoint.push_many(todo)
                with pytest.raises(BufferError):
                    endpoint.close()
        assert endpoint.batch_read(4, 0, 2) == b"4x" and endpoint.batch_read(4)[:2] == b"4x"
        for wrong in (lambda: endpoint.batch_read(5), lambda: endpoint.batch_write(0, 31, b"ab"), lambda: endpoint.batch_view(5)):
            with pytest.raises(IndexError):
                wrong()
        assert endpoint.push_many(todo, 2) == 2 and endpoint.push_many(done) == 3 and endpoint.batch_len == 0
        assert endpoint.pop_many(pool.free, 2) == 2 and endpoint.push_many(done) == 0 and endpoint.batch_len == 2
        assert endpoint.push_pop_many(todo, done, 10) == (2, 3) and len(todo) == 4
        with pytest.raises(hashmere.QueueBadOption):
            endpoint.drain(todo, pool.free)
        assert endpoint.push_many(pool.free) == 3 and endpoint.drain(todo, pool.free) == 4 and len(pool.free) == 16
        job = single.pop(pool.free)
        with pytest.raises(hashmere.InvalidState):
            single.pop_many(pool.free, 1)
        assert single.push_pop(job, done, pool.free)[0] and len(done) == 1
    assert pool.stats()["held"] == 0


def test_a_batch_is_waited_for(store):
    pool = pool_of(store)
    todo = pool.queue("todo")

    def push_later():
        time.sleep(0.05)
        with pool.endpoint() as other:
            other.pop_many(pool.free, 3)
            other.push_many(todo)

    thread = threading.Thread(target=push_later)
    thread.start()
    with pool.endpoint() as endpoint:
        assert endpoint.pop_many(todo, 10, timeout=120) == 3
        thread.join()


def test_an_element_is_written_in_place(store):
    pool = pool_of(store)
    todo, endpoint = pool.queue("todo"), pool.endpoint()
    job = endpoint.pop(pool.free)
    with job.view() as room:
        room[:5] = b"hello"
        for refused in (lambda: job.push(todo), job.give_back, endpoint.close):
            with pytest.raises(BufferError):
                refused()
        part = room[1:3]
    with pytest.raises(BufferError):
        job.push(todo)
    assert bytes(part) == b"el"
    part.release()
    assert job.push(todo) and todo.peek()[:5] == b"hello" and len(todo) == 1
    with pytest.raises(hashmere.Closed):
        job.view()
    # A view keeps the endpoint that it looks into.
    kept = endpoint.pop(todo).view()
    del endpoint, job
    gc.collect()
    assert bytes(kept[:5]) == b"hello"
    kept.release()
    with pytest.raises(BufferError):
        memoryview(hashmere.Room())


def test_what_pools_and_queues_tell(store):
    pool = hashmere.Pool(store, "jobs", elements=16, bytes=32, on_death="lost")
    assert (pool.name, pool.elements, pool.element_bytes, pool.removed) == ("jobs", 16, 32, False)
    todo = pool.queue("todo", kind="mpsc", bound=5)
    assert [queue.name for queue in pool.queues()] == ["free", "lost", "todo"]
    assert (todo.kind, todo.bound, todo.peek(), pool.free.kind) == ("mpsc", 5, None, "mpmc")
    told = {queue["name"]: queue for queue in pool.stats()["queues"]}
    assert told["free"]["len"] == 16 and told["todo"]["bound"] == 5 and not told["todo"]["has_sleepers"]
    assert hashmere.Pool.list(store) == ["jobs"]
    assert hashmere.Pool.remove(store, "jobs") and pool.removed and hashmere.Pool.list(store) == []


def test_what_a_crashed_endpoint_held_goes_where_it_was_said(store):
    pool = hashmere.Pool(store, "jobs", elements=16, bytes=32, on_death="lost")
    child = os.fork()
    if child == 0:
        inside = hashmere.Pool(store, "jobs")
        endpoint = inside.endpoint()
        for _ in range(3):
            endpoint.pop(inside.free)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert pool.recover() == 3 and len(pool.queue("lost")) == 3


def test_a_queue_in_an_event_loop(store):
    pool = pool_of(store)
    todo, endpoint = pool.queue("todo"), pool.endpoint()
    with todo.ready_fd() as ready, selectors.DefaultSelector() as loop:
        loop.register(ready, selectors.EVENT_READ)
        assert loop.select(0.02) == []
        for _ in range(2):
            endpoint.pop(pool.free).push(todo)
        for left in (1, 0):
            assert loop.select(120)
            ready.acknowledge()
            assert endpoint.pop(todo).push(pool.free) and len(todo) == left
        # The event of what was left may be on its way still; no more come after it.
        events = [loop.select(0.05) and (ready.acknowledge() or True) for _ in range(10)]
        assert sum(map(bool, events)) <= 1
    assert ready.closed
    for refused in (ready.fileno, ready.acknowledge):
        with pytest.raises(hashmere.Closed):
            refused()


def test_a_queue_in_asyncio(store):
    pool = pool_of(store)
    todo, endpoint, other = pool.queue("todo"), pool.endpoint(), pool.endpoint()

    async def produce():
        for number in range(10):
            job = other.pop(pool.free)
            job.write(0, b"%02d" % number)
            job.push(todo)
            if number % 3 == 0:
                await asyncio.sleep(0.01)

    async def main():
        with hashmere.aio.Consumer(endpoint, todo) as jobs:
            assert await jobs.pop(timeout=0) is None and await jobs.pop(timeout=0.02) is None
            producer, found = asyncio.ensure_future(produce()), []
            async for job in jobs:
                found.append(int(job.read(0, 2)))
                job.push(pool.free)
                if len(found) == 10:
                    break
            await producer
            assert found == list(range(10))
            waiting = asyncio.ensure_future(jobs.pop())
            await asyncio.sleep(0.01)
            with pytest.raises(RuntimeError):
                await jobs.pop(timeout=1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await jobs.pop(timeout=0.01) is None

    asyncio.run(main())
