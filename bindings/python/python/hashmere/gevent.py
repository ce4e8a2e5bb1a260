"""Waits and locks for greenlets. The calls of `hashmere.Store` and `hashmere.Mutex` that wait stop the thread that makes them, and under
gevent all greenlets with it (`gevent.monkey` changes nothing: they sleep within the library). These wait in a thread of their own, while
the other greenlets run:

    hashmere.gevent.wait(store, "key", store.version("key"), timeout=10)
    with hashmere.gevent.Mutex(store, "report"): ...
    hashmere.gevent.once(store, "page", render)

Calls that do not wait need nothing of this: they take a millionth of a second.
"""

from __future__ import annotations

import time
import weakref
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

from gevent import get_hub
from gevent.lock import RLock
from gevent.threadpool import ThreadPool

from . import _hashmere
from ._hashmere import WaitOutcome
from ._store import Store, Text, Value

# So long a thread waits in one piece: one whose greenlet was killed is free after it.
_SLICE = 0.25
_WAITS_MAX = 1000
# As of the library in every language.
_LEASE = b"\0once\0"

_pools: Dict[Any, ThreadPool] = {}


def _pool() -> ThreadPool:
    hub = get_hub()
    pool = _pools.get(hub)
    if pool is None:
        pool = _pools[hub] = ThreadPool(_WAITS_MAX, hub=hub)
    return pool


def wait(store: Store, key: Text, seen: Optional[int], /, *, timeout: Optional[float] = None) -> WaitOutcome:
    """As `Store.wait`, for this greenlet alone. At most 1,000 wait at a time, the others for their turn."""
    return wait_any(store, [(key, seen)], timeout=timeout)


def wait_any(
    store: Store, keys: Iterable[Tuple[Text, Optional[int]]], /, *, timeout: Optional[float] = None
) -> WaitOutcome:
    """As `Store.wait_any`: see `wait`."""
    keys = list(keys)
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _SLICE if end is None else min(_SLICE, max(0.0, end - time.monotonic()))
        outcome: WaitOutcome = _pool().apply(lambda: store.wait_any(keys, timeout=left))
        if not outcome.timed_out or (end is not None and time.monotonic() >= end):
            return outcome


class _Turn(RLock):  # type: ignore[misc]
    """Something that a weak reference may lead to."""


# Greenlets of one thread are one to the library, so they take turns here. By store and key.
_turns: "weakref.WeakValueDictionary[Tuple[str, bytes], _Turn]" = weakref.WeakValueDictionary()


class Mutex:
    """The mutex of a key, as `hashmere.Mutex`, for greenlets: it excludes other greenlets of this process, threads and processes."""

    def __init__(self, store: Store, key: Text, /) -> None:
        self._store, self._key = store, key.encode() if isinstance(key, str) else key
        self._mutex = _hashmere.Mutex(store, key)
        self._turn = _turns.setdefault((store.path, self._key), _Turn())

    def acquire(self, timeout: Optional[float] = None) -> bool:
        """Takes it, and waits for it as many seconds as ``timeout`` says; forever without. ``False``: it was held all the while."""
        end = None if timeout is None else time.monotonic() + timeout
        if not self._turn.acquire(timeout=timeout):
            return False
        try:
            while not self._mutex.acquire(0):
                left = _SLICE if end is None else min(_SLICE, end - time.monotonic())
                if left <= 0:
                    self._turn.release()
                    return False
                # The key says by whom it is held, so it changes with the holder; of one that dies it may not.
                wait(self._store, self._key, self._store.version(self._key), timeout=left)
        except BaseException:
            self._turn.release()
            raise
        return True

    def release(self) -> None:
        """Releases it."""
        self._mutex.release()
        self._turn.release()

    @property
    def holder(self) -> Optional[int]:
        """As `hashmere.Mutex.holder`."""
        return self._mutex.holder

    def __enter__(self) -> Mutex:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def once(store: Store, key: Text, compute: Callable[[], Value], /, *, timeout: Optional[float] = None) -> Optional[bytes]:
    """As `Store.once`, beside it and in every language; the other greenlets run while this one waits, and during ``compute``."""
    value = store.get(key)
    if value is not None:
        return value
    mutex = Mutex(store, _LEASE + (key.encode() if isinstance(key, str) else key))
    if not mutex.acquire(timeout):
        return None
    try:
        value = store.get(key)
        if value is None:
            store.set(key, compute())
            value = store.get(key)
        return value
    finally:
        mutex.release()


__all__ = ["Mutex", "once", "wait", "wait_any"]
