"""The systems of the benchmark as two functions each: set a key, get a key. Each is called as its own documentation does it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import Any, Callable, List, Tuple

Draws = List[Tuple[Any, bytes]]
Loop = Callable[[Draws], None]


class Wrong(Exception):
    """A value that was read is not the one that was stored."""


class Mapping:
    """Anything with ``[]``."""

    # What the process spends: while others have the core, nothing is counted.
    clock = staticmethod(time.process_time)

    def __init__(self, mapping: Any) -> None:
        self.mapping = mapping

    def set(self, draws: Draws) -> None:
        mapping = self.mapping
        for key, value in draws:
            mapping[key] = value

    def get(self, draws: Draws) -> None:
        mapping = self.mapping
        for key, value in draws:
            if mapping[key] != value:
                raise Wrong(key)

    def both(self, draws: Draws) -> None:
        mapping = self.mapping
        for key, value in draws:
            mapping[key] = value
            if mapping[key] != value:
                raise Wrong(key)

    def close(self) -> None:
        pass


class Empty(Mapping):
    """The loop alone."""

    def set(self, draws: Draws) -> None:
        for key, value in draws:
            pass

    get = both = set


class Hashmere(Mapping):
    def __init__(self, folder: str) -> None:
        import hashmere

        super().__init__(hashmere.open(f"{folder}/bench.mere"))

    def close(self) -> None:
        self.mapping.remove()


class HashmereMany(Hashmere):
    """A thousand keys with each call: the counterpart of a thousand in a transaction. Others go on between the calls."""

    batch = 1000

    def set(self, draws: Draws) -> None:
        set_many = self.mapping.set_many
        for start in range(0, len(draws), self.batch):
            set_many(draws[start : start + self.batch])

    def get(self, draws: Draws) -> None:
        get_many = self.mapping.get_many
        for start in range(0, len(draws), self.batch):
            part = draws[start : start + self.batch]
            for (key, value), found in zip(part, get_many([key for key, _ in part])):
                if found != value:
                    raise Wrong(key)

    def both(self, draws: Draws) -> None:
        for start in range(0, len(draws), self.batch):
            part = draws[start : start + self.batch]
            self.set(part)
            # What was drawn twice has the same value.
            self.get(part)


class DiskCache(Mapping):
    def __init__(self, folder: str) -> None:
        import diskcache

        super().__init__(diskcache.Cache(f"{folder}/diskcache"))

    def close(self) -> None:
        self.mapping.close()


class Lmdb:
    """One operation in a transaction, as every write of the others is one that all processes see."""

    batch = 1
    clock = staticmethod(time.process_time)

    def __init__(self, folder: str) -> None:
        import lmdb

        self.env = lmdb.open(f"{folder}/lmdb", map_size=1 << 28, sync=False, writemap=True)

    def set(self, draws: Draws) -> None:
        env = self.env
        for start in range(0, len(draws), self.batch):
            with env.begin(write=True) as transaction:
                put = transaction.put
                for key, value in draws[start : start + self.batch]:
                    put(key, value)

    def get(self, draws: Draws) -> None:
        env = self.env
        for start in range(0, len(draws), self.batch):
            with env.begin() as transaction:
                get = transaction.get
                for key, value in draws[start : start + self.batch]:
                    if get(key) != value:
                        raise Wrong(key)

    def both(self, draws: Draws) -> None:
        env = self.env
        for start in range(0, len(draws), self.batch):
            with env.begin(write=True) as transaction:
                put, get = transaction.put, transaction.get
                for key, value in draws[start : start + self.batch]:
                    put(key, value)
                    if get(key) != value:
                        raise Wrong(key)

    def close(self) -> None:
        self.env.close()


class LmdbBatch(Lmdb):
    """A thousand operations in a transaction: no other process sees or does anything before its end."""

    batch = 1000


class Memcached:
    """pymemcache over a Unix socket, with a server of its own."""

    # Its server works in another process, for which this one waits.
    clock = staticmethod(time.perf_counter)

    def __init__(self, folder: str) -> None:
        from pymemcache.client.base import Client

        socket = f"{folder}/memcached.sock"
        user = ["-u", "root"] if os.getuid() == 0 else []
        self.server = subprocess.Popen([shutil.which("memcached") or "memcached", "-s", socket, "-m", "64", *user])
        while not os.path.exists(socket):
            time.sleep(0.01)
        self.client = Client(f"unix:{socket}")

    def set(self, draws: Draws) -> None:
        client = self.client
        for key, value in draws:
            client.set(key, value)

    def get(self, draws: Draws) -> None:
        client = self.client
        for key, value in draws:
            if client.get(key) != value:
                raise Wrong(key)

    def both(self, draws: Draws) -> None:
        client = self.client
        for key, value in draws:
            client.set(key, value)
            if client.get(key) != value:
                raise Wrong(key)

    def close(self) -> None:
        self.client.close()
        self.server.terminate()
        self.server.wait()


# Name, how to make it, whether its keys may be text, which part of the operations it gets.
SYSTEMS = {
    "loop": (lambda folder: Empty(None), True, 1),
    "dict": (lambda folder: Mapping({}), True, 1),
    "hashmere": (Hashmere, True, 1),
    "hashmere-many": (HashmereMany, False, 1),
    "lmdb": (Lmdb, False, 10),
    "lmdb-batch": (LmdbBatch, False, 1),
    "pymemcache": (Memcached, True, 100),
    "diskcache": (DiskCache, True, 100),
}
