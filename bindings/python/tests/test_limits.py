"""Rate limiters: what they promise for any interval, in one process and in several."""

import multiprocessing
import random
from datetime import timedelta

import pytest

import hashmere
from hashmere.limits import Decision, SlidingWindow, TokenBucket

SECOND = 1_000_000_000


class Clock:
    def __init__(self, now=1_700_000_000 * SECOND):
        self.now = now

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += round(seconds * SECOND)


# Records expire by the machine's clock: what is longer than these tests take does not in them.
def test_a_bucket(store):
    clock = Clock()
    bucket = TokenBucket(store, rate=2e-3, burst=3, clock=clock)
    assert bucket.peek("a") == Decision(True, 3, 0, 0)
    assert [bucket.take("a").remaining for _ in range(3)] == [2, 1, 0]
    assert bucket.take("a") == Decision(False, 0, 500, 1500) and not bucket.take("a")
    assert bucket.take("b", 3) and not bucket.peek("b")
    clock.pass_(500)
    assert bucket.take("a") == Decision(True, 0, 0, 1500)
    clock.pass_(1200)
    assert bucket.take("a", 3) == Decision(False, 2, 300, 300) and bucket.take("a", 2)
    bucket.reset("a")
    assert bucket.peek("a", 3).remaining == 3
    assert store["limit:b"] == b"%d" % (1_700_001_500 * SECOND)


def test_a_window(store):
    clock = Clock(6000 * 60 * SECOND)
    window = SlidingWindow(store, limit=4, period=3600, clock=clock)
    assert window.peek("a") == Decision(True, 4, 0, 0)
    assert window.take("a", 3) == Decision(True, 1, 0, 3660)
    assert store["limit:a"] == b"6000 3"
    clock.pass_(1815)
    assert window.take("a", 2) == Decision(False, 1, 1845, 1845) and window.take("a")
    assert store["limit:a"] == b"6030 1" + b" 0" * 29 + b" 3"
    clock.pass_(1830)
    assert window.take("a") == Decision(False, 0, 15, 1815)
    clock.pass_(15)
    assert window.take("a", 3) == Decision(True, 0, 0, 3660)
    assert store["limit:a"] == b"6061 3" + b" 0" * 30 + b" 1"
    clock.pass_(60_000)
    assert window.peek("a") == Decision(True, 4, 0, 0) and window.take("a", 4)


@pytest.mark.parametrize("kind", ["bucket", "window"])
def test_no_interval_has_more_than_is_promised(store, kind, seed):
    random_ = random.Random(seed)
    for round_ in range(30):
        clock = Clock()
        limit, period = random_.randint(1, 20), random_.choice([1e3, 86400.5, 1e6])
        if kind == "bucket":
            limiter = TokenBucket(store, rate=limit / period, burst=limit, clock=clock)
        else:
            limiter = SlidingWindow(store, limit=limit, period=period, clock=clock)
        taken = []
        for _ in range(150):
            clock.pass_(random_.choice([0, 0, period / 60, period * random_.random() / limit, period * random_.random()]))
            cost = random_.randint(1, limit)
            before = limiter.peek(str(round_), cost)
            decision = limiter.take(str(round_), cost)
            assert decision.allowed == before.allowed and (decision.allowed or decision == before)
            if decision:
                taken.append((clock.now, cost))
            else:
                # As much is allowed at the time that it says, and not a nanosecond earlier.
                now, wait = clock.now, round(decision.retry_after * SECOND)
                clock.now = now + wait - 1
                assert wait > 0 and not limiter.peek(str(round_), cost)
                clock.now = now + wait
                assert limiter.peek(str(round_), cost)
                clock.now = now
        for begin, _ in taken:
            for span in (period / 3, period):
                within = sum(cost for at, cost in taken if begin <= at < begin + round(span * SECOND))
                assert within <= (limit if kind == "window" else limit + limit * span / period), (begin, span)


def test_clocks_that_are_set(store):
    clock = Clock()
    bucket = TokenBucket(store, rate=1e-3, burst=5, clock=clock)
    window = SlidingWindow(store, limit=5, period=6000, clock=clock, prefix="window:")
    assert bucket.take("a", 5) and window.take("a", 5)
    clock.pass_(-100_000_000)
    assert bucket.peek("a") == Decision(False, 0, 1000, 5000) and window.peek("a").retry_after > 6000
    assert bucket.take("a") == Decision(False, 0, 1000, 5000) and 6000 < window.take("a").retry_after <= 6100
    clock.pass_(6100)
    assert bucket.take("a", 5) and window.take("a", 5)


def test_what_is_refused(store):
    for options in ({"rate": 0, "burst": 1}, {"rate": -1, "burst": 1}, {"rate": float("nan"), "burst": 1}, {"rate": 1e7, "burst": 1}):
        with pytest.raises(ValueError, match="rate has to be"):
            TokenBucket(store, **options)
    with pytest.raises(ValueError, match="burst has to be"):
        TokenBucket(store, rate=1, burst=0)
    with pytest.raises(ValueError, match="limit has to be"):
        SlidingWindow(store, limit=0, period=1)
    for period in (0, -1, float("inf"), float("nan"), timedelta(0)):
        with pytest.raises(ValueError, match="period has to be"):
            SlidingWindow(store, limit=1, period=period)
    bucket = TokenBucket(store, rate=1, burst=5)
    window = SlidingWindow(store, limit=5, period=timedelta(minutes=1))
    for cost in (0, -1, 6):
        for limiter in (bucket, window):
            with pytest.raises(ValueError, match=f"a cost of {cost} is never allowed: it has to be from 1 to 5"):
                limiter.take("a", cost)
    assert len(store) == 0
    for value in (b"", b"x", b"-1", b"1_0", b"1 2", b" 1"):
        store["limit:a"] = value
        with pytest.raises(ValueError, match="limit:a.* is not that of a TokenBucket: choose another prefix"):
            bucket.take("a")
        assert store["limit:a"] == value
    for value in (b"", b"x", b"1", b"1 -2", b"1  2"):
        store["limit:a"] = value
        with pytest.raises(ValueError, match="is not that of a SlidingWindow"):
            window.peek("a")


def test_keys_go_when_they_mean_nothing(store):
    TokenBucket(store, rate=0.005, burst=5).take("a", 5)
    SlidingWindow(store, limit=5, period=3600).take("b")
    assert 900 < store.ttl("limit:a") <= 1000.002 and 3600 < store.ttl("limit:b") <= 3661


def take_all(path, allowed):
    with hashmere.open(path, create=False) as store:
        bucket = TokenBucket(store, rate=1e-6, burst=500)
        window = SlidingWindow(store, limit=300, period=1e6, prefix="window:")
        allowed.put((sum(bool(bucket.take("k")) for _ in range(400)), sum(bool(window.take("k")) for _ in range(400))))


def test_processes_share_them(store):
    spawning = multiprocessing.get_context("spawn")
    allowed = spawning.Queue()
    processes = [spawning.Process(target=take_all, args=(store.path, allowed)) for _ in range(3)]
    [process.start() for process in processes]
    numbers = [allowed.get(timeout=300) for _ in processes]
    [process.join() for process in processes]
    assert [sum(column) for column in zip(*numbers)] == [500, 300]
