"""One of the programs of README.md."""

import itertools
import sys
import time
from typing import Callable, List

import hashmere

SUMS, STEPS, PATIENCE = 2000, 200, 600.0
HASH = 7  # the same bytes with a hash are another key


def wait_until(what: str, f: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not f():
        assert time.monotonic() < end, what
        time.sleep(0.001)


def greeting(name: str) -> bytes:
    return bytes(range(256)) + name.encode()


def next_number(store: hashmere.Store) -> None:
    while True:
        seen = store.get_item("cas")
        assert seen is not None, "no key `cas`"
        if store.cas("cas", str(int(seen.value) + 1), version=seen.version) is not None:
            return


def read_of(store: hashmere.Store, peer: str) -> None:
    key = f"from:{peer}"
    wait_until("a value of another language never came", lambda: key in store)
    record = store.get_item(key)
    assert record is not None and record.value == greeting(peer), "another language stored other bytes"
    assert record.flags == len(peer), "another language stored other flags"
    assert 2000 < (store.ttl(key) or 0) <= 3600, "another language stored another time to live"
    assert store[hashmere.HashedKey(key, HASH)] == peer.encode(), "another language's key with a hash is another one"
    number = hashmere.EntryId(int(store[f"id:{peer}"]))
    assert store[number] == peer.encode(), "another language's entry id means another value"
    assert store.key_of(number) == key.encode(), "another language's entry id means another key"


def forever(store: hashmere.Store, me: str) -> None:
    for n in itertools.count():
        key = f"noise:{me}:{n % 50}"
        store[key] = chr(ord("a") + n % 26) * (n % 700)
        if n % 7 == 0:
            store.delete(key)
        store.incr(f"noise:{me}", initial=1)


def work(store: hashmere.Store, me: str, all_names: List[str]) -> None:
    store.incr("arrived", initial=1)
    wait_until("the others do not come", lambda: int(store["arrived"]) >= len(all_names))

    for _ in range(SUMS):
        store.incr("sum", initial=1)
        store.incr(f"sum:{me}", initial=1)
    for _ in range(STEPS):
        next_number(store)
        store.update_with("log", lambda old: (old or b"") + f"{me};".encode())
    named = hashmere.HashedKey(f"from:{me}", HASH)
    store[named] = me
    store[f"id:{me}"] = str(int(store.id_of(named) or 0))
    store.set(f"from:{me}", greeting(me), flags=len(me), ttl=3600)
    for peer in all_names:
        read_of(store, peer)

    store.set(f"brief:{me}", "x", ttl=0.05)
    time.sleep(0.08)
    assert f"brief:{me}" not in store, "what had expired was there"
    store.dec_ref("refs")


if __name__ == "__main__":
    path, me, all_names = sys.argv[1:]
    with hashmere.open(path) as opened:
        forever(opened, me) if all_names == "forever" else work(opened, me, all_names.split(","))
