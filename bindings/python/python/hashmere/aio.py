"""Queues, logs, change feeds, waits and locks in `asyncio`: waiting without stopping the event loop."""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import Any, AsyncIterator, Awaitable, Callable, Iterable, Optional, Tuple

from . import _hashmere
from ._hashmere import Element, Endpoint, Queue, WaitOutcome
from ._store import Store, Text, Value
from ._types import FeedEvent, LogLine
from .log import Log, Target


async def _readable(number: int) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    loop.add_reader(number, wake)
    try:
        await future
    finally:
        loop.remove_reader(number)


async def follow(log: Log, since: Any = None) -> AsyncIterator[LogLine]:
    """The lines of a log as they are drained, without end, and without consuming them:

        async for line in hashmere.aio.follow(log, 10): ...

    ``since`` is that of `Log.follow`."""
    lines = log.follow(since)
    number = lines.fileno()
    while True:
        for line in lines:
            yield line
        await _readable(number)


async def feed(
    store: Store, start: str = "now", *, prefix: Optional[Text] = None, values: bool = False
) -> AsyncIterator[FeedEvent]:
    """The changes of a store, without end:

        async for event in hashmere.aio.feed(store, token): ...

    The arguments are those of `Store.feed`; each event has the token with which to resume behind it."""
    with store.feed(start, prefix=prefix, values=values) as events:
        number = events.fileno()
        while True:
            event = events.next(0)
            if event is not None:
                yield event
            else:
                await _readable(number)


async def drain(log: Log, to: Target = None, /, **how: Any) -> None:
    """Drains a log, in the event loop and without a thread that writes, until it is cancelled; then what is left is drained. The arguments are
    those of `Log.drain_manual`; a function may be one of the loop's thread."""
    with log.drain_manual(to, **how) as drainer:
        number = drainer.fileno()
        while True:
            await _readable(number)
            drainer.poll()


# So long a thread waits in one piece: one whose coroutine was cancelled, or whose loop has ended, ends after it.
_SLICE = 0.25
# As of the library in every language.
_LEASE = b"\0once\0"


async def wait(store: Store, key: Text, seen: Optional[int], /, *, timeout: Optional[float] = None) -> WaitOutcome:
    """As `Store.wait`. A thread of this process waits for as long as it takes; when the coroutine is cancelled, it ends soon after."""
    return await wait_any(store, [(key, seen)], timeout=timeout)


