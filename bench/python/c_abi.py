"""Times `get` and `set` on one store: of the package, of the C extension in c_abi.c, and `get` by ctypes. Called by c_abi: c_abi.py FOLDER ROUNDS."""

import ctypes
import statistics
import sys
import threading
import time

import hashmere

folder, rounds = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, folder)
import c_abi  # noqa: E402

KEYS = [str(number).encode() for number in range(10_000)]
LENGTHS = (8, 1000, 20_000)

library = ctypes.CDLL(f"{folder}/lib/libhashmere.so.0")
library.hm_open.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p]
library.hm_get.argtypes = [
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p,
]  # fmt: skip


def by_ctypes(name):
    handle, length = ctypes.c_void_p(), ctypes.c_size_t()
    if library.hm_open(name.encode(), None, ctypes.byref(handle), None) != 0:
        sys.exit("ctypes: hm_open failed")
    buffer, at = ctypes.create_string_buffer(max(LENGTHS)), ctypes.byref(length)

    def get(key):
        if library.hm_get(handle, key, len(key), buffer, max(LENGTHS), at, None) != 0:
            return None
        return ctypes.string_at(buffer, length.value)

    return get, lambda: library.hm_close(handle, None)


def nanoseconds(call, arguments):
    """Processor time of a call: what other processes take of the core does not count. Once before, for the caches."""
    for _ in range(2):
        start = time.process_time_ns()
        for each in arguments:
            call(*each)
        spent = time.process_time_ns() - start
    return spent / len(arguments)


def compare(what, calls, arguments):
    """Each with its median, and the median of its ratio to the package within a round, so that drift of the machine cancels."""
    times = {name: [] for name in calls}
    names = list(calls)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            times[name].append(nanoseconds(calls[name], arguments))
    ratios = {name: statistics.median(a / b for a, b in zip(times[name], times["package"])) for name in names}
    print(f"  {what}: " + ", ".join(f"{name} {statistics.median(times[name]):.0f} ({ratios[name]:.2f}x)" for name in names))


def beside_a_thread(call, key):
    """Time of a set, all the time of it, while a thread of Python code runs."""
    running, count, times = [True], 100, []

    def compute():
        while running:
            pass

    thread = threading.Thread(target=compute)
    thread.start()
    for _ in range(21):
        start = time.perf_counter_ns()
        for _ in range(count):
            call(key, b"12345678")
        times.append((time.perf_counter_ns() - start) / count)
        time.sleep(0.002)
    running.clear()
    thread.join()
    return statistics.median(times)


with hashmere.open("c-abi") as store:
    c_abi.open("c-abi")
    ctypes_get, close = by_ctypes("c-abi")
    print(f"Python {sys.version.split()[0]}, {len(KEYS)} keys, ns with the loop: medians of {rounds} interleaved rounds")
    for length in LENGTHS:
        values = {key: key.ljust(length, b".") for key in KEYS}
        store.set_many(values)
        gets = {"package": store.get, "C extension": c_abi.get, "ctypes": ctypes_get}
        for name, get in gets.items():
            if any(get(key) != value for key, value in values.items()):
                sys.exit(f"{name}: a wrong value")
        compare(f"get of {length:5} bytes", gets, [(key,) for key in KEYS])
        compare(f"set of {length:5} bytes", {"package": store.set, "C extension": c_abi.set}, list(values.items()))
    print("  set of     8 bytes while another thread computes: " + ", ".join(
        f"{name} {beside_a_thread(call, KEYS[0]):.0f}" for name, call in {"package": store.set, "C extension": c_abi.set}.items()
    ))  # fmt: skip
    c_abi.close()
    close()
hashmere.remove("c-abi")
