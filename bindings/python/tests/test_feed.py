"""The change feed: events of each kind, resuming, a place that is gone, transactions, clears, waits, event loops, errors."""

import asyncio
import select
import signal
import threading
import time

import pytest

import hashmere
import hashmere.aio


@pytest.fixture
def fed(folder):
    with hashmere.open("fed", feed=1 << 20, feed_values=True, origin=7) as store:
        yield store


def texts(feed):
    """What there is."""
    found = []
    while True:
        event = feed.next(0)
        if event is None:
            return found
        if event.key is None:
            found.append(event.kind)
        else:
            found.append(" ".join([event.operation, event.key.decode(), *([] if event.value is None else [event.value.decode()])]))


def test_every_key_then_the_changes(fed):
    fed["a"] = "1"
    with fed.feed("start", values=True) as feed:
        reset = feed.next(0)
        assert (reset.kind, reset.reason, reset.token, reset.key) == ("reset", "asked", None, None)
        assert texts(feed) == ["read a 1", "synced"]
        fed.set("b", "two", flags=9, expires_at=9_000_000_000)
        fed.set(hashmere.HashedKey("h", 77), "v")
        del fed["a"]
        assert feed.lag == 3
        event = feed.next(60)
        assert event[:6] == ("change", "set", b"b", b"two", "bytes", 3)
        assert (event.version, event.flags, event.origin) == (fed.version("b"), 9, 7)
        assert event.expires_at_ms == 9_000_000_000_000 and event.transaction is None and event.supplied_hash is None
        assert abs(event.ts_ms / 1000 - time.time()) < 60 and event.token == feed.token
        assert feed.next(0).supplied_hash == 77
        event = feed.next(0)
        assert (event.operation, event.value, event.value_state) == ("delete", None, "absent")
        assert feed.lag == 0 and feed.next(0.01) is None and not feed.closed
    assert feed.closed
    with pytest.raises(hashmere.Closed):
        feed.next(0)


def test_a_prefix_without_values(fed):
    with fed.feed(prefix="user:") as feed:
        fed.update({"page:1": "x", "user:1": "Ada"})
        event = feed.next(0)
        assert (event.key, event.value, event.value_state, event.value_len) == (b"user:1", None, "not_kept", 3)
        fed.clear()
        assert texts(feed) == ["clear"]


def test_resuming_and_transactions(fed):
    with fed.feed(values=True) as feed:
        before = feed.token
        batch = hashmere.WriteBatch()
        batch.set("a", "1")
        batch.set("b", "2")
        fed.write_batch(batch)
        fed["c"] = "3"
        first, second = feed.next(0), feed.next(0)
        ident = first.transaction.id
        assert [first.transaction, second.transaction] == [hashmere.FeedTransaction(ident, index, 2) for index in (0, 1)]
    for token, rest in [(before, ["set a 1", "set b 2", "set c 3"]), (second.token, ["set c 3"])]:
        with fed.feed(token, values=True) as feed:
            assert texts(feed) == rest
    with fed.feed(first.token, values=True) as feed:
        assert len(texts(feed)) == 3  # whole again


def test_a_place_that_is_gone(fed, folder):
    with fed.feed() as feed:
        token = feed.token
    for number in range(60_000):
        fed["k"] = str(number)
    with fed.feed(token, values=True) as feed:
        assert feed.next(0).reason == "gone"
        assert texts(feed) == ["read k 59999", "synced"]
    with hashmere.open("other", feed=1 << 20) as other, other.feed(token) as feed:
        assert feed.next(0).reason == "other_feed"


def test_off_and_on(store):
    assert hashmere.Feed.info(store) is None and not hashmere.Feed.disable(store)
    with pytest.raises(hashmere.FeedOff, match="`feed`") as raised:
        store.feed()
    assert raised.value.code == 80
    with pytest.raises(hashmere.InvalidState, match="1 MiB"):
        hashmere.Feed.enable(store, 5)
    with pytest.raises(hashmere.BadOption, match="1 MiB"):
        hashmere.open("small", feed=5)
    hashmere.Feed.enable(store, 1 << 20, values=True)
    info = hashmere.Feed.info(store)
    assert info.values and info.position == info.oldest and info.number > 0
    with pytest.raises(hashmere.BadToken, match="`yesterday`") as raised:
        store.feed("yesterday")
    assert raised.value.code == 81 and isinstance(raised.value, ValueError)
    with store.feed() as feed:
        assert hashmere.Feed.disable(store)
        with pytest.raises(hashmere.FeedOff):
            feed.next(0)


def test_other_threads_run_while_it_waits(fed):
    with fed.feed(values=True) as feed:
        timer = threading.Timer(0.1, fed.set, ("late", "1"))
        timer.start()
        assert next(feed).key == b"late"
        timer.join()


def test_signals_are_heard(fed):
    class Rung(Exception):
        pass

    def ring(*_):
        raise Rung

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with fed.feed() as feed:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Rung):
                feed.next()
            fed["a"] = "1"
            assert feed.next(60).key == b"a"
    finally:
        signal.signal(signal.SIGALRM, before)


def readable(feed, timeout):
    return bool(select.select([feed], [], [], timeout)[0])


def test_a_descriptor(fed):
    with fed.feed(values=True) as feed:
        assert not readable(feed, 0.02)
        for _ in range(3):
            fed["a"] = "1"
            assert readable(feed, 60)
            assert texts(feed) == ["set a 1"]
            assert not readable(feed, 0.02)


def test_asyncio(fed):
    async def follow():
        keys = []
        async for event in hashmere.aio.feed(fed, values=True):
            keys.append(event.key)
            if len(keys) == 3:
                return keys

    async def write():
        for number in range(3):
            await asyncio.sleep(0.02)
            fed["k%d" % number] = "v"

    async def both():
        task = asyncio.ensure_future(follow())
        await asyncio.sleep(0)
        await write()
        return await asyncio.wait_for(task, 60)

    assert asyncio.run(both()) == [b"k0", b"k1", b"k2"]
