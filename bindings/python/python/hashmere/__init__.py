"""One hash table in one file that every process on a machine maps and reads and writes directly, at memory speed.

    import hashmere

    store = hashmere.open("sessions")       # any process of this user opens the same one
    store["user:7"] = "Ada"
    store["user:7"]                         # b"Ada"
    store.incr("hits", initial=1)
    store.set("token", "x", ttl=30)
    with store.view("user:7") as value:     # no copy
        value.tobytes()

A name is a file in ``/dev/shm/hashmere-<uid>/`` (``HASHMERE_DIR`` replaces the folder). With a slash, or when it ends in
``.mere``, it is a path.
"""

from ._hashmere import Element, Hand, Hashed, Pool, Queue, Reservation, Scan, View, __version__, path_of, remove
from ._store import Store
from ._types import KEEP, REMOVE, Handle, Record, Uid, Verdict
from .coders import JSON, PICKLE, RAW, Coded, Coder
from .errors import (
    AlreadyExists,
    BackupAbandoned,
    BackupExists,
    BackupRunning,
    BadCursor,
    BadName,
    BadOption,
    Busy,
    Closed,
    Corrupt,
    Error,
    Full,
    Io,
    Mismatch,
    Misuse,
    NoSpace,
    NotANumber,
    NotAStore,
    NotFound,
    OutOfMemory,
    Poisoned,
    QueueBadOption,
    QueueBroken,
    QueueDropped,
    QueueExists,
    QueueForked,
    QueueNotFound,
    QueueOtherPool,
    QueueTaken,
    QueueTooMany,
    ReadOnly,
    Stale,
    TooLarge,
    TooManyClients,
    TooManyCollisions,
    Unclean,
    Unsafe,
    WrongLength,
)
from .memo import memoize

open = Store
"""Opens a store: see `Store`."""

__all__ = [
    "AlreadyExists",
    "BackupAbandoned",
    "BackupExists",
    "BackupRunning",
    "BadCursor",
    "BadName",
    "BadOption",
    "Busy",
    "Closed",
    "Coded",
    "Coder",
    "Corrupt",
    "Element",
    "Error",
    "Full",
    "Hand",
    "Handle",
    "Hashed",
    "Io",
    "JSON",
    "KEEP",
    "Mismatch",
    "Misuse",
    "NoSpace",
    "NotANumber",
    "NotAStore",
    "NotFound",
    "OutOfMemory",
    "PICKLE",
    "Poisoned",
    "Pool",
    "Queue",
    "QueueBadOption",
    "QueueBroken",
    "QueueDropped",
    "QueueExists",
    "QueueForked",
    "QueueNotFound",
    "QueueOtherPool",
    "QueueTaken",
    "QueueTooMany",
    "RAW",
    "ReadOnly",
    "Record",
    "REMOVE",
    "Reservation",
    "Scan",
    "Stale",
    "Store",
    "TooLarge",
    "TooManyClients",
    "TooManyCollisions",
    "Uid",
    "Unclean",
    "Unsafe",
    "Verdict",
    "View",
    "WrongLength",
    "__version__",
    "memoize",
    "open",
    "path_of",
    "remove",
]
