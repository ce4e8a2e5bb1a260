"""The log: lines of many processes in one stream, and the handler for `logging`."""

import asyncio
import json
import logging
import logging.config
import multiprocessing
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import hashmere
import hashmere.aio
from hashmere import Level

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def log(store):
    with hashmere.Log(store, on_no_drainer="keep") as log:
        yield log


def drained(log):
    """All that waits in the log, as lines."""
    lines = []
    with log.drain(lines.append):
        assert log.flush(120)
    return lines


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_lines_with_fields(log):
    before = time.time_ns()
    assert log.info("started", n=-4, big=2**64 - 1, huge=2**64, half=0.5, yes=True, text="ü", raw=b"x", what=[1], level="l", none=None)
    log.error(b"\xff\xfe")
    log.line("Trace", bytearray(b"all"))
    log.line(4, "")
    first, second, third, fourth = drained(log)
    assert first.fields == {
        "n": -4, "big": 2**64 - 1, "huge": str(2**64), "half": 0.5, "yes": True, "text": "ü", "raw": "x", "what": "[1]", "level": "l",
        "none": "None",
    }  # fmt: skip
    assert list(first.fields)[:3] == ["n", "big", "huge"]
    assert (first.level, first.text, first.pid, first.lost) == (Level.INFO, "started", os.getpid(), 0)
    assert before <= first.time_ns <= time.time_ns() and first.position < second.position
    assert (second.text, second.level, third.text, third.level) == ("\ufffd\ufffd", Level.ERROR, "all", Level.TRACE)
    assert (fourth.level, fourth.text, fourth.fields) == (Level.DEBUG, "", {})
    assert log.stats()["lines"] == 4


def test_levels(log, store):
    assert log.level is Level.TRACE
    log.level = "warn"
    assert log.level is Level.WARN and hashmere.Log(store).level is Level.WARN
    assert not log.info("no") and log.enabled(Level.ERROR) and not log.enabled("debug")
    log.level = None
    assert log.level is None and not log.error("no")
    log.level = Level.DEBUG
    assert log.warn("yes") and [line.text for line in drained(log)] == ["yes"]
    for wrong in ("loud", 0, 6, -1, 2**70):
        with pytest.raises(ValueError):
            log.line(wrong, "x")
    for wrong in (None, 1.5, b"info"):
        with pytest.raises(TypeError):
            log.line(wrong, "x")
    with pytest.raises(TypeError):
        log.info(5)


def test_to_a_file_with_rotation(log, folder):
    path = os.path.join(folder, "out.log")
    with log.drain(path, max_bytes=2000, keep=2):
        for number in range(200):
            log.info(f"line {number}")
            if number % 20 == 0:
                log.flush()
    found = "".join(open(name).read() for name in (path + ".2", path + ".1", path) if os.path.exists(name))
    numbers = [int(number) for number in re.findall(r": line (\d+)\n", found)]
    assert os.path.exists(path + ".1") and not os.path.exists(path + ".3")
    assert numbers == list(range(numbers[0], 200))
    for name in os.listdir(folder):
        if name.startswith("out.log"):
            os.remove(os.path.join(folder, name))


def test_to_a_descriptor_and_as_json(log):
    reader, writer = os.pipe()
    with os.fdopen(reader) as lines, os.fdopen(writer, "w") as out:
        with log.drain(out, format="json", level="warn"):
            log.info("not this")
            log.warn("this", n=1)
        drainer = log.drain(writer)
        log.info("as text")
        assert drainer.active and drainer.stop() == 1 and not drainer.active and drainer.stop() == 0
        out.close()
        first, second = lines.read().splitlines()
    assert json.loads(first)["fields"] == {"n": 1} and json.loads(first)["level"] == "warn"
    assert second.endswith(": as text")
    for wrong in (-1, 10**6):
        with pytest.raises((OSError, ValueError)):
            log.drain(wrong)
    with pytest.raises(TypeError):
        log.drain(1, max_bytes=5)
    with pytest.raises(TypeError):
        log.drain(1.5)


def test_one_drains_and_others_are_standby(log):
    first, second = [], []
    drainer = log.drain(first.append)
    with pytest.raises(hashmere.LogTaken) as taken:
        log.drain(second.append)
    assert taken.value.pid == os.getpid()
    standby = log.drain(second.append, standby=True)
    log.info("a")
    log.flush()
    assert not standby.active and drainer.stop() == 1
    until(lambda: standby.active)
    log.info("b")
    assert standby.stop() == 1
    assert [line.text for line in first + second] == ["a", "b"]


