"""Three processes log into one stream, by way of `logging`; a fourth writes it to a file."""

import logging
import multiprocessing
import os
import re
import sys
import tempfile
from typing import Set, Tuple

import hashmere

PROCESSES, LINES = 3, 100
# 2026-11-22T01:12:56.123456Z INFO  python[4711] 3: line 7 logger=worker
LINE = re.compile(r"(\S+Z) (\w+) +.*\[(\d+)\] \d+: line (\d+)")


def worker(store: hashmere.Store) -> None:
    logger = logging.getLogger("worker")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(hashmere.LogHandler(store=store))
    for number in range(LINES):
        logger.info("line %d", number)
        if number % 10 == 0:
            logger.debug("line %d, with all the details", number)


def check(text: str, pids: Set[int]) -> int:
    """Looks at every line; how many are those of debug."""
    seen: Set[Tuple[int, int]] = set()
    last, debug = "", 0
    for line in text.splitlines():
        found = LINE.match(line)
        if found is None:
            sys.exit(f"not a line of the log: {line}")
        time, level, pid, number = found[1], found[2], int(found[3]), int(found[4])
        if time < last:
            sys.exit(f"out of the order of time: {line}")
        last = time
        if level == "DEBUG":
            debug += 1
        elif level != "INFO" or pid not in pids or (pid, number) in seen:
            sys.exit(f"this was not logged, or it is there twice: {line}")
        else:
            seen.add((pid, number))
    if seen != {(pid, number) for pid in pids for number in range(LINES)}:
        sys.exit("a line is lost")
    return debug


if __name__ == "__main__":
    hashmere.remove("sample-log")
    with hashmere.open("sample-log") as store, tempfile.TemporaryDirectory() as folder:
        log = hashmere.Log(store)
        log.level = "info"  # for all processes
        path = os.path.join(folder, "sample.log")
        with log.drain(path):  # at the end it drains the rest
            workers = [multiprocessing.Process(target=worker, args=(store,)) for _ in range(PROCESSES)]
            for process in workers:
                process.start()
            for process in workers:
                process.join()
                if process.exitcode != 0:
                    sys.exit("a worker has failed")
        with open(path) as file:
            debug = check(file.read(), {process.pid for process in workers if process.pid is not None})
        print(f"{PROCESSES * LINES} lines of {PROCESSES} processes, none lost, none twice")
        print("in the order of time, with levels and process ids")
        print(f"the debug lines were not wanted: {debug}")
        log.close()
        store.remove()
