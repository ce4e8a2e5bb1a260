"""What gevent does to waits: a wait of a store stops all greenlets, one of `hashmere.gevent` only its own."""

import subprocess
import sys

SCRIPT = """
import gevent.monkey; gevent.monkey.patch_all()
import gevent, hashmere, hashmere.gevent as green
store = hashmere.open({path!r})
store["key"] = "1"
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        gevent.sleep(0.001)
ticker = gevent.spawn(tick)

store.wait("key", store.version("key"), timeout=0.05)
assert ticks == 0, "documented otherwise: a wait of the store lets greenlets run"
assert green.wait(store, "key", store.version("key"), timeout=0.05).timed_out
assert ticks > 0

seen = store.version("key")
waiting = gevent.spawn(green.wait, store, "key", seen, timeout=90)
gevent.sleep(0.01)
store["key"] = "2"
assert waiting.get().version == store.version("key")

count = 0
def add():
    global count
    with green.Mutex(store, "mutex"):
        before = count
        gevent.sleep(0.001)
        count = before + 1
gevent.joinall([gevent.spawn(add) for _ in range(20)], raise_error=True)
assert count == 20, count
held = green.Mutex(store, "mutex")
assert held.acquire() and held.holder
assert not gevent.spawn(lambda: green.Mutex(store, "mutex").acquire(timeout=0.05)).get()
held.release()

calls = []
def compute():
    calls.append(1)
    gevent.sleep(0.01)
    return "value"
values = [one.get() for one in [gevent.spawn(green.once, store, "page", compute) for _ in range(10)]]
assert values == [b"value"] * 10 and calls == [1], (values, calls)

killed = gevent.spawn(green.wait, store, "key", store.version("key"))
gevent.sleep(0.01)
killed.kill()
print("done", flush=True)
"""


def test_greenlets(store):
    # In a process of its own: what gevent patches stays patched.
    ran = subprocess.run([sys.executable, "-c", SCRIPT.format(path=store.path)], capture_output=True, text=True, timeout=100)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
