"""Handles that are open in this process: closed when it ends, so that the last of all processes leaves the file clean."""

from __future__ import annotations

import atexit
import sys
import weakref
from typing import Any, Dict, Protocol


class Closable(Protocol):
    def close(self) -> None: ...


# By address: a mapping has no hash.
_open: Dict[int, "weakref.ref[Any]"] = {}
_in_multiprocessing = False


def opened(handle: Closable) -> None:
    """Has a handle closed at the end."""
    address = id(handle)
    _open[address] = weakref.ref(handle, lambda _: _open.pop(address, None))
    _tell_multiprocessing()


def close_all() -> None:
    """Closes them."""
    for reference in list(_open.values()):
        handle = reference()
        if handle is not None:
            handle.close()


def _tell_multiprocessing() -> None:
    """A child of `multiprocessing` ends without `atexit`, but runs finalizers of its own."""
    global _in_multiprocessing
    util = sys.modules.get("multiprocessing.util")
    if util is None or _in_multiprocessing:
        return
    _in_multiprocessing = True
    util.Finalize(None, close_all, exitpriority=-1000)
    # A forked child forgets the finalizers of its parent, and calls this.
    util.register_after_fork(_again, lambda _: util.Finalize(None, close_all, exitpriority=-1000))


class _Again:
    """Something to register that lives as long as the module."""


_again = _Again()
atexit.register(close_all)
