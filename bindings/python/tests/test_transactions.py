"""Several keys at one moment: batches, conditions, transactions, snapshot reads."""

import math
import os
import random
import threading

import pytest

import hashmere
from hashmere import Condition, Transaction, WriteBatch


def test_batch(store):
    batch = WriteBatch()
    assert len(batch) == 0 and store.write_batch(batch) == []
    batch.set("a", "1").set(b"b", bytearray(b"x"), ttl=100, flags=7).incr("a", 4).incr("made", 2, initial=40).incr("no")
    batch.incr("made", -3).append("b", "z").prepend("b", "w").append("no", "x").touch("made", 50).delete("no").get("b")
    batch.get("no").delete("a")
    assert len(batch) == 14
    results = store.write_batch(batch)
    item = results.pop(11)
    assert item[:4] == (b"b", b"wxz", 0, 7) and item.uid == 0
    assert isinstance(results[1], int) and results[1] > 0
    assert results[2:] == [5, 40, None, 37, True, True, False, True, False, None, True]
    assert store.get_many(["b", "made", "a", "no"]) == [b"wxz", b"37", None, None]
    assert 0 < store.ttl("made") <= 50
    assert len(store.write_batch(batch)) == 14
    batch.clear()
    assert len(batch) == 0
    assert [item.value for item in store.write_batch(WriteBatch().set("e", "é").get("e").set("n", "").get("n"))[1::2]] == ["é".encode(), b""]


def test_every_kind_of_counter(store):
    batch = WriteBatch().incr_signed("s", 1, initial=-2, flags=3).incr_signed("s", -5).incr_signed("no").incr_float("no", 1)
    batch.incr_float("f", 1, initial=0.1).incr_float("f", 0.2)
    assert store.write_batch(batch) == [-2, -7, None, None, 0.1, 0.3]
    assert store["s"] == b"-7" and store["f"] == b"0.3" and store.get_item("s").flags == 3

    def count(t: Transaction) -> tuple:
        assert t.incr_signed("no") is None and t.incr_float("no", 1) is None
        return t.incr_signed("s"), t.incr_float("f", -1), t.incr_float("new", 1, initial=2, ttl=50)

    assert store.transaction(count) == (-6, -0.7, 2.0)
    assert store["s"] == b"-6" and store["f"] == b"-0.7" and 0 < store.ttl("new") <= 50
    for error, bad in [(hashmere.Overflow, WriteBatch().incr_signed("s", -(2**63))), (hashmere.NotANumber, WriteBatch().incr_signed("f")),
                       (hashmere.InvalidState, WriteBatch().incr_float("f", math.inf))]:
        with pytest.raises(error):
            store.write_batch(bad.set("s", "x"))
    for error, wrong in [(TypeError, lambda t: t.incr_signed("s", 0.5)), (OverflowError, lambda t: t.incr_signed("s", 2**63)),
                         (TypeError, lambda t: t.incr_float("s", "1"))]:
        with pytest.raises(error):
            store.transaction(wrong)
    assert store["s"] == b"-6"


def test_batch_that_cannot_be(store):
    store["text"] = "x"
    with pytest.raises(hashmere.NotANumber) as error:
        store.write_batch(WriteBatch().set("a", "1").incr("text"))
    assert error.value.code == 35 and "a" not in store
    many = WriteBatch()
    for i in range(1024):
        many.set(f"key{i}", "x")
    assert len(store.write_batch(many)) == 1024
    many.delete("one more")
    with pytest.raises(hashmere.TooManyKeys):
        store.write_batch(many)
    for bad in [lambda: many.set(1, "x"), lambda: many.set("a", 1), lambda: many.get(hashmere.HashedKey("a", 1)), lambda: many.incr("a", "x"),
                lambda: many.set("a", "x", ttl=1, expires_at=1), lambda: store.write_batch("no batch"), lambda: store.write_batch(None)]:
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(OverflowError):
        many.incr("a", 2**63)
    assert len(many) == 1025


def test_conditions(store):
    store["leader"] = "me"
    holds = [
        Condition.present("leader"), Condition.value(b"leader", "me"), Condition.version("leader", store.version("leader")),
        Condition.absent("other"), Condition.version("other", 0),
    ]
    take, look = WriteBatch().set("leader", "you"), WriteBatch().get("leader")
    assert store.write_batch_if(holds, take, look) == (True, [store.version("leader")])
    branch = store.write_batch_if(holds, take, look)
    assert not branch.succeeded and branch.results[0].value == b"you"
    assert store.write_batch_if(holds, take) == (False, [])
    assert store.write_batch_if((), look).succeeded
    assert [store.write_batch_if([one], look).succeeded for one in holds] == [True, False, False, True, True]
    for bad in [["leader"], [("leader", "absent", None)], [("absent", "leader")], [Condition.value("leader", None)], [Condition.absent(3)]]:
        with pytest.raises(TypeError):
            store.write_batch_if(bad, take)
    with pytest.raises(TypeError):
        store.write_batch_if(holds, None)
    with pytest.raises(OverflowError):
        store.write_batch_if([Condition.version("leader", -1)], take)
    assert store["leader"] == b"you"


