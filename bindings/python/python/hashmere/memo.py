"""Results of a function kept in a store, computed by one process at a time."""

from __future__ import annotations

import functools
import inspect
import time
from typing import Any, Callable, Generic, Optional, Tuple, TypeVar, Union

from ._store import Key, Store
from .coders import JSON, Coder
from .errors import Full, NoSpace

R = TypeVar("R")
F = Callable[..., R]

_PLAIN = (str, bytes, int, float, bool, type(None))
# What the first and the longest pause between two looks of a waiter is, in seconds.
_PAUSE = (0.0005, 0.02)


class Memoized(Generic[R]):
    """A function whose results are kept: see `memoize`."""

    def __init__(
        self, f: F[R], store: Store, ttl: Optional[float], key: Optional[Callable[..., Key]], coder: Coder[R], wait: float
    ) -> None:
        functools.update_wrapper(self, f)
        self._f, self._store, self._ttl, self._key, self._coder, self._wait = f, store, ttl, key, coder, wait

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        key = self.cache_key(*args, **kwargs)
        data = self._store.get(key)
        return self._coder.loads(data) if data is not None else self._computed(key, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def cache_key(self, *args: Any, **kwargs: Any) -> Key:
        """The key under which the result for these arguments is kept."""
        if self._key is not None:
            return self._key(*args, **kwargs)
        return _key_of(self._f, args, kwargs)

    def forget(self, *args: Any, **kwargs: Any) -> bool:
        """Removes the result for these arguments. Whether there was one."""
        return self._store.delete(self.cache_key(*args, **kwargs))

    def refresh(self, *args: Any, **kwargs: Any) -> R:
        """Computes the result anew and keeps it."""
        return self._compute(self.cache_key(*args, **kwargs), args, kwargs)

    def _computed(self, key: Key, args: Tuple[Any, ...], kwargs: Any) -> R:
        """The result that somebody computed meanwhile, or our own. One process computes at a time; the lock of one that dies
        is free at once, and one that takes too long is not waited for."""
        lock = self._store.key_lock(key)
        end = time.monotonic() + self._wait
        pause = _PAUSE[0]
        held = lock.acquire()
        while not held and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE[1])
            data = self._store.get(key)
            if data is not None:
                return self._coder.loads(data)
            held = lock.acquire()
        try:
            # Whoever had the lock before us may have stored it just now.
            data = self._store.get(key)
            return self._coder.loads(data) if data is not None else self._compute(key, args, kwargs)
        finally:
            if held:
                lock.release()

    def _compute(self, key: Key, args: Tuple[Any, ...], kwargs: Any) -> R:
        result = self._f(*args, **kwargs)
        data = self._coder.dumps(result)
        try:
            self._store.set(key, data, ttl=self._ttl)
        except (Full, NoSpace):
            # The result is as good, only not kept.
            pass
        return self._coder.loads(data if isinstance(data, bytes) else data.encode())


def memoize(
    store: Store,
    *,
    ttl: Optional[float] = None,
    key: Optional[Callable[..., Key]] = None,
    coder: Optional[Coder[Any]] = None,
    wait: float = 30.0,
) -> Callable[[F[R]], Memoized[R]]:
    """A decorator that keeps the results of a function in a store, for every process.

    If a result is missing, one process computes it while the others wait for it; if that one dies, another begins. After
    ``wait`` seconds a waiter computes for itself. An exception is not kept.

    Results live for ``ttl`` seconds (for ever without). ``key`` gets the arguments and returns the key; without it the key is made
    of the function's name and its arguments, which must be plain values or tuples of them. ``coder`` is as for `Store.coded`;
    what is returned has been through it the first time too, so that it does not depend on who computed it.

        @hashmere.memoize(store, ttl=60)
        def report(user): ...
    """

    def decorate(f: F[R]) -> Memoized[R]:
        if inspect.iscoroutinefunction(f):
            raise TypeError("memoize does not work on coroutine functions: waiting would stop the event loop")
        return Memoized(f, store, ttl, key, coder if coder is not None else JSON, wait)

    if not isinstance(store, Store):
        raise TypeError("memoize needs a store: @hashmere.memoize(store)")
    return decorate


def _key_of(f: Callable[..., Any], args: Tuple[Any, ...], kwargs: Any) -> str:
    for value in (*args, *kwargs.values()):
        _check_plain(value)
    name = f"{f.__module__}.{f.__qualname__}"
    return f"{name}{args!r}{sorted(kwargs.items())!r}" if kwargs else f"{name}{args!r}"


def _check_plain(value: Any) -> None:
    if type(value) is tuple:
        for part in value:
            _check_plain(part)
    elif type(value) not in _PLAIN:
        raise TypeError(f"{type(value).__name__} is no plain value; give memoize a key function that names it")


__all__ = ["Memoized", "memoize"]
