"""Small values that calls take and return."""

import enum
from typing import Any, Final, NamedTuple, Optional, Tuple, Type


class Record(NamedTuple):
    """A key with everything about it."""

    key: bytes
    value: bytes
    version: int
    """Every change of a key gives it a larger one, also across deletion."""
    flags: int
    """32 bits of the caller."""
    expires_at: Optional[float]
    """Seconds since 1970, if it expires."""
    uid: int
    """See `Store.uid`."""


class Uid(int):
    """The number of a present key: it stays as long as the key exists, and may mean another key afterwards."""

    def __repr__(self) -> str:
        return f"Uid({int(self)})"


class Handle(int):
    """A `Uid` with a fingerprint of the key: a stale one is noticed (but for one in 2^32)."""

    def __repr__(self) -> str:
        return f"Handle({int(self)})"

    @property
    def uid(self) -> Uid:
        """The UID in it."""
        return Uid(int(self) & 0xFFFFFFFF)

    def __reduce__(self) -> Tuple[Type["Handle"], Tuple[int]]:
        return Handle, (int(self),)


class Verdict(enum.Enum):
    """What a function given to `Store.modify` may return instead of a value."""

    KEEP = "keep"
    REMOVE = "remove"

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        return Verdict, (self.value,)


KEEP: Final = Verdict.KEEP
"""Leave the key as it is."""
REMOVE: Final = Verdict.REMOVE
"""Remove the key."""
