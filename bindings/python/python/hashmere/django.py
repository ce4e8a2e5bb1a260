"""A cache backend for Django.

    CACHES = {
        "default": {
            "BACKEND": "hashmere.django.HashmereCache",
            "LOCATION": "my-site",                      # a name or a path, as for hashmere.open
            "OPTIONS": {"max_bytes": 256 << 20},
        }
    }

Every worker process of the machine shares it, without a server. Integers are kept as decimal text, so that they can be counted with
from any language; other objects go through a coder, which is pickle as in Django's own backends: only trusted processes may write
to the file. ``OPTIONS`` may name another ``coder``, and has what `hashmere.open` takes; without ``max_bytes`` it is 64 MiB. What
is not used for long is dropped when the cache is full, so ``MAX_ENTRIES`` and ``CULL_FREQUENCY`` mean nothing here. With another
``max_bytes`` the cache has that size from then on, and with less it drops what was not used.

A value that does not fit is not stored, as with memcached: ``set`` says nothing (a warning goes to the logger ``hashmere.django``),
``add`` returns False, ``set_many`` returns its key. What was there under the key is gone, so that no reader takes it for the new value.
"""

from __future__ import annotations

import logging
import math
import re
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.utils.module_loading import import_string

from ._hashmere import KeyLock
from ._shared import shared
from ._store import Store
from ._types import KEEP
from .coders import PICKLE
from .errors import AddressSpace, Full, NoSpace, TooLarge

_MAX_BYTES = 64 << 20
_DOES_NOT_FIT = (AddressSpace, Full, NoSpace, TooLarge)
_log = logging.getLogger(__name__)


