"""One loop of bench/instructions: instructions.py OPERATION COUNT."""

import sys

import hashmere

KEYS = [str(number).encode() for number in range(10_000)]
BATCHES = [KEYS[begin : begin + 1000] for begin in range(0, len(KEYS), 1000)]
PAIRS = [[(key, key) for key in batch] for batch in BATCHES]
operation, count = sys.argv[1], int(sys.argv[2])


def run(store, table):
    """Every loop draws its keys in the same way, so that the empty one can be taken off."""
    rounds = range(count // len(KEYS))
    if operation == "none":
        for _ in rounds:
            for key in KEYS:
                pass
    elif operation == "store[key] = value":
        for _ in rounds:
            for key in KEYS:
                store[key] = key
    elif operation == "dict[key] = value":
        for _ in rounds:
            for key in KEYS:
                table[key] = key
    elif operation == "store[key] == value":
        for _ in rounds:
            for key in KEYS:
                store[key] == key  # noqa: B015
    elif operation == "dict[key] == value":
        for _ in rounds:
            for key in KEYS:
                table[key] == key  # noqa: B015
    elif operation == "set_many":
        for _ in rounds:
            for pairs in PAIRS:
                store.set_many(pairs)
    elif operation == "get_many":
        for _ in rounds:
            for batch in BATCHES:
                store.get_many(batch)
    else:
        sys.exit(f"no operation {operation!r}")


with hashmere.open("instructions") as store:
    table = {}
    for key in KEYS:
        store[key] = key
        table[key] = key
    run(store, table)
    for key in KEYS:
        if store[key] != key or table[key] != key:
            sys.exit(f"{key!r} has another value")
hashmere.remove("instructions")
