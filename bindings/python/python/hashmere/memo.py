"""Results of a function kept in a store, computed by one process at a time."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
import weakref
from typing import Any, Callable, Generic, List, Mapping, Optional, Tuple, TypeVar, Union
from urllib.parse import quote

from ._store import Store, Text
from .coders import JSON, Coder
from .errors import AddressSpace, Full, NoSpace

R = TypeVar("R")
F = Callable[..., R]

_PLAIN = (str, bytes, int, float, bool, type(None))
# What the first and the longest pause between two looks of a waiter is, in seconds.
_PAUSE = (0.0005, 0.02)
# What a script is called while it runs, and in a process that `multiprocessing` spawned.
_SCRIPTS = ("__main__", "__mp_main__")

# By what they wrap: the wrappers that have its name.
_wrappers: "weakref.WeakKeyDictionary[Any, Callable[[], Any]]" = weakref.WeakKeyDictionary()


class Memoized(Generic[R]):
    """A function whose results are kept: see `memoize`."""

    def __init__(
        self, f: F[R], store: Store, ttl: Optional[float], key: Callable[..., Text], coder: Coder[R], wait: float
    ) -> None:
        functools.update_wrapper(self, f)
        self._f, self._store, self._ttl, self._key, self._coder, self._wait = f, store, ttl, key, coder, wait

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        key = self._key(*args, **kwargs)
        data = self._store.get(key)
        return self._coder.loads(data) if data is not None else self._computed(key, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else BoundMemoized(self, instance)

    def cache_key(self, *args: Any, **kwargs: Any) -> Text:
        """The key under which the result for these arguments is kept."""
        return self._key(*args, **kwargs)

    def forget(self, *args: Any, **kwargs: Any) -> bool:
        """Removes the result for these arguments. Whether there was one."""
        return self._store.delete(self.cache_key(*args, **kwargs))

    def refresh(self, *args: Any, **kwargs: Any) -> R:
        """Computes the result again and keeps it."""
        return self._compute(self.cache_key(*args, **kwargs), args, kwargs)

    def _computed(self, key: Text, args: Tuple[Any, ...], kwargs: Any) -> R:
        """The result that another process has computed by now, or our own. One process computes at a time; the lock of one that dies
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
            # The holder of the lock before us may have stored it just now.
            data = self._store.get(key)
            return self._coder.loads(data) if data is not None else self._compute(key, args, kwargs)
        finally:
            if held:
                lock.release()

    def _compute(self, key: Text, args: Tuple[Any, ...], kwargs: Any) -> R:
        result = self._f(*args, **kwargs)
        data = self._coder.dumps(result)
        try:
            self._store.set(key, data, ttl=self._ttl)
        except (AddressSpace, Full, NoSpace):
            # The result is as good, only not kept.
            pass
        return self._coder.loads(data if isinstance(data, bytes) else data.encode())


class BoundMemoized(Generic[R]):
    """The same as a method of an object, which is the first argument."""

    def __init__(self, function: Memoized[R], instance: Any) -> None:
        functools.update_wrapper(self, function)
        self._function, self._instance = function, instance

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        return self._function(self._instance, *args, **kwargs)

    def cache_key(self, *args: Any, **kwargs: Any) -> Text:
        """See `Memoized.cache_key`."""
        return self._function.cache_key(self._instance, *args, **kwargs)

    def forget(self, *args: Any, **kwargs: Any) -> bool:
        """See `Memoized.forget`."""
        return self._function.forget(self._instance, *args, **kwargs)

    def refresh(self, *args: Any, **kwargs: Any) -> R:
        """See `Memoized.refresh`."""
        return self._function.refresh(self._instance, *args, **kwargs)


