"""The frameworks as they are used: in a server that forks its workers behind the application that it loaded."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

# Only ends what hangs.
PATIENCE = 120


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    path = tempfile.mkdtemp(prefix="hashmere-frameworks-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    os.chmod(path, 0o700)
    monkeypatch.setenv("HASHMERE_DIR", path)
    yield path
    shutil.rmtree(path)


def until(condition, what):
    """The first true value of a condition."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, what()
        time.sleep(0.02)


class Process:
    """A server of this test, with its log."""

    def __init__(self, folder, *command):
        self._path = os.path.join(folder, "log")
        environment = {**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(__file__), "applications")}
        with open(self._path, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command], stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def log(self):
        with open(self._path) as log:
            return log.read()

    def said(self, pattern):
        """What it said first that matches."""

        def find():
            assert self._process.poll() is None, self.log()
            return re.search(pattern, self.log())

        return until(find, self.log)

    def children(self):
        done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True)
        return [int(pid) for pid in done.stdout.split()]

    def end(self):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)


@pytest.fixture
def process(folder):
    """Starts servers; they end with the test."""
    started = []

    def start(*command):
        started.append(Process(folder, *command))
        return started[-1]

    yield start
    [each.end() for each in started]


@pytest.fixture
def serve(process):
    """Serves an application of this folder with gunicorn, its workers forked behind the loaded application. Returns the URL and the
    process."""

    def start(application):
        server = process("gunicorn", "--preload", "--workers", "2", "--threads", "2", "--bind", "127.0.0.1:0", application)
        return server.said(r"Listening at: (http://\S+)")[1], server

    return start
