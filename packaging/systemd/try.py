"""What must hold of the units under a running systemd: see scripts/systemd, which runs this in its container."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time

PATIENCE = 60
UNIT = "hashmere.service"


def systemctl(*arguments, check=True):
    done = subprocess.run(["systemctl", *arguments], capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"systemctl {' '.join(arguments)}: {done.stderr}{journal()}")
    return done.stdout.strip()


def journal():
    return subprocess.run(["journalctl", "-u", UNIT, "-n", "30", "--no-pager"], capture_output=True, text=True).stdout


def show(name):
    return systemctl("show", "-p", name, "--value", UNIT)


def pid():
    return int(show("MainPID"))


def must(holds, what):
    print(f"{'ok' if holds else 'NOT'}: {what}", flush=True)
    if not holds:
        print(journal())
        sys.exit(1)


def until(what, holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            must(False, what)
        time.sleep(0.02)
    must(True, what)


def ask(request, address=("127.0.0.1", 11211)):
    """The answer of the server, or nothing while it does not listen."""
    try:
        if isinstance(address, tuple):
            link = socket.create_connection(address, timeout=PATIENCE)
        else:
            link = socket.socket(socket.AF_UNIX)
            link.connect(address)
        with link:
            link.sendall(request + b"quit\r\n")
            answer = b""
            while chunk := link.recv(4096):
                answer += chunk
            return answer
    except (ConnectionError, FileNotFoundError):
        return b""


HERE = b"VALUE k 7 5\r\nhello\r\nEND\r\n"


def has_it(**where):
    return ask(b"get k\r\n", **where) == HERE


def status(field):
    with open(f"/proc/{pid()}/status") as file:
        return next(line.split()[1] for line in file if line.startswith(field + ":"))


def in_its_place(*command):
    """Runs a command where the server runs, with its view of the files."""
    return subprocess.run(["nsenter", "-t", str(pid()), "-m", "--", *command], capture_output=True, text=True)


# A service of its own, without sockets from outside.
systemctl("start", UNIT)
until("started, it listens", lambda: ask(b"set k 7 0 5\r\nhello\r\n") == b"STORED\r\n")
must(has_it(), "what was stored is there")
before = pid()
systemctl("reload", UNIT)
time.sleep(0.2)
must(show("ActiveState") == "active" and pid() == before and has_it(), "reload: the same process goes on")
systemctl("restart", UNIT)
until("restart: warm", has_it)
must(pid() != before, "restart: another process")

before = pid()
os.kill(before, signal.SIGKILL)
until("kill -9: systemd starts another", lambda: pid() not in (0, before))
until("kill -9: nothing is lost", has_it)
must(show("NRestarts") == "1", "kill -9: restarted once")

# What the process may do.
must(status("Uid") != "0" and status("CapEff").strip("0") == "", "another user, without capabilities")
must(status("NoNewPrivs") == "1" and status("Seccomp") == "2", "no new privileges, filtered system calls")
must(os.stat("/dev/shm/hashmere-server").st_mode & 0o777 == 0o700, "its folder is its own")
must(in_its_place("touch", "/usr/x").returncode != 0, "the system is read-only to it")
must(in_its_place("touch", "/dev/shm/hashmere-server/x").returncode == 0, "its store is not")
in_its_place("rm", "/dev/shm/hashmere-server/x")
with open("/tmp/mine", "w"):
    pass
must(in_its_place("test", "-e", "/tmp/mine").returncode != 0, "its temporary folder is its own")
must(os.path.isdir("/run/hashmere"), "its folder in /run is there")

# Options of the administrator: another address, and a socket in the folder that it may write to.
os.makedirs("/etc/systemd/system/hashmere.service.d")
with open("/etc/systemd/system/hashmere.service.d/override.conf", "w") as file:
    file.write("[Service]\nEnvironment=OPTIONS='-p 11300 -l 127.0.0.1 -t 2'\n")
systemctl("daemon-reload")
systemctl("restart", UNIT)
until("with other options, on another port", lambda: has_it(address=("127.0.0.1", 11300)))
os.remove("/etc/systemd/system/hashmere.service.d/override.conf")
systemctl("daemon-reload")

systemctl("stop", UNIT)
must(show("ActiveState") == "inactive" and show("Result") == "success", "stop: it ends in order")
must(ask(b"get k\r\n") == b"", "stop: no process listens")

# With the sockets from systemd.
systemctl("start", "hashmere.socket")
must(show("ActiveState") == "inactive", "with its sockets open it is not started yet")
must(has_it(), "the first connection starts it, and it is warm")
before = pid()
must(has_it(address=("::1", 11211)) and has_it(address="/run/hashmere.sock"), "on all of its sockets")
must(stat.S_IMODE(os.stat("/run/hashmere.sock").st_mode) == 0o660, "the socket is its group's")
systemctl("restart", UNIT)
must(has_it() and pid() != before, "restart: no connection is refused during it")
before = pid()
os.kill(before, signal.SIGKILL)
must(has_it(), "kill -9: a connection waits for the next")
until("kill -9: it is another process", lambda: pid() not in (0, before))
systemctl("stop", "hashmere.socket", UNIT)
must(ask(b"get k\r\n") == b"", "stop: no process listens")
score = subprocess.run(["systemd-analyze", "security", "--no-pager", UNIT], capture_output=True, text=True).stdout
print(next((line.strip() for line in score.splitlines() if "exposure level" in line), ""))