def test_following(log):
    log.info("a")
    follower = log.follow("oldest")
    assert list(follower) == []
    with log.drain(lambda line: None):
        log.info("b")
        assert log.flush(120)
        assert [line.text for line in follower] == ["a", "b"]
        assert [line.text for line in log.follow(1)] == ["b"] and list(log.follow()) == []
        late = log.follow(timeout=120)
        thread = threading.Thread(target=lambda: (time.sleep(0.05), log.info("c")))
        thread.start()
        assert next(late).text == "c" and late.missed_bytes == 0
        thread.join()
    for wrong in ("today", -1, 1.5):
        with pytest.raises(ValueError):
            log.follow(wrong)


def test_a_full_ring(store):
    def small(name, **options):
        return hashmere.Log(store, name, on_no_drainer="keep", rings=4, ring_bytes=4096, **options)

    log = small("block", full_timeout=0.05)
    with pytest.raises(hashmere.LogFull):
        for _ in range(1000):
            log.info("x" * 100)
    # While it waits, others run: the function that takes the lines is one of them.
    log, lines = small("waits"), []
    with log.drain(lines.append):
        for number in range(2000):
            log.info(f"{number:0100}")
    assert [int(line.text) for line in lines] == list(range(2000))
    log = small("drop", on_full="drop")
    assert not all([log.info("x" * 100) for _ in range(100)])
    kept = len(drained(log))
    log.info("after")
    (after,) = drained(log)
    assert after.lost == 100 - kept
    log = small("overwrite", on_full="overwrite")
    assert all([log.info(f"{number:0100}") for number in range(100)])
    assert int(drained(log)[-1].text) == 99
    log = small("refuse", on_too_long="refuse")
    with pytest.raises(hashmere.LogTooLong):
        log.info("x" * 5000)
    log = small("split")
    log.info("ü" * 1500)
    parts = drained(log)
    assert "".join(line.text for line in parts) == "ü" * 1500
    assert parts[0].is_continued and not parts[0].is_continuation and parts[-1].is_continuation


def test_opening(store, log):
    assert hashmere.Log.list(store) == ["log"] and log.name == "log" and log.line_max == 16384
    with pytest.raises(hashmere.LogNotFound):
        hashmere.Log(store, "other", create=False)
    for wrong in ({"on_full": "x"}, {"on_no_drainer": "x"}, {"on_too_long": "x"}, {"rings": 0}, {"full_timeout": -1}):
        with pytest.raises(ValueError):
            hashmere.Log(store, "other", **wrong)
    with pytest.raises(ValueError):
        log.drain(format="xml")
    again = pickle.loads(pickle.dumps(log))
    again.info("through another handle")
    assert [line.text for line in drained(log)] == ["through another handle"]
    again.close()
    with pytest.raises(hashmere.Closed):
        again.info("x")
    assert hashmere.Log.remove(store, "log") and not hashmere.Log.remove(store, "log")


def log_and_die(store, ready):
    log = hashmere.Log(store, on_no_drainer="keep")
    for number in range(100):
        log.info(f"line {number}")
    ready.set()
    time.sleep(1000)


def test_lines_of_a_crashed_process_come_out(store, log):
    ready = SPAWN.Event()
    child = SPAWN.Process(target=log_and_die, args=(store, ready), daemon=True)
    child.start()
    assert ready.wait(120)
    child.kill()
    child.join()
    lines = drained(log)
    assert [line.text for line in lines] == [f"line {number}" for number in range(100)]
    assert {line.pid for line in lines} == {child.pid}


def drain_and_die(store, path, ready):
    drainer = hashmere.Log(store, on_no_drainer="keep").drain(path)
    ready.set()
    time.sleep(1000)
    drainer.stop()


def test_a_killed_drainer_is_replaced(store, log, folder):
    path, ready = os.path.join(folder, "out.log"), SPAWN.Event()
    child = SPAWN.Process(target=drain_and_die, args=(store, path, ready), daemon=True)
    child.start()
    assert ready.wait(120)
    for number in range(500):
        log.info(f"line {number}")
        if number == 250:
            child.kill()
    child.join()
    log.drain(path).stop()
    with open(path) as file:
        assert [int(n) for n in re.findall(r": line (\d+)\n", file.read())] == list(range(500))
    os.remove(path)