def test_transaction(store):
    store["alice"] = "100"

    def move(t: Transaction) -> str:
        assert t.incr("alice", -30) == 70 and t.incr("bob", 30, initial=30) == 30
        assert t["alice"] == b"70" and "bob" in t and store["alice"] == b"100" and "bob" not in store
        t.set("note", "b", flags=4, ttl=100)
        assert t.append("note", "c") and t.prepend("note", "a") and not t.append("no", "x") and not t.touch("no")
        assert t.get("no") is None and t.get("no", 7) == 7 and t.incr("no") is None and t.touch("note", 50)
        with pytest.raises(KeyError):
            t["no"]
        with pytest.raises(KeyError):
            del t["no"]
        t["never"] = "x"
        del t["never"]
        t["gone"] = "x"
        t.delete("gone")
        assert "never" not in t and "gone" not in t
        return "done"

    assert store.transaction(move) == "done"
    assert dict(store.items()) == {b"alice": b"70", b"bob": b"30", b"note": b"abc"}
    assert store.get_item("note").flags == 4 and 0 < store.ttl("note") <= 50


def test_transaction_that_does_not_happen(store):
    store["a"] = "1"

    def leave_with(error):
        def f(t):
            t["a"] = "2"
            raise error

        return f

    for error in (KeyError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error):
            store.transaction(leave_with(error))
    assert store["a"] == b"1"
    kept = store.transaction(lambda t: t)
    with pytest.raises(hashmere.Closed):
        kept.get("a")
    with pytest.raises(TypeError):
        Transaction()
    with pytest.raises(TypeError):
        store.transaction(lambda t: t.set("a", 1))
    with pytest.raises(TypeError):
        store.transaction(lambda t: t.get(hashmere.HashedKey("a", 1)))
    store.close()
    with pytest.raises(hashmere.Closed):
        store.transaction(lambda t: None)


def test_transaction_that_runs_again(store):
    store["a"] = "1"
    runs = []

    def copy(t):
        seen = t["a"]
        if not runs:
            store["a"] = "2"
        runs.append(seen)
        t["b"] = seen

    store.transaction(copy)
    assert runs == [b"1", b"2"] and store["b"] == b"2"
    # What was raised because of what it saw too early is not raised; a second look is no different.
    def fail(t):
        raise KeyError

    for then in (fail, lambda t: t["a"]):
        runs.clear()

        def early(t):
            t["a"]
            runs.append(1)
            if len(runs) == 1:
                store["a"] = "x"
                then(t)

        store.transaction(early)
        assert len(runs) == 2
    runs.clear()

    def interrupted(t):
        t["a"]
        store["a"] = "y"
        runs.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.transaction(interrupted)
    assert len(runs) == 1
    with pytest.raises(hashmere.NotANumber):
        store.transaction(lambda t: t.incr("a"))


def test_bank(store):
    accounts = [f"account:{i}" for i in range(20)]
    store.set_many((account, "1000") for account in accounts)

    def clerk(seed):
        chance = random.Random(seed)

        def move(t):
            if t[source] != b"0":
                t.incr(source, -1)
                t.incr(target)

        for _ in range(500):
            source, target = chance.choice(accounts), chance.choice(accounts)
            store.transaction(move)

    children = []
    for seed in range(2):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                clerk(seed)
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    threads = [threading.Thread(target=clerk, args=(seed,)) for seed in (7, 8)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        assert sum(int(item.value) for item in store.get_many_snapshot(accounts)) == 20_000
    for thread in threads:
        thread.join()
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    assert store.get_many_snapshot(iter(["account:1", "no"])) == [store.get_item("account:1"), None]
    assert store.get_many_snapshot([]) == []
    with pytest.raises(TypeError):
        store.get_many_snapshot([hashmere.HashedKey("a", 1)])


def test_use_by_another_thread(store):
    batch = WriteBatch()
    for i in range(1000):
        batch.set(f"{i}", "x" * 1000)
    failed = []

    def write():
        for _ in range(50):
            try:
                store.write_batch(batch)
            except hashmere.InvalidState:
                pass  # it is being changed
            except Exception as error:
                failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        try:
            batch.set("0", "y")
            batch.clear()
            batch.set("0", "y")
        except hashmere.InvalidState:
            pass  # it is being written
    thread.join()
    assert not failed
