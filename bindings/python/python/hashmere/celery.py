"""Results of Celery's tasks in a store that workers and callers on one machine share.

    app = Celery("site", broker=..., backend="hashmere://my-results")        # a name, as for hashmere.open
    app = Celery("site", broker=..., backend="hashmere:///srv/results.mere") # a path

``result_backend_transport_options`` are options of `hashmere.open`, and Celery's ``global_keyprefix``. The store is strict, and
``result_expires`` is the time to live of a result; a store that is full refuses results with `hashmere.Full`. A caller in
``result.get()`` sleeps until the result is stored, without polling. Chords count in one atomic operation. The broker is
another one: workers and callers are on one machine, so Redis, RabbitMQ or a folder of this machine will do.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Union
from urllib.parse import unquote, urlsplit

from celery import states
from celery.backends.base import KeyValueStoreBackend
from celery.exceptions import ImproperlyConfigured, TimeoutError

from ._shared import shared
from ._store import Store

_SCHEME = "hashmere"


class HashmereBackend(KeyValueStoreBackend):
    """See the module."""

    supports_autoexpire = True
    supports_native_join = True
    implements_incr = True

    def __init__(self, app: Any, url: Optional[str] = None, expires: Any = None, **kwargs: Any) -> None:
        super().__init__(app, url=url, **kwargs)
        self.expires = self.prepare_expires(expires, type=int)
        self._name = _name_of(url or "")
        options = dict(self.app.conf.get("result_backend_transport_options") or {})
        options.pop("global_keyprefix", None)
        self._options = options

    @property
    def store(self) -> Store:
        """The store, opened when it is first asked for."""
        return shared(self._name, self._options)

    def as_uri(self, include_password: bool = False) -> str:
        return str(self.url or f"{_SCHEME}://")

    def get(self, key: Union[str, bytes]) -> Optional[bytes]:
        return self.store.get(key)

    def mget(self, keys: List[Union[str, bytes]]) -> List[Optional[bytes]]:
        return self.store.get_many(keys)

    def set(self, key: Union[str, bytes], value: Union[str, bytes]) -> None:
        # 0 means "never" in Celery's settings.
        self.store.set(key, value, ttl=self.expires or None)

    def delete(self, key: Union[str, bytes]) -> None:
        self.store.delete(key)

    def incr(self, key: Union[str, bytes]) -> int:
        count = self.store.incr(key, 1, initial=1)
        assert count is not None
        return count

    def expire(self, key: Union[str, bytes], value: Optional[int]) -> None:
        self.store.touch(key, value or None)

    def cleanup(self) -> None:
        """Gives back the room of what expired, which writers do by themselves when they need it."""
        self.store.compact()

    def wait_for(
        self, task_id: str, timeout: Optional[float] = None, interval: float = 0.5, no_ack: bool = True, on_interval: Any = None
    ) -> Any:
        """As Celery's, woken by the result instead of looking for it; ``on_interval`` is called each ``interval``."""
        self._ensure_not_eager()
        key, end = self.get_key_for_task(task_id), None if timeout is None else time.monotonic() + timeout
        while True:
            # The version is read first: what is stored behind it wakes this caller.
            seen = self.store.version(key)
            meta = self.get_task_meta(task_id)
            if meta["status"] in states.READY_STATES:
                return meta
            if on_interval:
                on_interval()
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("The operation timed out.")
            pauses = [pause for pause in (left, interval if on_interval else None) if pause is not None]
            self.store.wait(key, seen, timeout=min(pauses, default=None))

    def __reduce__(self, args: Any = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        return super().__reduce__(args, {**(kwargs or {}), "expires": self.expires, "url": self.url})


def _name_of(url: str) -> str:
    parts = urlsplit(url)
    name = unquote(parts.path if parts.path.strip("/") else parts.netloc)
    if parts.scheme != _SCHEME or not name or (parts.netloc and parts.path.strip("/")):
        raise ImproperlyConfigured(f"{url!r} names no store: it has to be {_SCHEME}://NAME or {_SCHEME}:///PATH")
    return name


__all__ = ["HashmereBackend"]
