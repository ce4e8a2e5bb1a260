"""Runs the programs of README.md on one store: run.py SEED NAME COMMAND... [-- NAME COMMAND...]...

Beside those that work, one of each language writes forever; they are killed one after the other while the others work.
"""

import itertools
import random
import subprocess
import sys
import time
from typing import Dict, List

import hashmere

SUMS, STEPS, SECONDS = 2000, 200, 600


def programs(words: List[str]) -> Dict[str, List[str]]:
    groups = [list(group) for is_mark, group in itertools.groupby(words, lambda word: word == "--") if not is_mark]
    return {group[0]: group[1:] for group in groups}


def wait_for_noise(store: hashmere.Store, names: List[str]) -> None:
    end = time.monotonic() + SECONDS
    while not all(f"noise:{name}" in store for name in names):
        assert time.monotonic() < end, "those that are to be killed never began"
        time.sleep(0.005)


def judge(store: hashmere.Store, names: List[str]) -> None:
    assert store["sum"] == str(SUMS * len(names)).encode(), store["sum"]
    assert all(store[f"sum:{name}"] == str(SUMS).encode() for name in names)
    assert store["cas"] == str(STEPS * len(names)).encode(), store["cas"]
    lines = store["log"].split(b";")[:-1]
    assert sorted(lines) == sorted(name.encode() for name in names for _ in range(STEPS)), lines
    assert "refs" not in store, "a reference was given back too seldom or too often"
    noise = {key for key in store.keys() if key.startswith(b"noise:")}
    stray = {key for key in noise if key.split(b":")[1].decode() not in names}
    assert not stray, stray
    report = store.check()
    assert not report, report


def main() -> None:
    seed, commands = int(sys.argv[1]), programs(sys.argv[2:])
    chance, names = random.Random(seed), list(commands)
    all_names = ",".join(names)
    with hashmere.open("together") as store:
        path = store.path
        store["cas"] = "0"
        for _ in names:
            store.inc_ref("refs")
        doomed = [subprocess.Popen([*command, path, name, "forever"]) for name, command in commands.items()]
        workers: Dict[str, subprocess.Popen[bytes]] = {}
        try:
            wait_for_noise(store, names)
            workers = {name: subprocess.Popen([*command, path, name, all_names]) for name, command in commands.items()}
            chance.shuffle(doomed)
            for process in doomed:
                time.sleep(chance.uniform(0.02, 0.2))
                assert process.poll() is None, f"one that was to be killed ended by itself: {process.args}"
                process.kill()
                process.wait()
            failed = [name for name, process in workers.items() if process.wait(SECONDS) != 0]
            assert not failed, f"failed: {failed}"
            judge(store, names)
        finally:
            for process in [*doomed, *workers.values()]:
                process.kill()
                process.wait()
            store.remove()


if __name__ == "__main__":
    print(f"together: seed {sys.argv[1]}")
    main()
