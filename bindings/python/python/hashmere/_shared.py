"""Handles that objects of frameworks share: these make one for each thread or request, and opening is the dear part."""

from __future__ import annotations

import threading
from typing import Any, Dict, Mapping, Tuple

from ._store import Store

_stores: Dict[Tuple[str, str], Store] = {}
_opening = threading.Lock()


def shared(name: str, options: Mapping[str, Any]) -> Store:
    """The handle of this process for a store with these options, opened when it is first asked for."""
    which = (name, repr(sorted(options.items())))
    store = _stores.get(which)
    if store is None or store.closed:
        with _opening:
            store = _stores.get(which)
            if store is None or store.closed:
                store = _stores[which] = Store(name, **options)
    return store