async def wait_any(
    store: Store, keys: Iterable[Tuple[Text, Optional[int]]], /, *, timeout: Optional[float] = None
) -> WaitOutcome:
    """As `Store.wait_any`: see `wait`."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[WaitOutcome] = loop.create_future()
    keys = list(keys)
    end = None if timeout is None else loop.time() + timeout
    given_up = threading.Event()

    def deliver(outcome: Optional[WaitOutcome], error: Optional[BaseException]) -> None:
        if future.done():
            return
        if outcome is not None:
            future.set_result(outcome)
        elif error is not None:
            future.set_exception(error)

    def run() -> None:
        outcome: Optional[WaitOutcome] = None
        failed: Optional[BaseException] = None
        try:
            while not given_up.is_set():
                left = _SLICE if end is None else min(_SLICE, max(0.0, end - loop.time()))
                outcome = store.wait_any(keys, timeout=left)
                if not outcome.timed_out or (end is not None and loop.time() >= end):
                    break
        except BaseException as error:
            failed = error
        try:
            loop.call_soon_threadsafe(deliver, outcome, failed)
        except RuntimeError:
            # The loop was closed.
            pass

    threading.Thread(target=run, name="hashmere wait", daemon=True).start()
    try:
        return await future
    finally:
        given_up.set()


# One coroutine of a loop at a time asks for a mutex: to the library all of them are one thread.
_asking: "weakref.WeakValueDictionary[Tuple[Any, str, bytes], asyncio.Lock]" = weakref.WeakValueDictionary()


class Mutex:
    """The mutex of a key, as `hashmere.Mutex`, for coroutines:

        async with hashmere.aio.Mutex(store, "report"): ...

    It excludes other coroutines of this loop, other threads and other processes. Coroutines of one loop take it in turn.
    """

    def __init__(self, store: Store, key: Text, /) -> None:
        self._store, self._key = store, key.encode() if isinstance(key, str) else key
        self._mutex = _hashmere.Mutex(store, key)
        self._turn: Optional[asyncio.Lock] = None

    async def acquire(self, timeout: Optional[float] = None) -> bool:
        """Takes it, and waits for it as many seconds as ``timeout`` says; forever without. ``False``: it was held all the while."""
        loop = asyncio.get_running_loop()
        end = None if timeout is None else loop.time() + timeout
        name = (loop, self._store.path, self._key)
        turn = _asking.get(name)
        if turn is None:
            turn = _asking[name] = asyncio.Lock()
        try:
            await asyncio.wait_for(turn.acquire(), timeout)
        except asyncio.TimeoutError:
            return False
        try:
            while not self._mutex.acquire(0):
                left = None if end is None else end - loop.time()
                if left is not None and left <= 0:
                    turn.release()
                    return False
                # The key says by whom it is held, so it changes with the holder; of one that dies it may not.
                seen = self._store.version(self._key)
                await wait(self._store, self._key, seen, timeout=_SLICE if left is None else min(left, _SLICE))
        except BaseException:
            turn.release()
            raise
        self._turn = turn
        return True

    def release(self) -> None:
        """Releases it."""
        self._mutex.release()
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.release()

    @property
    def holder(self) -> Optional[int]:
        """As `hashmere.Mutex.holder`."""
        return self._mutex.holder

    async def __aenter__(self) -> Mutex:
        await self.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()


async def once(
    store: Store, key: Text, compute: Callable[[], Awaitable[Value]], /, *, timeout: Optional[float] = None
) -> Optional[bytes]:
    """As `Store.once`, beside it and in every language: the value of a key; if there is none, one coroutine of one process awaits
    ``compute()`` and stores what it returns, while the others wait. ``None``: a living process was computing all the while."""
    value = store.get(key)
    if value is not None:
        return value
    mutex = Mutex(store, _LEASE + (key.encode() if isinstance(key, str) else key))
    if not await mutex.acquire(timeout):
        return None
    try:
        value = store.get(key)
        if value is None:
            store.set(key, await compute())
            value = store.get(key)
        return value
    finally:
        mutex.release()


class Consumer:
    """Pops from a queue for an event loop, with an endpoint of the loop's thread.

        with hashmere.aio.Consumer(endpoint, todo) as jobs:
            async for job in jobs: ...
            job = await jobs.pop(timeout=1)

    A thread of this process watches the queue until it is closed. One coroutine waits with it at a time.
    """

    def __init__(self, endpoint: Endpoint, queue: Queue) -> None:
        self._endpoint, self._queue = endpoint, queue
        self._ready_fd = queue.ready_fd()
        self._is_waiting = False

    async def pop(self, *, timeout: Optional[float] = None) -> Optional[Element]:
        """Takes the first element, and waits for one as many seconds as ``timeout`` says; without end if it is ``None``. ``None``: none
        came."""
        loop = asyncio.get_running_loop()
        end = None if timeout is None else loop.time() + timeout
        while True:
            element = self._endpoint.pop(self._queue)
            if element is not None:
                return element
            left = None if end is None else end - loop.time()
            if left is not None and left <= 0:
                return None
            try:
                await asyncio.wait_for(self._readable(), left)
            except asyncio.TimeoutError:
                pass

    async def _readable(self) -> None:
        if self._is_waiting:
            raise RuntimeError("another coroutine waits with this consumer; give each its own")
        self._is_waiting = True
        try:
            await _readable(self._ready_fd.fileno())
        finally:
            self._is_waiting = False
        # From here on what is pushed makes it readable again, so it comes before the next look.
        self._ready_fd.acknowledge()

    def __aiter__(self) -> AsyncIterator[Element]:
        return self

    async def __anext__(self) -> Element:
        element = await self.pop()
        if element is None:
            raise StopAsyncIteration
        return element

    def close(self) -> None:
        """Ends the watching. The endpoint stays open."""
        self._ready_fd.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = ["Consumer", "Mutex", "drain", "feed", "follow", "once", "wait", "wait_any"]