class HashmereCache(BaseCache):
    """See the module."""

    def __init__(self, location: str, params: Dict[str, Any]) -> None:
        super().__init__(params)
        options = {"cache": True, "max_bytes": _MAX_BYTES, **params.get("OPTIONS", {})}
        for django_only in ("MAX_ENTRIES", "CULL_FREQUENCY"):
            options.pop(django_only, None)
        coder = options.pop("coder", PICKLE)
        self._coder = import_string(coder) if isinstance(coder, str) else coder
        self._location, self._options = location, options
        self._opened: Optional[Store] = None

    @property
    def store(self) -> Store:
        """The store, opened when it is first asked for."""
        if self._opened is None or self._opened.closed:
            self._opened = shared(self._location, self._options)
        return self._opened

    def _dumps(self, value: Any) -> Any:
        return b"%d" % value if type(value) is int else self._coder.dumps(value)

    def _loads(self, data: bytes) -> Any:
        try:
            return int(data)
        except ValueError:
            return self._coder.loads(data)

    def _ttl(self, timeout: Any) -> Optional[float]:
        """Seconds to live, not more than 0 for what has expired already."""
        return self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None) -> bool:
        key, ttl = self.make_and_validate_key(key, version=version), self._ttl(timeout)
        data = self._dumps(value)
        if ttl is not None and ttl <= 0:
            return key not in self.store
        try:
            return bool(self.store.add(key, data, ttl=ttl))
        except _DOES_NOT_FIT as error:
            _log.warning("%s is not cached: %s", key, error)
            return False

    def get(self, key: Any, default: Any = None, version: Optional[int] = None) -> Any:
        data = self.store.get(self.make_and_validate_key(key, version=version))
        return default if data is None else self._loads(data)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None) -> None:
        key, ttl = self.make_and_validate_key(key, version=version), self._ttl(timeout)
        data = self._dumps(value)
        if ttl is not None and ttl <= 0:
            self.store.delete(key)
        else:
            self._put(key, data, ttl)

    def _put(self, key: str, data: Any, ttl: Optional[float]) -> bool:
        """Whether it fits. If not, what was there goes: it is not the value that the caller believes to be there."""
        try:
            self.store.set(key, data, ttl=ttl)
            return True
        except _DOES_NOT_FIT as error:
            _log.warning("%s is not cached: %s", key, error)
            self.store.delete(key)
            return False

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None) -> bool:
        key, ttl = self.make_and_validate_key(key, version=version), self._ttl(timeout)
        if ttl is not None and ttl <= 0:
            return self.store.delete(key)
        return self.store.touch(key, ttl)

    def delete(self, key: Any, version: Optional[int] = None) -> bool:
        return self.store.delete(self.make_and_validate_key(key, version=version))

    def has_key(self, key: Any, version: Optional[int] = None) -> bool:
        return self.make_and_validate_key(key, version=version) in self.store

    def incr(self, key: Any, delta: int = 1, version: Optional[int] = None) -> Any:
        def more(data: Optional[bytes]) -> Any:
            return KEEP if data is None else self._dumps(self._loads(data) + delta)

        data = self.store.update_with(self.make_and_validate_key(key, version=version), more)
        if data is None:
            raise ValueError(f"Key '{key}' not found")
        return self._loads(data)

    def get_many(self, keys: Iterable[Any], version: Optional[int] = None) -> Dict[Any, Any]:
        names = {self.make_and_validate_key(key, version=version): key for key in keys}
        found = zip(names.values(), self.store.get_many(names))
        return {key: self._loads(data) for key, data in found if data is not None}

    def set_many(self, data: Mapping[Any, Any], timeout: Any = DEFAULT_TIMEOUT, version: Optional[int] = None) -> List[Any]:
        ttl = self._ttl(timeout)
        names = {self.make_and_validate_key(key, version=version): key for key in data}
        pairs = {name: self._dumps(data[key]) for name, key in names.items()}
        if ttl is not None and ttl <= 0:
            self.store.delete_many(pairs)
            return []
        try:
            self.store.set_many(pairs, ttl=ttl)
            return []
        except _DOES_NOT_FIT:
            # One of them, and those behind it are not stored either.
            return [names[name] for name, value in pairs.items() if not self._put(name, value, ttl)]

    def delete_many(self, keys: Iterable[Any], version: Optional[int] = None) -> None:
        self.store.delete_many([self.make_and_validate_key(key, version=version) for key in keys])

    # The names of django-redis.

    def _head(self, version: Optional[int]) -> str:
        """What every key of a version begins with, as Django's own function makes them."""
        return str(self.make_key("", version=version))

    def iter_keys(self, pattern: str = "*", version: Optional[int] = None) -> Iterator[str]:
        """The keys that match a pattern (``*``, ``?``, ``[a-z]``, ``[!a-z]``), without prefix and version."""
        head = self._head(version)
        literal = re.sub(r"([*?\[\]\\])", r"\\\1", head)
        for key in self.store.scan_keys(glob=literal + pattern):
            yield key.decode(errors="replace")[len(head) :]

    def keys(self, pattern: str = "*", version: Optional[int] = None) -> List[str]:
        """The same as a list."""
        return list(self.iter_keys(pattern, version))

    def delete_pattern(self, pattern: str, version: Optional[int] = None, **_: Any) -> int:
        """Deletes the keys that match a pattern; returns how many."""
        return self.store.delete_many([self._head(version) + key for key in self.iter_keys(pattern, version)])

    def ttl(self, key: Any, version: Optional[int] = None) -> Optional[int]:
        """How many seconds a key still lives, rounded up; ``None``: it does not expire; 0: it is absent."""
        left = self.store.ttl(self.make_and_validate_key(key, version=version))
        return 0 if left is None else None if math.isinf(left) else math.ceil(left)

    def pttl(self, key: Any, version: Optional[int] = None) -> Optional[int]:
        """The same in milliseconds."""
        left = self.store.ttl(self.make_and_validate_key(key, version=version))
        return 0 if left is None else None if math.isinf(left) else math.ceil(left * 1000)

    def expire(self, key: Any, timeout: float, version: Optional[int] = None) -> bool:
        """Gives a key this many seconds to live. Whether it is there."""
        return self.touch(key, timeout, version)

    def persist(self, key: Any, version: Optional[int] = None) -> bool:
        """Lets a key live forever. Whether it is there."""
        return self.touch(key, None, version)

    def lock(
        self,
        key: Any,
        version: Optional[int] = None,
        timeout: Optional[float] = None,
        sleep: float = 0.1,
        blocking_timeout: Optional[float] = None,
        **_: Any,
    ) -> Lock:
        """The lock of a key between processes, for ``with`` and ``acquire``, ``release``. Who waits for it looks every ``sleep`` seconds.
        The death of its holder releases it; so ``timeout``, which django-redis needs for that, means nothing here."""
        return Lock(self.store.key_lock(self.make_and_validate_key(key, version=version)), sleep, blocking_timeout)

    def clear(self) -> None:
        """Removes everything from the store, under whatever prefix."""
        self.store.clear()

    def close(self, **kwargs: Any) -> None:
        """Called after each request: the handle stays open, for opening is the dear part."""


class Lock:
    """A lock with the calls of what django-redis returns: see `HashmereCache.lock`."""

    def __init__(self, lock: KeyLock, sleep: float, blocking_timeout: Optional[float]) -> None:
        self._lock, self._sleep, self._blocking_timeout = lock, sleep, blocking_timeout
        self._is_held = False

    def acquire(self, blocking: bool = True, blocking_timeout: Optional[float] = None) -> bool:
        """Takes it, and waits for it as long; whether it was to be had."""
        wait = self._blocking_timeout if blocking_timeout is None else blocking_timeout
        end = math.inf if wait is None else time.monotonic() + wait
        while not self._lock.acquire():
            if not blocking or time.monotonic() >= end:
                return False
            time.sleep(max(0.0, min(self._sleep, end - time.monotonic())))
        self._is_held = True
        return True

    def release(self) -> None:
        """Releases it."""
        if not self._is_held:
            raise RuntimeError("release of a lock that is not held through this object")
        self._is_held = False
        self._lock.release()

    def locked(self) -> bool:
        """Whether some process holds it, at about this moment."""
        if self._is_held:
            return True
        if not self._lock.acquire():
            return True
        self._lock.release()
        return False

    def owned(self) -> bool:
        """Whether it is held through this object."""
        return self._is_held

    def __enter__(self) -> Lock:
        if not self.acquire():
            raise TimeoutError(f"the lock was held by others for {self._blocking_timeout} s")
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


__all__ = ["HashmereCache", "Lock"]