def test_forked_children_log_too(log):
    log.info("parent")
    lines = []
    drainer = log.drain(lines.append)
    child = os.fork()
    if child == 0:
        log.info("child")
        drainer.close()
        os._exit(0)
    os.waitpid(child, 0)
    log.info("parent again")
    drainer.stop()
    assert [line.text for line in lines] == ["parent", "child", "parent again"]
    assert [line.pid for line in lines] == [os.getpid(), child, os.getpid()]


def test_what_a_function_raises_is_reported(log, monkeypatch):
    told, seen = [], []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    def take(line):
        seen.append(line.text)
        raise KeyError(line.text)

    with log.drain(take):
        log.info("a")
        log.info("b")
    assert seen == ["a", "b"] and [type(what.exc_value) for what in told] == [KeyError, KeyError]


def test_letting_go_of_a_drainer_drains(log):
    lines = []
    drainer = log.drain(lines.append)
    log.info("a")
    del drainer
    assert [line.text for line in lines] == ["a"]


def run(script, *arguments):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), *arguments], capture_output=True, text=True, timeout=300)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def test_the_end_of_a_process_drains(store):
    script = """
        import hashmere, logging, sys
        store = hashmere.open(sys.argv[1])
        log = hashmere.Log(store)
        pool = hashmere.Pool(store, "pool", elements=1, bytes=1)
        ready = pool.queue("todo").ready_fd()
        drainer = log.drain(lambda line: print(line.text, line.fields, flush=True))
        logging.basicConfig(handlers=[hashmere.LogHandler(log)], level="INFO", format="%(message)s")
        logging.info("to the last")
    """
    assert run(script, store.path) == "to the last {'logger': 'root'}\n"
    # Without a drainer it goes to standard output, between what Python prints.
    script = """
        import hashmere, sys
        print("before", flush=True)
        hashmere.Log(hashmere.open(sys.argv[1])).info("here")
        print("after")
    """
    assert re.fullmatch(r"before\n\S+ INFO +\S+ \d+: here\nafter\n", run(script, store.path))


# The handler


@pytest.fixture
def logger(log):
    logger = logging.Logger("app")
    logger.addHandler(hashmere.LogHandler(log))
    return logger


def test_levels_and_fields_of_a_logger(logger, log):
    logger.info("%d jobs", 3, extra={"user": "Ada", "ms": 1.5, "ok": True, "who": ValueError("x")})
    logger.warning("w")
    logger.critical("c")
    logger.log(5, "t")
    logger.log(25, "between")
    logger.debug("d")
    logger.error("e")
    lines = drained(log)
    assert lines[0].text == "3 jobs" and lines[0].fields == {"logger": "app", "user": "Ada", "ms": 1.5, "ok": True, "who": "x"}
    levels = [Level.INFO, Level.WARN, Level.ERROR, Level.TRACE, Level.INFO, Level.DEBUG, Level.ERROR]
    assert [line.level for line in lines] == levels
    assert [line.fields.get("level") for line in lines] == [None, None, "CRITICAL", "Level 5", "Level 25", None, None]


def test_a_traceback_is_part_of_the_record(logger, log):
    try:
        1 / 0
    except ZeroDivisionError:
        logger.exception("failed")
    (line,) = drained(log)
    text = line.text.splitlines()
    assert text[:2] == ["failed", "Traceback (most recent call last):"] and text[-1] == "ZeroDivisionError: division by zero"


def test_what_is_not_wanted_is_not_formatted(logger, log):
    class Never:
        def __str__(self):
            raise AssertionError

    log.level = "info"
    logger.debug("%s", Never())
    logger.info("x")
    assert [line.text for line in drained(log)] == ["x"]


def test_the_handler_never_raises(logger, log, monkeypatch):
    failed = []
    monkeypatch.setattr(hashmere.LogHandler, "handleError", lambda self, record: failed.append(sys.exc_info()[0]))
    logger.info("%d", "x")

    class Bad:
        def __str__(self):
            raise RuntimeError

    logger.info("x", extra={"bad": Bad()})
    log.close()
    logger.info("x")
    for handler in logger.handlers:
        handler.flush()
        handler.close()
    assert failed == [TypeError, RuntimeError, hashmere.Closed]


def test_long_and_odd_records(logger, log):
    logger.info("x" * 20000)
    logger.info("half \ud800 of a character", extra={"field": "\ud800"})
    *parts, odd = drained(log)
    assert "".join(line.text for line in parts) == "x" * 20000 and all(line.fields == {} for line in parts)
    assert odd.text == "half \\ud800 of a character" and "logger" in odd.fields