def memoize(
    store: Store,
    *,
    ttl: Optional[float] = None,
    name: Optional[str] = None,
    version: Union[str, int, None] = None,
    key: Optional[Callable[..., Text]] = None,
    coder: Optional[Coder[Any]] = None,
    wait: float = 30.0,
) -> Callable[[F[R]], Memoized[R]]:
    """A decorator that keeps the results of a function in a store, for every process.

    If a result is missing, one process computes it while the others wait for it; if that one dies, another begins. After
    ``wait`` seconds a waiter computes for itself. An exception is not kept.

    Results live for ``ttl`` seconds (forever without). ``coder`` is as for `Store.coded`; what is returned has been through it the
    first time too, so that it does not depend on the process that computed it.

    The key is made of a name, a version and the arguments, which must be plain values or tuples of them; ``f(1)``, ``f(a=1)`` and
    ``f(1, b=2)`` have one key if 2 is what ``b`` is by default. The name is the function's module and qualified name (of a script:
    its path). A function whose name says too little - made within another function, a lambda, a partial, a bound method - is
    refused without a ``name`` of its own: others would share its results. So is a second wrapper of one function
    (`functools.wraps` gives both its name). Change ``version`` when the function's code
    changes, so that results of the code of before are not taken for its own. Or ``key`` gets the arguments and returns the whole key.

        @hashmere.memoize(store, ttl=60, version=2)
        def report(user): ...

    Of a method the object is an argument, mostly no plain value: give it a ``key``. ``staticmethod`` goes above ``memoize``.
    """

    def decorate(f: F[R]) -> Memoized[R]:
        if isinstance(f, (staticmethod, classmethod)):
            raise TypeError(f"{type(f).__name__} goes above memoize, not under it")
        if inspect.iscoroutinefunction(f):
            raise TypeError("memoize does not work on coroutine functions: waiting would stop the event loop")
        make = _Keys(f, _name_of(f) if name is None else name, version) if key is None else key
        return Memoized(f, store, ttl, make, coder if coder is not None else JSON, wait)

    if not isinstance(store, Store):
        raise TypeError("memoize needs a store: @hashmere.memoize(store)")
    if key is not None and (name is not None or version is not None):
        raise TypeError("what key returns is the whole key: put name and version into it")
    if name is not None and (not name or set(name) & set("(@")):
        raise ValueError(f"{name!r} is no name for a function: it must not be empty, nor have ( or @ in it")
    return decorate


class _Keys:
    """Makes the key of a call: ``name(argument=value,)``, with ``name@version`` if there is one."""

    def __init__(self, f: Callable[..., Any], name: str, version: Union[str, int, None]) -> None:
        self._head = name if version is None else f"{name}@{version!r}"
        try:
            # As it is called, not what it wraps.
            self._signature: Optional[inspect.Signature] = inspect.signature(f, follow_wrapped=False)
        except ValueError:
            # Some built-in functions have none.
            self._signature = None

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        if self._signature is None:
            parts = [_text(arg) for arg in args] + _named(kwargs)
        else:
            bound = self._signature.bind(*args, **kwargs)
            given = set(bound.arguments)
            bound.apply_defaults()
            parts = []
            for parameter, value in bound.arguments.items():
                kind = self._signature.parameters[parameter].kind
                if kind is inspect.Parameter.VAR_KEYWORD:
                    parts += _named(value)
                elif parameter not in given and not _is_plain(value):
                    parts.append(f"{parameter}=<default>")
                else:
                    parts.append(f"{parameter}={_text(value)}")
        return f"{self._head}({','.join(parts)})"


def _named(kwargs: Mapping[str, Any]) -> List[str]:
    # What ** hands over may have any text for a name.
    return [f"{name if name.isidentifier() else repr(name)}={_text(value)}" for name, value in sorted(kwargs.items())]


def _name_of(f: Callable[..., Any]) -> str:
    """What a function is called everywhere, if that is one function everywhere."""
    qualified, module = getattr(f, "__qualname__", None), getattr(f, "__module__", None)
    owner = getattr(f, "__self__", None)
    if not qualified or not module or not (owner is None or inspect.ismodule(owner)):
        raise _nameless(f"{f!r} has no name of its own")
    if "<" in qualified:
        raise _nameless(f"{module}.{qualified} is the name of every function that is made there")
    if module in _SCRIPTS:
        path = getattr(sys.modules.get(module), "__file__", None)
        if path is None:
            raise _nameless(f"{qualified} is of no module or script")
        module = quote(os.path.realpath(path))
    name = f"{module}.{qualified}"
    wrapped = getattr(f, "__wrapped__", None)
    # `functools.wraps` gives every wrapper the name of what it wraps.
    if wrapped is not None:
        other = _wrappers.get(wrapped, lambda: None)()
        if other is not None and other is not f:
            raise _nameless(f"{name} is the name of another wrapper too")
        _wrappers[wrapped] = weakref.ref(f)
    return name


def _nameless(why: str) -> TypeError:
    return TypeError(f"{why}, and results would be shared by mistake; give memoize a name=, or a key= function")


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if type(value) is tuple else type(value) in _PLAIN


def _text(value: Any) -> str:
    if not _is_plain(value):
        what = type(value).__name__
        raise TypeError(f"{what} is no plain value, or not only of such; give memoize a key= function that makes a key of it")
    return repr(value)


__all__ = ["BoundMemoized", "Memoized", "memoize"]
