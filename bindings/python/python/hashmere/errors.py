"""What can go wrong: one class for each code. The codes are the same in every language and never change their meaning.

Each is a `hashmere.Error`, and where Python has a class for the kind of thing, one of those too.
"""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """Any error of a store."""

    code: int = 0
    """The stable number."""


class NotFound(Error, FileNotFoundError):
    """There is no such store, and the call was not allowed to create it."""

    code = 1


class AlreadyExists(Error, FileExistsError):
    """There is such a store, and the call was only allowed to create it."""

    code = 2


class NotAStore(Error, ValueError):
    """The file is not a store, or not one that this version may open."""

    code = 3


class OptionMismatch(Error, ValueError):
    """The store was created with another value of an option."""

    code = 4


class BadOption(Error, ValueError):
    """An option has a value that no store can have."""

    code = 5


class TooManyClients(Error):
    """All client slots are taken by living processes."""

    code = 6


class BadName(Error, ValueError):
    """The name is not one that a store can have."""

    code = 7


class InsecurePermissions(Error, PermissionError):
    """The file or its folder is not safe to use."""

    code = 8


class NotCleanlyClosed(Error):
    """The file was in use when the machine went down."""

    code = 9


class Io(Error, OSError):
    """The system refused."""

    code = 10


class NoSpace(Error, OSError):
    """The file system, or a limit of this process, has no room."""

    code = 12


class AddressSpace(Error, MemoryError):
    """This process has no addresses for the file; the text names the limit."""

    code = 13


class Corrupt(Error):
    """The file contradicts itself; `Store.check` says where."""

    code = 20


class Stale(Error, LookupError):
    """The UID or entry id names a key that is not there any more."""

    code = 21


class OutOfMemory(Error, MemoryError):
    """The value does not fit the memory of this process."""

    code = 22


class BadCursor(Error, ValueError):
    """The cursor is not one that a scan of this store returned."""

    code = 23


class BadPattern(Error, ValueError):
    """A pattern that cannot match as it was meant."""

    code = 24


class BadPart(Error, ValueError):
    """A part of a scan that does not exist."""

    code = 25


class ReadOnly(Error, PermissionError):
    """The store was opened read-only."""

    code = 30


class Full(Error):
    """The store is at its maximum size and nothing can be cleaned."""

    code = 31


class Busy(Error, TimeoutError):
    """A living process holds the lock of this key for longer than the busy timeout."""

    code = 32
    pid: int = 0
    """The process, as it is numbered in its own PID namespace."""


class TooLarge(Error, ValueError):
    """Key and value together are too long."""

    code = 33


class WrongLength(Error, ValueError):
    """The store has a fixed key or value length, and this is another."""

    code = 34


class NotANumber(Error, ValueError):
    """A counter call met a value that is not a number of its kind of counter."""

    code = 35


class TooManyCollisions(Error):
    """Too many keys share the same hash bits for the index to separate."""

    code = 36


class InvalidState(Error):
    """A call that does not fit this store or this moment."""

    code = 37


class Poisoned(Error):
    """A durable store could not be written to disk earlier, so what is there is not known."""

    code = 38


class Reentered(Error, RuntimeError):
    """A function given to ``update`` or ``update_with`` wrote the key that it was asked about."""

    code = 39


class Conflict(Error):
    """Others changed each time what a transaction or a snapshot read."""

    code = 40


class TooManyKeys(Error):
    """A transaction has more keys than it may."""

    code = 41


class Overflow(Error, OverflowError):
    """A counter would be beyond the numbers of its kind; it stays as it is."""

    code = 42


class BackupRunning(Error):
    """Another backup of this store is being made."""

    code = 50
    pid: int = 0
    """By this process, as it is numbered in its own PID namespace."""


class BackupAbandoned(Error):
    """A write needed the room that the backup held back, so the backup was given up."""

    code = 51


class BackupExists(Error, FileExistsError):
    """There is a file under the name of the copy already."""

    code = 52


class QueueNotFound(Error, LookupError):
    """There is no such pool."""

    code = 60


class QueueExists(Error, ValueError):
    """There is such a pool or queue, of other sizes or another kind."""

    code = 61


class QueueBadOption(Error, ValueError):
    """A size, a name or an option that cannot be."""

    code = 62


class QueueTooMany(Error):
    """All queues, endpoints or places are taken."""

    code = 63


class QueueTaken(Error):
    """Another endpoint is the only producer or consumer of this queue."""

    code = 64


class QueueForked(Error):
    """The pool was opened before a fork: open it again in this process."""

    code = 65


class QueueRemoved(Error):
    """The pool, or the set of atomics, was removed."""

    code = 66


class QueueOtherPool(Error, ValueError):
    """The queue is of another pool than the endpoint."""

    code = 67


class QueueBroken(Error):
    """A participant is gone that others counted on, or the key holds something else."""

    code = 68


class QueueReentered(Error, RuntimeError):
    """``once`` was called for a key whose value this thread is computing."""

    code = 69


class LogNotFound(Error, LookupError):
    """There is no such log."""

    code = 70


class LogBadOption(Error, ValueError):
    """A size, a level or an option of a log that cannot be."""

    code = 71


class LogTooMany(Error):
    """Every ring of the log belongs to a living thread."""

    code = 72


class LogTaken(Error):
    """Another process drains the log."""

    code = 73
    pid: int = 0
    """This one, as it is numbered in its own PID namespace."""


class LogTooLong(Error, ValueError):
    """The line is longer than the log takes in one piece."""

    code = 74


class LogFull(Error, TimeoutError):
    """The thread's ring was full for as long as the line would wait."""

    code = 75


class LogRemoved(Error):
    """The log was removed."""

    code = 76


class LogOutput(Error, OSError):
    """What the drainer writes to failed; the lines stay in the log."""

    code = 77


class LogReentered(Error):
    """A line was logged by a thread that was logging another."""

    code = 78


class FeedOff(Error):
    """The store keeps no changes."""

    code = 80


class BadToken(Error, ValueError):
    """A text that is no token of a feed."""

    code = 81


class Malformed(Error, ValueError):
    """A line of a dump that is no record."""

    code = 91


class Closed(Error, ValueError):
    """The handle was closed."""

    code = 101


BY_CODE: Dict[int, Type[Error]] = {error.code: error for error in Error.__subclasses__()}
"""The class for each code."""
