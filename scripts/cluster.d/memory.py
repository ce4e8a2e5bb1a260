"""What a key of 20 bytes with a value of 100 takes, all memory included, and how long a killed server is away.

Usage: memory.py HASHMERE FOLDER KEYS MEGABYTES [memcached] [redis]
"""

import os
import socket
import subprocess
import sys
import time

COMMAND, FOLDER, KEYS, MEGABYTES, OTHERS = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:]
BATCH = 1000
VALUE = b"v" * 100
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port():
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def connect(port):
    deadline = time.time() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            assert time.time() < deadline, "the server does not listen"
            time.sleep(0.0003)


def fill(port, request, answer):
    with connect(port) as stream, stream.makefile("rb") as replies:
        for start in range(0, KEYS, BATCH):
            stream.sendall(b"".join(request % (key, VALUE) for key in range(start, start + BATCH)))
            for _ in range(BATCH):
                got = replies.readline()
                assert got == answer, got


def resident(process):
    """Memory of its own: without what it maps from files."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))


SET = b"set key:%016d 0 0 100\r\n%s\r\n"
port = free_port()
serve = [COMMAND, "serve", "memory", "-m", MEGABYTES, "-l", "127.0.0.1", "-p", str(port)]
environment = dict(os.environ, HASHMERE_DIR=f"{FOLDER}/memory")
process = subprocess.Popen(serve, env=environment, **QUIET)
try:
    fill(port, SET, b"STORED\r\n")
    files = [os.stat(os.path.join(folder, name)).st_blocks * 512 for folder, _, names in os.walk(f"{FOLDER}/memory") for name in names]
    print(f"Hashmere: {KEYS} keys, {(sum(files) + resident(process)) / KEYS:.0f} bytes each")
    times = []
    for _ in range(5):
        process.kill()
        process.wait()
        start = time.time()
        process = subprocess.Popen(serve, env=environment, **QUIET)
        with connect(port) as stream:
            stream.sendall(b"get key:%016d\r\n" % (KEYS - 1))
            assert stream.recv(4096).startswith(b"VALUE"), "the key is gone"
        times.append((time.time() - start) * 1000)
    print("Hashmere: killed, started, the first value after", ", ".join(f"{ms:.0f}" for ms in sorted(times)), "ms")
finally:
    process.kill()
    process.wait()

for other in OTHERS:
    port = free_port()
    command, request, answer = {
        "memcached": (["memcached", "-u", "root", "-m", MEGABYTES, "-U", "0", "-l", "127.0.0.1", "-p", str(port)], SET, b"STORED\r\n"),
        "redis": (
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            b"*3\r\n$3\r\nSET\r\n$20\r\nkey:%016d\r\n$100\r\n%s\r\n",
            b"+OK\r\n",
        ),
    }[other]
    process = subprocess.Popen(command, **QUIET)
    try:
        fill(port, request, answer)
        print(f"{other}: {KEYS} keys, {resident(process) / KEYS:.0f} bytes each")
    finally:
        process.kill()
        process.wait()
