"""Each test gets a folder of its own in shared memory, which goes with it."""

import os
import random
import shutil
import sys
import tempfile
import time

import pytest

import hashmere


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    path = tempfile.mkdtemp(prefix="hashmere-python-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    os.chmod(path, 0o700)
    monkeypatch.setenv("HASHMERE_DIR", path)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def store(folder):
    with hashmere.open("test") as store:
        yield store
        if not store.closed:
            assert store.check() == []


@pytest.fixture
def in_time():
    """Calls with a time to live, and with longer ones until it took less: nothing can have expired before its end."""

    def call(act, seconds=0.03):
        while True:
            start = time.monotonic()
            result = act(seconds)
            if time.monotonic() - start < seconds / 2:
                return result, seconds
            seconds *= 2

    return call


@pytest.fixture
def seed():
    """Printed with a failing test; HASHMERE_SEED replays it."""
    seed = int(os.environ.get("HASHMERE_SEED", "0"), 0) or random.SystemRandom().getrandbits(32)
    print(f"HASHMERE_SEED={seed}", file=sys.stderr)
    return seed
