"""What is done with a store that is not open, in one call: by its name or path, as `hashmere.open` takes it."""

from __future__ import annotations

import builtins
from typing import Any, Dict, List, Optional

from ._store import Path, Store


def check(name: Path, /) -> List[str]:
    """What `Store.check` returns, of a store that is opened read-only for the call."""
    with Store(name, read_only=True) as store:
        return store.check()


def stats(name: Path, /) -> Dict[str, Any]:
    """What `Store.stats` returns, of a store that is opened read-only for the call."""
    with Store(name, read_only=True) as store:
        return store.stats()


def backup(name: Path, path: Path, /, *, replace: bool = False) -> Dict[str, Any]:
    """What `Store.backup` does, with a store that is opened for the call; none is created."""
    with Store(name, create=False) as store:
        return store.backup(path, replace=replace)


def dump(name: Path, path: Path, /, *, format: Optional[str] = None, **which: Any) -> int:
    """What `Store.dump` does, with a store that is opened read-only for the call."""
    with Store(name, read_only=True) as store:
        return store.dump(path, format=format, **which)


def load(name: Path, path: Path, /, *, format: Optional[str] = None, **options: Any) -> int:
    """What `Store.load` does, with a store that is opened for the call with these options of `hashmere.open`, and created if it is
    missing. A file that cannot be opened creates no store."""
    builtins.open(path, "rb").close()
    with Store(name, **options) as store:
        return store.load(path, format=format)
