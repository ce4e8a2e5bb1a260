"""Objects as values: a *coder* turns them into bytes and back."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterable, Iterator, List, Mapping, Optional, Protocol, Tuple, TypeVar, Union, cast

from ._store import Key, Store, Text
from ._types import Verdict

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class Coder(Protocol[T]):
    """Anything with these two methods, such as the modules `json`, `pickle` or `marshal`, with text or bytes between."""

    def dumps(self, value: T, /) -> Union[bytes, str]:
        """The value as bytes or text."""

    def loads(self, data: bytes, /) -> T:
        """The value again."""


class _Raw:
    """Bytes as they are."""

    def dumps(self, value: Union[bytes, str], /) -> Union[bytes, str]:
        return value

    def loads(self, data: bytes, /) -> bytes:
        return data


class _Json:
    """JSON: readable in every language. Tuples come back as lists, and keys of dicts as text."""

    def dumps(self, value: Any, /) -> str:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    def loads(self, data: bytes, /) -> Any:
        return json.loads(data)


class _Pickle:
    """Any Python object. A writer of the store can make the reader run any code: only among trusted writers."""

    def dumps(self, value: Any, /) -> bytes:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    def loads(self, data: bytes, /) -> Any:
        return pickle.loads(data)


RAW = _Raw()
"""Bytes as they are."""
JSON = _Json()
"""JSON: readable in every language. Tuples come back as lists, and keys of dicts as text."""
PICKLE = _Pickle()
"""Any Python object. A writer of the store can make the reader run any code: only among trusted writers."""


class Coded(MutableMapping[Key, T], Generic[T]):
    """A store whose values are objects: see `Store.coded`. Keys are `bytes` when they come from the store."""

    __slots__ = ("store", "coder")

    def __init__(self, store: Store, coder: Coder[T]) -> None:
        for method in ("dumps", "loads"):
            if not callable(getattr(coder, method, None)):
                raise TypeError(f"a coder needs dumps and loads; {coder!r} has no {method}")
        self.store = store
        """The store of bytes."""
        self.coder = coder

    def __repr__(self) -> str:
        return f"<hashmere.Coded {self.store!r} {type(self.coder).__name__}>"

    def __getitem__(self, key: Key) -> T:
        return self.coder.loads(self.store[key])

    def __setitem__(self, key: Key, value: T) -> None:
        self.store[key] = self.coder.dumps(value)

    def __delitem__(self, key: Key) -> None:
        del self.store[key]

    def __contains__(self, key: object) -> bool:
        return key in self.store

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.store)

    def __len__(self) -> int:
        return len(self.store)

    def get(self, key: Key, default: Any = None) -> Any:
        """The object of a key, or the default."""
        data = self.store.get(key)
        return default if data is None else self.coder.loads(data)

    def set(self, key: Key, value: T, **attributes: Any) -> int:
        """As `Store.set`, with ``ttl``, ``expires_at``, ``flags``."""
        return self.store.set(key, self.coder.dumps(value), **attributes)

    def add(self, key: Key, value: T, **attributes: Any) -> Optional[int]:
        """As `Store.add`."""
        return self.store.add(key, self.coder.dumps(value), **attributes)

    def replace(self, key: Key, value: T, **attributes: Any) -> Optional[int]:
        """As `Store.replace`."""
        return self.store.replace(key, self.coder.dumps(value), **attributes)

    def update_with(self, key: Key, f: Callable[[Optional[T]], Union[T, Verdict]], /, **attributes: Any) -> Optional[T]:
        """As `Store.update_with`; ``f`` gets and returns objects (`None` for an absent key)."""

        def coded(data: Optional[bytes]) -> Union[bytes, str, Verdict]:
            result = f(None if data is None else self.coder.loads(data))
            return result if isinstance(result, Verdict) else self.coder.dumps(result)

        data = self.store.update_with(key, coded, **attributes)
        return None if data is None else self.coder.loads(data)

    def cas(self, key: Key, value: T, /, *, version: int, **attributes: Any) -> Optional[int]:
        """As `Store.cas`, by version only: the same object need not have the same bytes."""
        return self.store.cas(key, self.coder.dumps(value), version=version, **attributes)

    def delete(self, key: Key, /, *, version: Optional[int] = None) -> bool:
        """As `Store.delete`, by version only."""
        return self.store.delete(key, version=version)

    def delete_many(self, keys: Iterable[Key], /) -> int:
        """As `Store.delete_many`."""
        return self.store.delete_many(keys)

    def take(self, key: Key, default: Any = None, /) -> Any:
        """Removes a key and returns its object, or the default; exactly one of several callers gets it."""
        data = self.store.take(key)
        return default if data is None else self.coder.loads(data)

    def touch(self, key: Key, /, ttl: Any = None, *, expires_at: Any = None) -> bool:
        """As `Store.touch`."""
        return self.store.touch(key, ttl, expires_at=expires_at)

    def get_and_touch(self, key: Key, /, ttl: Any = None, *, expires_at: Any = None) -> Any:
        """As `Store.get_and_touch`."""
        data = self.store.get_and_touch(key, ttl, expires_at=expires_at)
        return None if data is None else self.coder.loads(data)

    def ttl(self, key: Key, /) -> Optional[float]:
        """As `Store.ttl`."""
        return self.store.ttl(key)

    def version(self, key: Key, /) -> Optional[int]:
        """As `Store.version`."""
        return self.store.version(key)

    def incr(self, key: Key, by: int = 1, /, **attributes: Any) -> Optional[int]:
        """As `Store.incr`: a counter is decimal text, which `JSON` reads as an `int`."""
        return self.store.incr(key, by, **attributes)

    def decr(self, key: Key, by: int = 1, /, **attributes: Any) -> Optional[int]:
        """As `Store.decr`."""
        return self.store.decr(key, by, **attributes)

    def once(self, key: Text, compute: Callable[[], T], /, *, timeout: Optional[float] = None) -> Optional[T]:
        """As `Store.once`; ``compute`` returns an object."""
        data = self.store.once(key, lambda: self.coder.dumps(compute()), timeout=timeout)
        return None if data is None else self.coder.loads(data)

    def random(self) -> Optional[Tuple[bytes, T]]:
        """A random pair; ``None``: the store is empty."""
        item = self.store.random()
        return None if item is None else (item.key, self.coder.loads(item.value))

    def copy(self) -> Dict[bytes, T]:
        """All pairs as a `dict`."""
        return dict(self.scan())

    def __ior__(self, pairs: Union[Mapping[Any, T], Iterable[Tuple[Key, T]]]) -> Self:
        """``coded |= pairs``: stores them."""
        self.set_many(pairs)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store."""
        self.store.close()

    @property
    def closed(self) -> bool:
        """Whether the store is closed."""
        return self.store.closed

    def pop(self, key: Key, *default: Any) -> Any:
        """Removes a key and returns its object; exactly one of several callers gets it."""
        data = self.store.take(key)
        if data is not None:
            return self.coder.loads(data)
        if default:
            return default[0]
        raise KeyError(key)

    def popitem(self) -> Tuple[bytes, T]:
        """Removes a random pair and returns it."""
        key, data = self.store.popitem()
        return key, self.coder.loads(data)

    def get_many(self, keys: Iterable[Key]) -> List[Optional[T]]:
        """As `Store.get_many`."""
        return [None if data is None else self.coder.loads(data) for data in self.store.get_many(keys)]

    def set_many(self, pairs: Union[Mapping[Any, T], Iterable[Tuple[Key, T]]], **attributes: Any) -> int:
        """As `Store.set_many`."""
        items = pairs.items() if isinstance(pairs, Mapping) else pairs
        return self.store.set_many([(key, self.coder.dumps(value)) for key, value in items], **attributes)

    def scan(self, **which: Any) -> Iterator[Tuple[bytes, T]]:
        """As `Store.scan`."""
        return ((key, self.coder.loads(data)) for key, data in self.store.scan(**which))

    def clear(self) -> None:
        """Removes every key."""
        self.store.clear()
