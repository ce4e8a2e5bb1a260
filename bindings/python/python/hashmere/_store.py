"""The store as a mapping."""

from __future__ import annotations

import os
from collections.abc import ItemsView, KeysView, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, Mapping, NoReturn, Optional, Tuple, TypeVar, Union, overload

from . import _hashmere, _open
from ._types import KEEP, Branch, Condition, EntryId, Item, Uid
from .errors import Stale

if TYPE_CHECKING:
    import re

    from typing_extensions import Self

Text = Union[bytes, str]
Key = Union[bytes, str, Uid, EntryId, _hashmere.HashedKey]
Value = Union[bytes, bytearray, memoryview, str]
Regex = Union[str, "re.Pattern[str]"]
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
        self,
        *,
        cursor: int = 0,
        prefix: Optional[Text] = None,
        glob: Optional[Text] = None,
        regex: Optional[Regex] = None,
        part: Optional[Tuple[int, int]] = None,
    ) -> _hashmere.Scan[Tuple[bytes, bytes]]:
        """An iterator over ``(key, value)``, from a cursor on, of keys with a prefix, matching a pattern, or in which a regular expression
        is found. ``part=(0, 4)`` is the first of four parts, which processes share; `cursor_of` is where a scan begins with a key.

        The regular expression is text or a pattern of `re`, in the syntax of Rust's crate regex: without back-references and look-around,
        in time linear in the key; ``(?-u)`` takes the key as bytes. The pattern of ``glob`` has ``*``, ``?``, ``[a-z]``, ``[!a-z]``, and ``\\`` takes the next byte as it is. The iterator's ``cursor``
        is a number with which any process can go on at any later time.
        """
        return self._scan("pairs", cursor, prefix, glob, regex, part)

    def scan_keys(
        self,
        *,
        cursor: int = 0,
        prefix: Optional[Text] = None,
        glob: Optional[Text] = None,
        regex: Optional[Regex] = None,
        part: Optional[Tuple[int, int]] = None,
    ) -> _hashmere.Scan[bytes]:
        """The same over keys."""
        return self._scan("keys", cursor, prefix, glob, regex, part)

    def scan_items(
        self,
        *,
        cursor: int = 0,
        prefix: Optional[Text] = None,
        glob: Optional[Text] = None,
        regex: Optional[Regex] = None,
        part: Optional[Tuple[int, int]] = None,
    ) -> _hashmere.Scan[Item]:
        """The same over `Item`."""
        return self._scan("items", cursor, prefix, glob, regex, part)

    def update_each(self, f: Callable[[bytes, bytes], Any], /, **which: Any) -> int:
        """Calls ``f(key, value)`` with every key that passes the filter of a `scan` and does what it returns, as `update_with` does, each
        key atomically: stores a value, leaves the key with `KEEP`, removes it with `REMOVE`. Returns how many keys were stored or removed.

        A key that exists all the while is visited exactly once, beside writers and growth; ``f`` is called again with a key that another
        writer changed during the call. What ``f`` raises ends the call; the keys before stay changed."""
        changed = 0
        for item in self.scan_items(**which):
            said: Any = KEEP

            def visitor(value: Optional[bytes], key: bytes = item.key) -> Any:
                nonlocal said
                said = KEEP if value is None else f(key, value)
                return said

            try:
                # By the entry: with its hash if it has one, and never created again.
                self.update_with(item.uid, visitor)
            except Stale:
                continue
            changed += said is not KEEP
        return changed

    # What a mapping has besides

    def copy(self) -> Dict[bytes, bytes]:
        """All pairs as a `dict`."""
        return dict(self.scan())

    def __ior__(self, pairs: Union[Mapping[Any, Value], Iterable[Tuple[Key, Value]]]) -> Self:  # type: ignore[misc]
        """``store |= pairs``: stores them, as `update` does."""
        self.update(pairs)
        return self

    def __or__(self, other: Mapping[Any, Any]) -> Dict[Any, Any]:
        """``store | pairs``: a `dict` of both, whose keys are `bytes` where they come from the store."""
        return {**self.copy(), **other} if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Mapping[Any, Any]) -> Dict[Any, Any]:
        return {**other, **self.copy()} if isinstance(other, Mapping) else NotImplemented

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


def open(
    name: Path,
    /,
    *,
    create: bool = True,
    create_new: bool = False,
    read_only: bool = False,
    cache: Optional[bool] = None,
    max_bytes: Optional[int] = None,
    expected_items: Optional[int] = None,
    fixed_key_len: Optional[int] = None,
    fixed_value_len: Optional[int] = None,
    permissions: Optional[int] = None,
    remove_on_last_close: bool = False,
    busy_timeout: Optional[float] = None,
    segment_bytes: Optional[int] = None,
    leaf_bytes: Optional[int] = None,
    durable: bool = False,
    sync_every: Optional[float] = None,
    allow_foreign_owner: bool = False,
    on_recovery: Optional[Callable[[int, int], object]] = None,
    feed: Optional[int] = None,
    feed_values: bool = False,
    origin: int = 0,
    **unknown: NoReturn,
) -> Store:
    """Opens a store, and creates it if it is missing. What is not given is taken from the file if it exists; what is given and differs
    from an existing file is honoured (``max_bytes``, ``busy_timeout``, ``remove_on_last_close``) or refused with `OptionMismatch`.

    ``name``
        a file in the folder ``HASHMERE_DIR``, or else ``/dev/shm/hashmere-<uid>``; with a slash in it or ``.mere`` at its end, a path
    ``create``
        ``False``: `NotFound` if there is none
    ``create_new``
        `AlreadyExists` if there is one
    ``read_only``
        works on a file that the process may not write
    ``cache``
        a full store drops what expired, then what was not used, instead of raising `Full`; needs ``max_bytes`` when it creates
    ``max_bytes``
        the memory that the file may take; an existing store gets this maximum, for all processes
    ``expected_items``
        the number of keys for which the index is created large enough
    ``fixed_key_len``, ``fixed_value_len``
        the length of every key or value; at creation
    ``permissions``
        of a created file; ``0o600`` if not given
    ``remove_on_last_close``
        the file goes when the last process closes it
    ``busy_timeout``
        seconds that a write waits for a lock before `Busy`; 5 if not given
    ``segment_bytes``, ``leaf_bytes``
        units of cleaning and growth; at creation, for tests
    ``durable``
        what `Store.sync` has returned for survives a power cut; at creation
    ``sync_every``
        seconds after which a write syncs
    ``allow_foreign_owner``
        opens a file that another user owns
    ``on_recovery``
        is called with ``(done, total)`` in bytes while a durable store is recovered
    ``feed``, ``feed_values``
        bytes of changes, about, that are kept for consumers, with values or without: `Store.feed`
    ``origin``
        a number that marks the changes made through this handle
    """
    given = locals()
    if unknown:
        options = [option for option in given if option not in ("name", "unknown")]
        wrong = ", ".join(map(repr, unknown))
        raise TypeError(f"hashmere.open() has no option {wrong}; it has {', '.join(options)}")
    return Store(name, **{option: value for option, value in given.items() if option not in ("name", "unknown")})

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
