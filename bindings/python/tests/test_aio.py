"""Waits and locks in asyncio: the loop goes on, other processes and threads are excluded."""

import asyncio
import subprocess
import sys
import threading

import pytest

import hashmere
from hashmere import aio


def run(main):
    # Only what hangs takes as long.
    return asyncio.run(asyncio.wait_for(main, 100))


def test_a_wait_leaves_the_loop_to_others(store):
    async def main():
        store["key"] = "1"
        seen = store.version("key")
        ticks = 0
        waiting = asyncio.ensure_future(aio.wait(store, "key", seen, timeout=90))
        while ticks < 20:
            await asyncio.sleep(0.001)
            ticks += 1
        assert not waiting.done()
        store["key"] = "2"
        outcome = await waiting
        assert outcome.changed and outcome.version == store.version("key")
        store.set_many({"a": "1", "b": "1"})
        several = asyncio.ensure_future(aio.wait_any(store, [("a", store.version("a")), ("b", store.version("b"))]))
        await asyncio.sleep(0.01)
        del store["b"]
        outcome = await several
        assert outcome.removed and outcome.index == 1
        assert (await aio.wait(store, "key", store.version("key"), timeout=0.01)).timed_out
        cancelled = asyncio.ensure_future(aio.wait(store, "key", store.version("key")))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    run(main())
    with pytest.raises(hashmere.Closed):
        closed = hashmere.open("closed")
        closed.remove()
        run(aio.wait(closed, "key", None))


def test_a_mutex_excludes_coroutines_threads_and_processes(store):
    count = 0

    async def add():
        nonlocal count
        async with aio.Mutex(store, "mutex"):
            before = count
            await asyncio.sleep(0.001)
            count = before + 1

    async def main():
        await asyncio.gather(*(add() for _ in range(20)))
        assert count == 20
        held = aio.Mutex(store, "mutex")
        assert await held.acquire() and not await aio.Mutex(store, "mutex").acquire(timeout=0.05)
        found = []
        thread = threading.Thread(target=lambda: found.append(hashmere.Mutex(store, "mutex").acquire(0)))
        thread.start()
        thread.join()
        assert found == [False]
        held.release()
        assert await held.acquire(timeout=90)
        held.release()

    run(main())
    # Another process that is killed with it.
    script = f"import hashmere, os; s = hashmere.open({store.path!r}); m = hashmere.Mutex(s, 'mutex'); assert m.acquire(); print('held', flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"held\n"

    async def after_death():
        mutex = aio.Mutex(store, "mutex")
        assert mutex.holder == other.pid and not await mutex.acquire(timeout=0.05)
        waiting = asyncio.ensure_future(mutex.acquire())
        await asyncio.sleep(0.01)
        other.kill()
        other.wait()
        assert await waiting
        mutex.release()

    run(after_death())
    other.stdin.close()
    other.stdout.close()


def test_once_computes_once(store):
    calls = []

    async def compute():
        calls.append(1)
        await asyncio.sleep(0.01)
        return "value"

    async def main():
        values = await asyncio.gather(*(aio.once(store, "key", compute) for _ in range(10)))
        assert values == [b"value"] * 10 and calls == [1]

        async def fails():
            raise RuntimeError("no")

        with pytest.raises(RuntimeError):
            await aio.once(store, "other", fails)
        assert await aio.once(store, "other", compute) == b"value"

    run(main())
    assert store.once("key", lambda: 1 / 0) == b"value"
