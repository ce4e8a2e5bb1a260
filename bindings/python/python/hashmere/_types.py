"""Small values that calls take and return."""

import dataclasses
import enum
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union


class Uid(int):
    """The number of a present key: it stays as long as the key exists, and may mean another key afterwards.

    Calls that take a key take it as well, and find the entry without hashing or comparing the key. It is an `int`, equal to the number
    that it has; a plain number is no key."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Uid({int(self)})"


class EntryId(int):
    """A `Uid` with a fingerprint of the key: a stale one is noticed (but for one in 2^32). Otherwise as a `Uid`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"EntryId({int(self)})"

    @property
    def uid(self) -> Uid:
        """The UID in it."""
        return Uid(int(self) & 0xFFFFFFFF)


class Item(NamedTuple):
    """A key with everything about it."""

    key: bytes
    value: bytes
    version: int
    """Every change of a key gives it a larger one, also across deletion."""
    flags: int
    """32 bits of the caller."""
    expires_at: Optional[float]
    """Seconds since 1970, if it expires."""
    uid: Uid
    """By which it is found as long as it exists: see `Uid`."""


class Verdict(enum.Enum):
    """What a function given to `Store.update_with` may return instead of a value."""

    KEEP = "keep"
    REMOVE = "remove"

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        return Verdict, (self.value,)


KEEP: Final = Verdict.KEEP
"""Leave the key as it is."""
REMOVE: Final = Verdict.REMOVE
"""Remove the key."""


class Condition(NamedTuple):
    """What a key must be for the first batch of `Store.write_batch_if` to be written: `Condition.absent("leader")`."""

    kind: str
    key: Union[bytes, str]
    operand: Any = None

    @staticmethod
    def absent(key: Union[bytes, str]) -> "Condition":
        """This key is absent."""
        return Condition("absent", key)

    @staticmethod
    def present(key: Union[bytes, str]) -> "Condition":
        """This key is there."""
        return Condition("present", key)

    @staticmethod
    def version(key: Union[bytes, str], version: int) -> "Condition":
        """This key is at this version; 0: it is absent."""
        return Condition("version", key, version)

    @staticmethod
    def value(key: Union[bytes, str], value: Any) -> "Condition":
        """This key has exactly this value."""
        return Condition("value", key, value)


class Branch(NamedTuple):
    """Which batch `Store.write_batch_if` wrote, and what its operations did."""

    succeeded: bool
    """All conditions held: it was the first."""
    results: List[Any]
    """What each operation did: see `WriteBatch`."""


class Level(enum.IntEnum):
    """How important a line of a log is. A smaller number is more important."""

    ERROR = 1
    WARN = 2
    INFO = 3
    DEBUG = 4
    TRACE = 5


# No tuple, which has an `index` of its own.
@dataclasses.dataclass(frozen=True)
class FeedTransaction:
    """A transaction that a change is part of. Its changes follow each other."""

    id: int
    """The same for all of them."""
    index: int
    """Which of them this is, from 0."""
    len: int
    """How many there are."""


class FeedEvent(NamedTuple):
    """One step of a feed. Only ``read`` and ``change`` are about a key."""

    kind: str
    """``"reset"``: every key follows as ``"read"``, then ``"synced"``, and what is not among them is gone; ``"change"``; ``"clear"``: every
    key was removed at once."""
    operation: Optional[str]
    """What happened to the key: ``"read"`` (nothing), ``"set"``, ``"delete"``, ``"touch"``, ``"evict"``, ``"expire"``."""
    key: Optional[bytes]
    """The key."""
    value: Optional[bytes]
    """The value that it has now, if it is here."""
    value_state: Optional[str]
    """``"absent"``: the key is gone; ``"bytes"``; ``"not_kept"``: by the feed, or not asked for; ``"superseded"``: a later event has it."""
    value_len: int
    """Length of the value, whether it is here or not."""
    version: int
    """The version that the key has now; of a removal, one above every one that it had."""
    flags: int
    """The caller's flags."""
    expires_at_ms: Optional[int]
    """When it expires, in milliseconds since 1970."""
    origin: int
    """What the handle that made the change was opened with as ``origin``."""
    ts_ms: int
    """When it happened, in milliseconds since 1970; 0 of ``reset`` and ``synced``."""
    transaction: Optional[FeedTransaction]
    """The transaction that it is part of."""
    supplied_hash: Optional[int]
    """The hash that was given with the key."""
    reason: Optional[str]
    """Of a reset: ``"asked"``, ``"gone"``, ``"other_feed"``, ``"gap"``."""
    token: Optional[str]
    """Where a consumer resumes that has dealt with this event; of a reset ``None``: behind the event before."""


class FeedInfo(NamedTuple):
    """The feed of a store."""

    number: int
    """Tells it from others that the store had."""
    position: int
    """Position of the next entry."""
    oldest: int
    """The first position that is still kept."""
    bytes: int
    """Bytes that it takes."""
    values: bool
    """Whether it keeps values."""


class LogLine(NamedTuple):
    """A line of a log, as who reads it sees it. Bytes that are not UTF-8 are shown as U+FFFD."""

    time_ns: int
    """When it was logged: nanoseconds since 1970, in UTC."""
    level: Level
    """Its level."""
    text: str
    """What was logged."""
    fields: Dict[str, Union[str, int, float, bool]]
    """Its fields, in the order in which they were given."""
    pid: int
    """The process, as it is numbered in its own PID namespace."""
    thread: int
    """A small number that the thread has had since its first line in this log, and no other thread has."""
    process: str
    """What the process calls itself, its first 16 bytes."""
    lost: int
    """How many lines of this thread were lost before this one, because its ring was full."""
    is_continued: bool
    """Whether the thread's next line continues this one, which was too long."""
    is_continuation: bool
    """Whether it continues the thread's line before."""
    position: int
    """Its position in the log: grows from line to line, and is never used again."""
    is_note: bool = False
    """Whether it was not logged: it only says how many lines were lost, of a thread that has ended, or had its ring before."""
