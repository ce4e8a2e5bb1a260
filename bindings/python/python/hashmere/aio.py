"""Queues, logs and change feeds in `asyncio`: waiting for elements, lines and events without stopping the event loop."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Optional

from ._hashmere import Element, Endpoint, Queue
from ._store import Store, Text
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


__all__ = ["Consumer", "drain", "feed", "follow"]
