"""Hundreds of stores in one process, which all grow; and a process that may have no more addresses: `AddressSpace`, and nothing else."""

import subprocess
import sys

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
    # Nothing is wrong, and whoever may have more goes on.
    assert len(store) == number - 1
    for n in range(number, 2 * number + 1000):
        store[str(n)] = b"w" * 100_000
    assert store.check() == []
