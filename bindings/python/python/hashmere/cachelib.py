"""A cache for `cachelib`, and so for Flask-Caching and Flask-Session.

    from hashmere.cachelib import HashmereCache

    cache = HashmereCache("my-site", max_bytes=256 << 20)

Flask-Caching makes one with ``CACHE_TYPE = "hashmere.cachelib.HashmereCache"`` and ``CACHE_ARGS``, ``CACHE_OPTIONS``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Dict, List, Optional, Union

from cachelib.base import BaseCache

from ._store import Store
from .coders import PICKLE
from .errors import AddressSpace, Full, NoSpace, TooLarge

_Timeout = Union[int, timedelta, None]
_DOES_NOT_FIT = (AddressSpace, Full, NoSpace, TooLarge)


class HashmereCache(BaseCache):
    """Objects go through ``coder`` (pickle, as in cachelib's own caches: only trusted processes may write to the file); integers
    are kept as decimal text. The other options are those of `hashmere.open`; without ``max_bytes`` it is 64 MiB.

    A value that does not fit is not stored (``set`` and ``add`` return False, ``set_many`` leaves its key out), and what was there
    under its key goes."""

    def __init__(self, name: Any, default_timeout: int = 300, coder: Any = PICKLE, **options: Any) -> None:
        super().__init__(default_timeout)
        self.store = Store(name, **{"cache": True, "max_bytes": 64 << 20, **options})
        self._coder = coder

    @classmethod
    def factory(cls, app: Any, config: Any, args: Any, kwargs: Any) -> "HashmereCache":
        """What Flask-Caching calls."""
        return cls(*args, **kwargs)

    def _dumps(self, value: Any) -> Any:
        return b"%d" % value if type(value) is int else self._coder.dumps(value)

    def _loads(self, data: Optional[bytes]) -> Any:
        if data is None:
            return None
        try:
            return int(data)
        except ValueError:
            return self._coder.loads(data)

    def _ttl(self, timeout: _Timeout) -> Optional[float]:
        """Seconds; 0 means forever in cachelib."""
        timeout = self.default_timeout if timeout is None else timeout
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        return seconds if seconds else None

    def get(self, key: str) -> Any:
        return self._loads(self.store.get(key))

    def set(self, key: str, value: Any, timeout: _Timeout = None) -> Optional[bool]:
        ttl = self._ttl(timeout)
        if ttl is not None and ttl < 0:
            self.store.delete(key)
            return True
        return self._put(key, self._dumps(value), ttl)

    def _put(self, key: str, data: Any, ttl: Optional[float]) -> bool:
        try:
            self.store.set(key, data, ttl=ttl)
            return True
        except _DOES_NOT_FIT:
            self.store.delete(key)
            return False

    def add(self, key: str, value: Any, timeout: _Timeout = None) -> bool:
        try:
            return bool(self.store.add(key, self._dumps(value), ttl=self._ttl(timeout)))
        except _DOES_NOT_FIT:
            return False

    def delete(self, key: str) -> bool:
        return self.store.delete(key)

    def has(self, key: str) -> bool:
        return key in self.store

    def get_many(self, *keys: str) -> List[Any]:
        return [self._loads(data) for data in self.store.get_many(keys)]

    def set_many(self, mapping: Dict[str, Any], timeout: _Timeout = None) -> List[Any]:
        pairs = {key: self._dumps(value) for key, value in mapping.items()}
        ttl = self._ttl(timeout)
        try:
            self.store.set_many(pairs, ttl=ttl)
            return list(pairs)
        except _DOES_NOT_FIT:
            # One of them, and those behind it are not stored either.
            return [key for key, value in pairs.items() if self._put(key, value, ttl)]

    def delete_many(self, *keys: str) -> List[Any]:
        return [key for key in keys if self.store.delete(key)]

    def inc(self, key: str, delta: int = 1) -> Optional[int]:
        def more(data: Optional[bytes]) -> Any:
            return self._dumps((self._loads(data) or 0) + delta)

        return self._loads(self.store.update_with(key, more))  # type: ignore[no-any-return]

    def dec(self, key: str, delta: int = 1) -> Optional[int]:
        return self.inc(key, -delta)

    def clear(self) -> bool:
        self.store.clear()
        return True


__all__ = ["HashmereCache"]
