"""Several processes and threads use one store: forked, spawned, killed, with the interpreter's lock released where one waits.
Catches handles that do not survive a fork, lost updates, deadlocks, and threads that stop each other."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

import hashmere


def count(store, name, times):
    for _ in range(times):
        store.incr(name, initial=1)


def forked(work):
    """Runs it in a forked child and returns the exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_count_together(store, method):
    context = multiprocessing.get_context(method)
    children = [context.Process(target=count, args=(store, "hits", 2000)) for _ in range(3)]
    for child in children:
        child.start()
    count(store, "hits", 2000)
    for child in children:
        child.join(300)
        assert child.exitcode == 0
    assert store["hits"] == b"8000"


def test_a_pool_gets_handles_by_pickling(store):
    store.update({str(n): str(n * n) for n in range(100)})
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(store.get, [str(n) for n in range(100)]) == [b"%d" % (n * n) for n in range(100)]


def test_pickled_handles_keep_what_they_are(store):
    store["k"] = "v"
    with hashmere.open("test", read_only=True, busy_timeout=0.5) as reader:
        again = pickle.loads(pickle.dumps(reader))
        assert again.read_only and again["k"] == b"v" and again.path == reader.path
        again.close()
    coded = pickle.loads(pickle.dumps(store.coded()))
    coded["n"] = [1, 2]
    assert store["n"] == b"[1,2]"
    store.remove()
    with pytest.raises(hashmere.NotFound):
        pickle.loads(pickle.dumps(again.__class__("other")).replace(b"other", b"othex"))


def test_fork_in_the_middle_of_everything(store):
    store["k"] = "before"
    scan = store.scan()
    view = store.view("k")

    def child():
        assert store["k"] == b"before" and view == b"before" and next(scan)[0] == b"k"
        store["child"] = "was here"
        with store.view("child") as own:
            assert own == b"was here"
        store.close()
        with pytest.raises(hashmere.Closed):
            store["k"]

    assert forked(child) == 0
    assert store["child"] == b"was here" and view == b"before"


def test_a_fork_of_a_closed_handle(store):
    store.close()

    def child():
        with pytest.raises(hashmere.Closed):
            store["k"]

    assert forked(child) == 0


def test_a_child_goes_on_when_its_parent_is_gone(store):
    def parent():
        if os.fork():
            return
        time.sleep(0.1)
        for n in range(1000):
            store[str(n)] = "v" * 100
        store["done"] = "yes"
        os._exit(0)

    assert forked(parent) == 0
    end = time.monotonic() + 120
    while "done" not in store and time.monotonic() < end:
        time.sleep(0.01)
    assert store["done"] == b"yes" and len(store) == 1001


def test_killed_writers_leave_whole_values(store, seed):
    code = (
        "import sys, hashmere\n"
        "store = hashmere.open('test')\n"
        "print('ready', flush=True)\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    store['k'] = bytes([n % 256]) * 5000\n"
        "    store.incr('n', initial=1)\n"
    )
    for n in range(5):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        time.sleep((seed + n) % 7 / 100)
        child.kill()
        child.wait()
        child.stdout.close()
        value = store.get("k", b"mine")
        assert value == b"mine" or (len(set(value)) == 1 and len(value) == 5000)
        store["k"] = "mine"
        assert store["k"] == b"mine"
    # Locks that crashed processes held and no writer has needed since are no damage, but `check` names them.
    store.compact()


def test_threads_share_a_handle(store):
    threads = [threading.Thread(target=count, args=(store, "hits", 3000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store["hits"] == b"12000"


def test_closing_while_threads_use_the_handle(folder):
    for _ in range(10):
        store = hashmere.open("race")
        store["k"] = b"x" * 300_000

        def use():
            try:
                while True:
                    assert len(store["k"]) == 300_000
                    store["k"] = b"x" * 300_000
                    list(store.scan())
            except hashmere.Closed:
                pass

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.01)
        store.close()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive()


def test_threads_run_while_one_waits_for_a_stopped_process(folder):
    """The lock of a key is held by a process that does not run: a writer waits, and the other threads go on."""
    store = hashmere.open("wait", busy_timeout=0.5)
    store["k"] = "0"
    code = "import hashmere\nstore = hashmere.open('wait')\nprint('ready', flush=True)\nwhile True: store.incr('k')\n"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        ticked = []
        # Stopped at some instruction, it holds the lock in a part of the cases.
        for _ in range(200):
            os.kill(child.pid, signal.SIGSTOP)
            ticks, stop = [], threading.Event()

            def tick():
                while not stop.is_set():
                    ticks.append(time.monotonic())
                    time.sleep(0.001)

            thread = threading.Thread(target=tick)
            thread.start()
            start = time.monotonic()
            try:
                store.incr("k")
                busy = None
            except hashmere.Busy as error:
                busy = error
            waited = time.monotonic() - start
            stop.set()
            thread.join()
            os.kill(child.pid, signal.SIGCONT)
            if busy is not None:
                assert busy.pid == child.pid and isinstance(busy, TimeoutError) and "stopped" in str(busy)
                assert waited > 0.4
                ticked.append(sum(start < t < start + 0.4 for t in ticks))
                # Were they kept from it, there would be ticks only before and after. On a busy machine they may not get a processor.
                if ticked[-1] > 2:
                    break
        else:
            assert not ticked, f"the others did not run: {ticked}"
            pytest.skip("the process was never stopped with the lock")
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    store.incr("k")
    store.close()


def test_the_end_of_the_process_closes_what_is_open(tmp_path):
    """The last process to end leaves the file marked as closed, which is what lets it be used after a restart."""
    path = tmp_path / "end.mere"
    code = "import sys, hashmere\nstore = hashmere.open(sys.argv[1], remove_on_last_close=True)\nstore['k'] = 'v'\n"
    subprocess.run([sys.executable, "-c", code, path], check=True)
    assert not path.exists()
    child = multiprocessing.get_context("fork").Process(target=_leave_open, args=(path,))
    child.start()
    child.join(300)
    assert child.exitcode == 0 and not path.exists()


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_what_an_abrupt_end_leaves_is_removed_by_the_next(tmp_path, end):
    path = tmp_path / "end.mere"
    code = f"import os, sys, hashmere\nstore = hashmere.open(sys.argv[1], remove_on_last_close=True)\nstore['k'] = 'v'\n{end}\n"
    for mode in ({}, {"create_new": True}):
        subprocess.run([sys.executable, "-c", code, path], check=False)
        assert path.exists()
        with hashmere.open(path, **mode) as store:
            assert len(store) == 0
        path.unlink()
    subprocess.run([sys.executable, "-c", code, path], check=False)
    for mode in ({"read_only": True}, {"create": False}):
        with pytest.raises(hashmere.NotFound):
            hashmere.open(path, **mode)
    assert not path.exists()


def _leave_open(path):
    global _left
    _left = hashmere.open(path, remove_on_last_close=True)
    _left["k"] = "v"
