"""Hashmere in Python beside dict, lmdb, pymemcache and diskcache. `make bench-python` or `bindings/python/run bench` calls it.

10,000 keys that are the decimal text of a number; the value of each is its key. They are drawn at random, set, got, and every value
that is read is compared. Keys are bytes; for dict and Hashmere also str. Each system runs in a process of its own, in turns, and
repeats its work: the quickest of these counts, and of the processes the median. The bars come last.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List

from systems import SYSTEMS

KEYS = 10_000
# Each process does everything so often, and the quickest counts: the machine is seldom alone.
REPEATS = 7
# Bars: what, by which system, ratio, and whether it is a ceiling of our time or a floor of our speed.
CEILING = 3.0
FLOORS = {"lmdb": 5.0, "pymemcache": 20.0, "diskcache": 20.0}
# A thousand in a transaction beside a thousand in a call, and beside one in a call.
BATCH_FLOOR = 5.0
WORK = ("set", "get", "both")


def measure(name: str, kind: str, operations: int, folder: str) -> Dict[str, float]:
    """Nanoseconds of one operation of a system, in this process."""
    make, _, part = SYSTEMS[name]
    system = make(folder)
    rng = random.Random(20)
    values = [str(n).encode() for n in range(KEYS)]
    keys: List[Any] = [value.decode() for value in values] if kind == "str" else values
    everything = list(zip(keys, values))
    draws = [rng.choice(everything) for _ in range(max(1000, operations // part))]
    times: Dict[str, float] = {}
    try:
        system.set(everything)
        for work in WORK:
            call = getattr(system, work)
            call(draws)
            best = min(_time(call, draws, system.clock) for _ in range(REPEATS))
            # A pair is two operations.
            times[work] = best / len(draws) * 1e9 / (2 if work == "both" else 1)
    finally:
        system.close()
    return times


def _time(call: Any, draws: Any, clock: Any) -> float:
    start = clock()
    call(draws)
    return clock() - start


def run(name: str, kind: str, operations: int) -> Dict[str, float]:
    """The same in a new process."""
    folder = tempfile.mkdtemp(prefix="hashmere-bench-python-", dir=os.environ.get("BENCH_DIR", "/dev/shm"))
    try:
        command = [sys.executable, __file__, "--one", name, "--keys", kind, "--operations", str(operations), "--folder", folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=600)
        return json.loads(done.stdout)
    finally:
        shutil.rmtree(folder)


def report(results: Dict[str, List[Dict[str, float]]]) -> bool:
    median = {name: {work: statistics.median(r[work] for r in runs) for work in WORK} for name, runs in results.items()}
    print(f"{'ns per operation, medians':28}{'set':>9}{'get':>9}{'set+get':>9}   range of set+get")
    for name, times in median.items():
        both = [run["both"] for run in results[name]]
        print(f"  {name:26}{times['set']:9.0f}{times['get']:9.0f}{times['both']:9.0f}   {min(both):.0f}-{max(both):.0f}")
    print("\nBars")
    passed = True

    def bar(what: str, ratio: float, ok: bool, limit: str) -> None:
        nonlocal passed
        passed = passed and ok
        print(f"  {'PASS' if ok else 'FAIL'}  {what:52}{ratio:7.2f}x  bar {limit}")

    for kind in ("bytes", "str"):
        for work in ("set", "get"):
            ratio = median[f"hashmere, {kind}"][work] / median[f"dict, {kind}"][work]
            bar(f"{work} with {kind} keys: time / dict", ratio, ratio <= CEILING, f"<= {CEILING:g}x")
    for name, floor in FLOORS.items():
        for work in ("set", "get"):
            ratio = median[f"{name}, bytes"][work] / median["hashmere, bytes"][work]
            bar(f"{work}: speed / {name}", ratio, ratio >= floor, f">= {floor:g}x")
    for ours in ("hashmere-many", "hashmere"):
        for work in ("set", "get"):
            ratio = median["lmdb-batch, bytes"][work] / median[f"{ours}, bytes"][work]
            bar(f"{work}: speed of {ours} / lmdb-batch", ratio, ratio >= BATCH_FLOOR, f">= {BATCH_FLOOR:g}x")
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a bar is missed")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--keys", default="bytes", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.keys, options.operations, options.folder)))
        return 0
    lines = [(name, kind) for name in SYSTEMS for kind in ("bytes", "str")]
    lines = [(name, kind) for name, kind in lines if kind == "bytes" or name in ("dict", "hashmere")]
    results: Dict[str, List[Dict[str, float]]] = {f"{name}, {kind}": [] for name, kind in lines}
    print(f"Python {sys.version.split()[0]}, {KEYS} keys, {options.runs} runs in turns, load before {os.getloadavg()[0]:.2f}")
    for round in range(options.runs):
        # Each round begins with another one.
        at = round * 3 % len(lines)
        for name, kind in lines[at:] + lines[:at]:
            results[f"{name}, {kind}"].append(run(name, kind, options.operations))
    passed = report(results)
    print(f"load after {os.getloadavg()[0]:.2f}")
    return 0 if passed or not options.strict else 1


if __name__ == "__main__":
    sys.exit(main())
