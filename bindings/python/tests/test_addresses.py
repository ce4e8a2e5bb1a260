"""Hundreds of stores in one process, which all grow; and a process that may have no more addresses: `AddressSpace`, and nothing else."""

import subprocess
import sys

import pytest

import hashmere

STORES = 400

LIMITED = """
import resource, sys, hashmere
store = hashmere.open(sys.argv[1])
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + (48 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
value = b"v" * 100_000
try:
    for number in range(10_000):
        store[str(number)] = value
except hashmere.AddressSpace as error:
    assert error.code == 13 and isinstance(error, MemoryError), error
    assert "RLIMIT_AS" in str(error), error
for n in range(number):
    assert store[str(n)] == value, n
assert 10 < number < 1000 and str(number) not in store, number
del store["0"]
print(number)
"""

CACHES = """
import logging, resource, hashmere
from django.conf import settings
options = {"max_bytes": 1 << 30, "coder": "hashmere.RAW"}
settings.configure(CACHES={"default": {"BACKEND": "hashmere.django.HashmereCache", "LOCATION": "django", "OPTIONS": options}})
from django.core.cache import cache
from hashmere.cachelib import HashmereCache
refused = [(HashmereCache("cachelib", coder=hashmere.RAW, max_bytes=1 << 30), []), (cache, ["k"])]
for other, _ in refused:
    other.set("k", b"small")
value = b"v" * (64 << 20)
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + (32 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
logging.disable()
for other, said in refused:
    try:
        other.store.set("k", value)
        raise SystemExit("the process has addresses for it")
    except hashmere.AddressSpace:
        pass
    assert other.get("k") == b"small"
    assert other.set_many({"k": value}) == said and other.get("k") is None
    assert not other.add("k", value) and other.get("k") is None
    other.set("k", b"again")
    other.set("k", value)
    assert other.get("k") is None
"""


def test_hundreds_of_stores(folder):
    stores = [hashmere.open(f"s{number}", segment_bytes=4096) for number in range(STORES)]
    for number, store in enumerate(stores):
        store["k"] = str(number)
    for store in stores[:: STORES // 4]:
        for number in range(50):
            store[str(number)] = b"x" * (1 << 20)
    with open("/proc/self/maps") as maps:
        assert sum(folder in line for line in maps) == STORES
    for number, store in enumerate(stores):
        assert store["k"] == str(number).encode()
        store.close()


def test_a_process_without_addresses(store):
    done = subprocess.run([sys.executable, "-c", LIMITED, store.path], stdout=subprocess.PIPE, text=True, check=True)
    number = int(done.stdout)
    # Nothing is wrong, and a process that may have more goes on.
    assert len(store) == number - 1
    for n in range(number, 2 * number + 1000):
        store[str(n)] = b"w" * 100_000
    assert store.check() == []


def test_caches_without_addresses(folder):
    """What does not fit the addresses of the process is dropped as what does not fit the cache."""
    pytest.importorskip("django")
    done = subprocess.run([sys.executable, "-c", CACHES], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
