"""The store as a mapping."""

from __future__ import annotations

import os
from collections.abc import ItemsView, KeysView, MutableMapping, ValuesView
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Tuple, TypeVar, Union, overload

from . import _hashmere, _open
from ._types import Branch, Condition, EntryId, Item, Uid

Text = Union[bytes, str]
Key = Union[bytes, str, Uid, EntryId, _hashmere.HashedKey]
Value = Union[bytes, bytearray, memoryview, str]
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
T = TypeVar("T")
_MISSING: Any = object()


class Store(_hashmere.Store):
    """A store of bytes, shared with every process that opens it: a `MutableMapping` and more.

    What is listed as inherited from `hashmere._hashmere.Store` belongs to it: single keys, several keys, numbers of keys, statistics.

    Keys are `bytes` or `str`, which is the same key as its UTF-8. Values are `bytes`, `str` or anything with the buffer
    protocol; what is read is `bytes`. For other objects see `coded`.

    A key may also be named by a `Uid` or an `EntryId`, by which a call finds that very entry without hashing or comparing its key, or
    by a `HashedKey`. By a number a call never creates a key: if the entry is gone, it is absent, and what would have to create it
    (`set`, `add`, `reserve`, `incr` with ``initial``, `inc_ref`), or ask what it is to become (`update_with`), raises `Stale`. What
    sleeps or locks (`wait`, `once`, `Mutex`, `Barrier`) takes `bytes` and `str` only.

    The handle may be used from any number of threads. A forked child goes on using it; pickled, it is opened again where it
    is unpickled. It is closed by `close`, by `with`, or at the end of the process.
    """

    __slots__ = ("__weakref__", "_options")
    _options: Mapping[str, Any]

    def __init__(self, name: Path, /, **options: Any) -> None:
        # What concerns creation only has no place in a copy.
        self._options = {k: v for k, v in options.items() if k in _AGAIN}
        _open.opened(self)

    def __reduce__(self) -> Tuple[Any, ...]:
        return _reopen, (self.path, dict(self._options))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<hashmere.Store closed>" if self.closed else f"<hashmere.Store {os.fsdecode(self.path)!r}>"

    def __iter__(self) -> Iterator[bytes]:
        return self.scan_keys()

    def __eq__(self, other: object) -> bool:
        """Whether both have the same pairs, as for any mapping."""
        if self is other:
            return True
        if not isinstance(other, (Store, Mapping)):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    # Scans

    def scan(
        self, *, cursor: int = 0, prefix: Optional[Text] = None, glob: Optional[Text] = None
    ) -> _hashmere.Scan[Tuple[bytes, bytes]]:
        """An iterator over ``(key, value)``, from a cursor on, of keys with a prefix or matching a pattern.

        The pattern has ``*``, ``?``, ``[a-z]``, ``[!a-z]``, and ``\\`` takes the next byte as it is. The iterator's ``cursor``
        is a number with which any process can go on at any later time.
        """
        return self._scan("pairs", cursor, prefix, glob)

    def scan_keys(
        self, *, cursor: int = 0, prefix: Optional[Text] = None, glob: Optional[Text] = None
    ) -> _hashmere.Scan[bytes]:
        """The same over keys."""
        return self._scan("keys", cursor, prefix, glob)

    def scan_items(
        self, *, cursor: int = 0, prefix: Optional[Text] = None, glob: Optional[Text] = None
    ) -> _hashmere.Scan[Item]:
        """The same over `Item`."""
        return self._scan("items", cursor, prefix, glob)

    # What a mapping has besides

    def keys(self) -> KeysView[bytes]:
        """A view of the keys."""
        return KeysView(self)

    def items(self) -> ItemsView[bytes, bytes]:
        """A view of the pairs."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """A view of the values."""
        return _Values(self)

    def pop(self, key: Key, default: Any = _MISSING, /) -> Any:
        """Removes a key and returns its value; exactly one of several callers gets it."""
        value = self.take(key, default)
        if value is _MISSING:
            raise KeyError(key)
        return value

    def popitem(self) -> Tuple[bytes, bytes]:
        """Removes a random pair and returns it."""
        while True:
            record = self.random()
            if record is None:
                raise KeyError("popitem(): the store is empty")
            # By its UID, for it may have been stored with a hash.
            if self.delete(record.uid, version=record.version):
                return record.key, record.value

    def setdefault(self, key: Key, default: Value = b"", /) -> bytes:
        """The value of a key, which is stored first if it is absent."""
        while True:
            value = self.get(key)
            if value is not None:
                return value
            if self.add(key, default):
                return default.encode() if isinstance(default, str) else bytes(default)

    def update(self, pairs: Union[Mapping[Any, Value], Iterable[Tuple[Key, Value]]] = (), /, **more: Value) -> None:
        """Stores several pairs. To change one key by what it has, see `update_with`."""
        self.set_many(pairs)
        if more:
            self.set_many(more)

    # Several keys at one moment

    def transaction(self, f: Callable[[_hashmere.Transaction], T], /) -> T:
        """Calls ``f`` with a `Transaction` and then does all that it wrote at one moment, for every reader in every process, provided
        that everything that it read is unchanged then. Returns what ``f`` returned.

            def move(t):
                t.incr("alice", -30)
                t.incr("bob", 30)

            store.transaction(move)

        **``f`` may run several times**: when others changed what it read, nothing has happened, and it is called again. So it must have
        no effects but through the transaction. No lock is held while it runs. If it raises, nothing has happened; an `Exception` that
        comes from values that were not there at one moment is not raised, but ``f`` called again (so what a signal handler raises to
        end ``f`` is to be a `BaseException` that is no `Exception`). `Conflict` is raised if others
        changed what it read each of 1,000 times, for 5 seconds.
        """
        t = self._begin()
        try:
            while True:
                try:
                    result = f(t)
                except Exception:
                    if t._rollback():
                        raise
                else:
                    if t._commit():
                        return result
        finally:
            t._close()

    def write_batch_if(
        self,
        conditions: Iterable[Condition],
        batch: _hashmere.WriteBatch,
        otherwise: Optional[_hashmere.WriteBatch] = None,
        /,
    ) -> Branch:
        """Writes the one batch if all conditions hold, else the other one (``None``: nothing); conditions and batch at one moment."""
        return Branch(*self._write_batch_if(list(conditions), batch, otherwise if otherwise is not None else _hashmere.WriteBatch()))

    def remove(self) -> None:
        """Closes the store and removes its file."""
        path = self.path
        self.close()
        _hashmere.remove(path)

    @overload
    def coded(self, coder: None = None) -> "Coded[Any]": ...
    @overload
    def coded(self, coder: "Coder[T]") -> "Coded[T]": ...
    def coded(self, coder: Optional["Coder[Any]"] = None) -> "Coded[Any]":
        """The same store with objects as values; a coder turns them into bytes and back (`hashmere.JSON` if none is given)."""
        from .coders import JSON, Coded

        return Coded(self, coder if coder is not None else JSON)


MutableMapping.register(Store)

_AGAIN = frozenset(("read_only", "busy_timeout", "remove_on_last_close", "sync_every", "allow_foreign_owner", "origin"))


def _reopen(path: str, options: Mapping[str, Any]) -> Store:
    return Store(path, create=False, **options)


class _Items(ItemsView[bytes, bytes]):
    """Pairs from one scan, rather than a look-up for each key."""

    def __iter__(self) -> Iterator[Tuple[bytes, bytes]]:
        return self._mapping.scan()  # type: ignore[attr-defined, no-any-return]


class _Values(ValuesView[bytes]):
    def __iter__(self) -> Iterator[bytes]:
        return (value for _, value in self._mapping.scan())  # type: ignore[attr-defined]

    def __contains__(self, value: object) -> bool:
        return any(value == found for found in self)


from .coders import Coded, Coder  # noqa: E402