def test_by_a_dict(store):
    name = "hashmere-test-by-a-dict"
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"short": {"format": "%(name)s: %(message)s"}},
            "handlers": {
                "shared": {
                    "class": "hashmere.LogHandler",
                    "store": store.path,
                    "name": "app",
                    "on_no_drainer": "keep",
                    "formatter": "short",
                    "level": "INFO",
                }
            },
            "loggers": {name: {"handlers": ["shared"], "level": "DEBUG", "propagate": False}},
        }
    )
    logger = logging.getLogger(name)
    logger.info("hello")
    logger.debug("no")
    (handler,) = logger.handlers
    assert [line.text for line in drained(handler.log)] == [f"{name}: hello"]
    logger.removeHandler(handler)
    handler.close()
    assert handler.log.closed
    for wrong in ({}, {"log": handler.log, "store": store}, {"log": handler.log, "on_no_drainer": "keep"}):
        with pytest.raises(TypeError):
            hashmere.LogHandler(**wrong)


def test_signals_are_heard_while_it_follows(log):
    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(Alarm):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            next(log.follow(timeout=None))
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_log_in_an_event_loop(log):
    async def main():
        seen, followed = [], []
        task = asyncio.ensure_future(hashmere.aio.drain(log, seen.append))

        async def follow():
            async for line in hashmere.aio.follow(log):
                followed.append(line.text)
                if len(followed) == 20:
                    return

        follower = asyncio.ensure_future(follow())
        await asyncio.sleep(0.02)
        with pytest.raises(hashmere.LogTaken):
            log.drain_manual()
        for number in range(20):
            log.info(f"line {number}")
            await asyncio.sleep(0.002)
        await asyncio.wait_for(follower, 300)
        log.info("the rest")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [line.text for line in seen] == followed + ["the rest"] and len(followed) == 20

    asyncio.run(main())
    assert log.stats()["drainer"] is None


def test_a_manual_drainer(log, tmp_path):
    manual = log.drain_manual(tmp_path / "lines", format="json")
    ready = select.poll()
    ready.register(manual.fileno(), select.POLLIN)
    assert not ready.poll(10)
    log.info("one")
    assert ready.poll(300_000)
    lines = 0
    while lines == 0:
        lines += manual.poll()
    assert not ready.poll(10) and json.loads((tmp_path / "lines").read_text())["text"] == "one"
    log.info("two")
    manual.wait(300)
    assert manual.close() == 1 and manual.closed and manual.close() == 0
    with pytest.raises(hashmere.Closed, match="the drainer was closed"):
        manual.poll()


def test_what_a_thread_dropped_last_is_reported_when_it_has_ended(store):
    with hashmere.Log(store, ring_bytes=4096, on_full="drop", on_no_drainer="keep") as log:
        thread = threading.Thread(target=lambda: [log.info("x" * 500) for _ in range(20)])
        thread.start()
        thread.join()
        # Python's join returns while the thread of the operating system still gives back what it has.
        until(lambda: not log.rings()[0]["owned"])
        (ring,) = log.rings()
        assert (ring["ring"], ring["owned"], ring["thread"], ring["pid"]) == (0, False, 1, os.getpid())
        *lines, note = drained(log)
        assert note.is_note and note.thread == 1 and len(lines) + note.lost == 20 and not any(line.is_note for line in lines)


def test_names_and_times_that_cannot_be(store):
    for name in ("", "a\0b", "x" * 129):
        with pytest.raises(hashmere.LogBadOption, match="1 to 128 bytes"):
            hashmere.Log(store, name)
        with pytest.raises(hashmere.QueueBadOption, match="1 to 128 bytes"):
            hashmere.Pool(store, name, elements=1, bytes=8)
    log = hashmere.Log(store, full_timeout=1e30)
    log.level = None
    assert log.level is None and log.info("not logged") is False
    log.level = "trace"
    assert log.level is Level.TRACE
    log.close()
    with pytest.raises(hashmere.Closed, match="the log was closed"):
        log.info("x")


def test_a_store_that_is_too_small_says_what_a_log_needs(folder):
    with hashmere.Store("small", max_bytes=3 << 20) as store:
        with pytest.raises(hashmere.Full, match="the log needs 5[0-9]* bytes in one piece"):
            hashmere.Log(store)
