"""Every operation of the engine through Python: what it returns, and what it leaves."""

import datetime
import math
import time

import pytest

import hashmere
from hashmere import KEEP, REMOVE


def test_add_and_replace(store):
    assert store.replace("k", "1") is None and "k" not in store
    first = store.add("k", "1")
    assert first and store.add("k", "2") is None and store["k"] == b"1"
    assert store.replace("k", "3") > first and store["k"] == b"3"


def test_append_and_prepend(store):
    assert store.append("k", "x") is None and store.prepend("k", "x") is None
    store.set("k", "b", flags=5, ttl=100)
    assert store.append("k", "c") and store.prepend("k", b"a")
    record = store.get_item("k")
    assert (record.value, record.flags) == (b"abc", 5) and record.expires_at is not None


def test_take_and_conditional_delete(store):
    version = store.set("k", "v")
    assert not store.delete("k", version=version + 1) and not store.delete("k", expected="w")
    assert store.delete("k", expected="v") and not store.delete("k")
    version = store.set("k", "v")
    assert store.delete("k", version=version)
    store["k"] = "v"
    assert store.take("k") == b"v" and store.take("k") is None and store.take("k", 3) == 3


def test_compare_and_set(store):
    version = store.set("k", "1")
    assert store.cas("k", "2", version=version + 1) is None
    second = store.cas("k", "2", version=version, flags=9)
    assert second > version and store.version("k") == second and store.get_item("k").flags == 9
    assert store.cas("k", "3", expected="1") is None and store.cas("k", "3", expected="2")
    assert store.cas("absent", "3", expected="2") is None and store.version("absent") is None
    assert store.cas("new", "1", version=0) and store["new"] == b"1", "version 0 is that of an absent key"
    assert store.cas("new", "2", version=0) is None and store["new"] == b"1"
    assert not store.delete("no", version=0) and not store.delete("new", version=0)
    with pytest.raises(TypeError):
        store.cas("k", "v")
    with pytest.raises(TypeError):
        store.cas("k", "v", version=1, expected="2")


def test_modify(store):
    assert store.update_with("k", lambda old: "new" if old is None else None) == b"new"
    assert store.update_with("k", lambda old: old + b"er") == b"newer"
    assert store.update_with("k", lambda old: KEEP) == b"newer" and store["k"] == b"newer"
    assert store.update_with("k", lambda old: "x", ttl=100, flags=3) == b"x" and store.get_item("k").flags == 3
    assert store.update_with("k", lambda old: REMOVE) is None and "k" not in store
    assert store.update_with("k", lambda old: KEEP) is None

    def fails(old):
        raise ZeroDivisionError("on purpose")

    store["k"] = "stays"
    with pytest.raises(ZeroDivisionError):
        store.update_with("k", fails)
    assert store["k"] == b"stays"


def test_modify_may_use_the_store_and_even_close_it(store):
    def nested(old):
        store["other"] = "1"
        return store["other"]

    assert store.update_with("k", nested) == b"1"

    def closes(old):
        store.close()
        return "last"

    assert store.update_with("k", closes) == b"last"
    with pytest.raises(hashmere.Closed):
        store["k"]
    with hashmere.open("test") as again:
        assert again["k"] == b"last"


def test_modify_of_its_own_key(store):
    writes = [
        lambda: store.__setitem__("k", "x"),
        lambda: store.set_many({"k": "x"}),
        lambda: store.delete("k"),
        lambda: store.append("k", "x"),
        lambda: store.incr("k"),
        lambda: store.cas("k", "x", expected="v"),
        lambda: store.touch("k", 5),
        lambda: store.update_with("k", lambda old: "x"),
        lambda: store.update_with("b", lambda old: store.set("k", "x")),
        lambda: store.clear(),
    ]

    def selfish(old):
        for write in writes:
            with pytest.raises(hashmere.Reentered, match='"k"'):
                write()
        assert store["k"] == b"v"
        store["b"] = "written"
        store.update_with("c", lambda old: "too")
        return old + b"!"

    store["k"] = "v"
    assert store.update_with("k", selfish) == b"v!"
    assert (store["k"], store["b"], store["c"]) == (b"v!", b"written", b"too")
    with pytest.raises(hashmere.Reentered):
        store.update_with("k", lambda old: store.set("k", "x"))
    with pytest.raises(hashmere.Reentered):
        store.update_with(store.uid_of("k"), lambda old: store.set("k", "x"))
    with pytest.raises(hashmere.Reentered):
        store.update_with(store.id_of("k"), lambda old: store.set(store.uid_of("k"), "x"))
    with pytest.raises(hashmere.Reentered):
        hashed = hashmere.HashedKey("k", 7)
        store.update_with(hashed, lambda old: store.set(hashed, "x"))
    store["k"] = "free"
    with hashmere.open("test") as again, pytest.raises(hashmere.InvalidState, match="1,000"):
        store.update_with("k", lambda old: again.append("k", "x") and None or b"never")


def test_counters(store):
    assert store.incr("n") is None
    assert store.incr("n", initial=5) == 5 and store.incr("n") == 6 and store.incr("n", 10) == 16
    assert store.decr("n", 6) == 10 and store["n"] == b"10"
    assert store.incr("n", -4) == 6 and store.incr("n", -100) == 0 and store.decr("n") == 0
    store["n"] = str(2**64 - 1)
    assert store.incr("n") == 0, "wraps"
    assert store.incr("m", initial=1, ttl=50, flags=4) == 1 and store.get_item("m").flags == 4
    assert store.inc_ref("r") == 1 and store.inc_ref("r") == 2
    assert store.dec_ref("r") == 1 and store.dec_ref("r") == 0 and "r" not in store
    assert store.dec_ref("r") is None
    assert store.inc_ref("r", 5) == 5 and store.dec_ref("r", 3) == 2 and store.dec_ref("r", 9) == 0 and "r" not in store
    assert store.inc_ref("r", 0) == 0 and "r" not in store


def test_kinds_of_counters(store):
    assert store.incr_signed("s", -5) is None and store.incr_signed("s", 1, initial=-5, flags=3) == -5
    assert store.incr_signed("s") == -4 and store["s"] == b"-4" and store.get_item("s").flags == 3
    with pytest.raises(hashmere.NotANumber):
        store.incr("s")
    with pytest.raises(hashmere.Overflow) as error:
        store.incr_signed("s", -(2**63))
    assert error.value.code == 42 and isinstance(error.value, OverflowError) and store["s"] == b"-4"
    with pytest.raises(OverflowError, match="by must be from"):
        store.incr_signed("s", 2**63)
    with pytest.raises(TypeError, match="by must be an int"):
        store.incr_signed("s", 0.5)

    assert store.incr_float("f", 1) is None and store.incr_float("f", 1, initial=0.1) == 0.1
    assert store.incr_float("f", 0.2) == 0.3 and store["f"] == b"0.3"
    for _ in range(10):
        store.incr_float("sum", 0.1, initial=0.1)
    assert store["sum"] == b"1", "exactly"
    assert store.incr_float("f", -1, ttl=50) == -0.7 and store.ttl("f") == math.inf
    for nothing in (math.nan, math.inf, -math.inf):
        with pytest.raises(hashmere.InvalidState):
            store.incr_float("f", nothing)
        with pytest.raises(hashmere.InvalidState):
            store.incr_float("new", 1, initial=nothing)
    store["big"] = "1e308"
    with pytest.raises(hashmere.Overflow):
        store.incr_float("big", 1.7e308)
    with pytest.raises(TypeError, match="by must be a float"):
        store.incr_float("f", "1")
    assert store["f"] == b"-0.7" and store["big"] == b"1e308" and "new" not in store


def test_time_to_live(store, in_time):
    assert store.ttl("k") is None and store.expires_at("k") is None
    store["k"] = "v"
    assert store.ttl("k") == math.inf and store.expires_at("k") is None
    assert store.touch("k", 100) and 50 < store.ttl("k") <= 100
    assert store.touch("k", datetime.timedelta(hours=1)) and 3500 < store.ttl("k") <= 3600
    when = time.time() + 30
    assert store.touch("k", expires_at=when) and abs(store.expires_at("k") - when) < 0.002
    assert store.touch("k", expires_at=datetime.datetime.fromtimestamp(when, datetime.timezone.utc))
    assert abs(store.expires_at("k") - when) < 0.002
    assert store.get_and_touch("k", 700) == b"v" and store.ttl("k") > 600
    assert store.touch("k") and store.ttl("k") == math.inf
    assert not store.touch("absent", 1) and store.get_and_touch("absent", 1) is None
    store.set("now", "v", ttl=0)
    assert "now" not in store
    found, ttl = in_time(lambda ttl: (store.set("soon", "v", ttl=ttl), store.get("soon"))[1])
    assert found == b"v"
    time.sleep(ttl + 0.02)
    assert store.get("soon") is None
    store.set("inf", "v", ttl=math.inf)
    assert store.ttl("inf") == math.inf


def test_flags_and_records(store):
    version = store.set("k", "v", flags=2**32 - 1)
    record = store.get_item("k")
    assert record == (b"k", b"v", version, 2**32 - 1, None, store.uid_of("k")) and record.key == b"k"
    assert store.get_item("absent") is None and store.value_len("absent") is None
    store["k"] = "w"
    assert store.get_item("k").flags == 0


def test_many_from_whatever_gives_pairs(store):
    class Dict(dict):
        pass

    class Pairs:
        def keys(self):
            raise AssertionError

        def items(self):
            return iter([("i", "9")])

    wanted = {b"%d" % n: b"v%d" % n for n in range(600)}
    texts = {key.decode(): bytearray(value) for key, value in wanted.items()}
    for pairs in (wanted, texts, Dict(wanted), list(texts.items()), tuple(wanted.items()), (pair for pair in texts.items())):
        store.clear()
        assert store.set_many(pairs) == 600 and dict(store.items()) == wanted
        assert store.get_many(tuple(wanted)) == store.get_many(texts) == list(wanted.values())
    assert store.set_many(Pairs()) == 1 and store["i"] == b"9"
    store.clear()
    # What is wrong is found before anything is stored, however far behind it is.
    for wrong in ([*wanted.items(), ("a", 1)], {**wanted, 1: "a"}, [*wanted.items(), "abc"], [*wanted.items(), None]):
        with pytest.raises((TypeError, ValueError)):
            store.set_many(wrong)
    assert len(store) == 0
    long = {b"a": b"x" * 100_000, b"b": b"", "c": "y" * (1 << 20)}
    assert store.set_many(long) == 3 and store.get_many([*long, "d"]) == [b"x" * 100_000, b"", b"y" * (1 << 20), None]


def test_many(store):
    pairs = {f"k{n}": f"v{n}" for n in range(1000)}
    assert store.set_many(pairs) == 1000
    assert store.get_many(list(pairs) + ["absent"]) == [v.encode() for v in pairs.values()] + [None]
    assert store.get_many(k for k in ("k1", b"k2")) == [b"v1", b"v2"] and store.get_many([]) == []
    assert store.set_many([("x", "1"), (b"y", bytearray(b"2"))], ttl=50, flags=1) == 2
    assert store.get_item("y")[1:4:2] == (b"2", 1) and store.ttl("x") <= 50
    assert store.delete_many(["k1", "k1", "absent", b"k2"]) == 2 and len(store) == 1000
    for wrong in ("abc", b"abc", 5, None, [1], ["a", None]):
        with pytest.raises(TypeError):
            store.get_many(wrong)
        with pytest.raises(TypeError):
            store.delete_many(wrong)
    with pytest.raises((TypeError, ValueError)):
        store.set_many([("a", "b", "c")])


def test_scans(store):
    for n in range(3000):
        store[f"user:{n}"] = str(n)
        store[f"item:{n}"] = str(n)
    assert len(list(store.scan())) == len(set(store.scan_keys())) == 6000
    assert {key for key, _ in store.scan(prefix="user:")} == {b"user:%d" % n for n in range(3000)}
    assert {r.key for r in store.scan_items(glob="item:1?")} == {b"item:%d" % n for n in range(10, 20)}
    assert all(r.value == r.key.split(b":")[1] for r in store.scan_items(prefix=b"item:"))


def test_scan_goes_on_from_a_cursor(store):
    store.update({str(n): str(n) for n in range(2000)})
    seen, cursor = [], 0
    while cursor is not None:
        scan = store.scan(cursor=cursor)
        for _ in range(77):
            pair = next(scan, None)
            if pair is None:
                break
            seen.append(pair[0])
        cursor = scan.cursor
    assert sorted(seen) == sorted(b"%d" % n for n in range(2000))


def test_scan_while_the_store_changes(store):
    store.update({f"stays{n}": "v" for n in range(2000)})
    seen = []
    for n, key in enumerate(store):
        seen.append(key)
        store[f"new{n}"] = "v" * 50
        store.pop(f"new{n - 3}", None)
    stays = [key for key in seen if key.startswith(b"stays")]
    assert len(stays) == len(set(stays)) == 2000


def test_parallel_scan(store):
    store.update({str(n): str(n * 2) for n in range(2000)})
    seen = {}
    store.parallel_scan(seen.__setitem__, threads=3, glob="*[13579]")
    assert seen == {b"%d" % n: b"%d" % (2 * n) for n in range(1, 2000, 2)}

    def fails(key, value):
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError):
        store.parallel_scan(fails)
    with pytest.raises(ValueError):
        store.parallel_scan(print, threads=0)


def test_random_pair_stats_check_compact(store):
    assert store.random() is None
    store["k"] = "v"
    assert store.random()[:2] == (b"k", b"v") and store.get("absent") is None
    stats = store.stats()
    assert stats["items"] == 1 and stats["mode"] == "strict" and stats["sets"] == 1 and stats["misses"] == 1
    assert stats["clients"][0]["pid"] > 0 and store.check() == [] and store.compact() >= 0


def test_cache_mode_stays_small(folder):
    with hashmere.open("cache", cache=True, max_bytes=4 << 20) as cache:
        for n in range(20_000):
            cache[str(n)] = b"x" * 1000
        stats = cache.stats()
        assert stats["evictions"] > 0 and stats["bytes_file"] <= 5 << 20 and stats["mode"] == "cache"


def test_full_store(folder):
    with hashmere.open("full", max_bytes=4 << 20) as store:
        store["old"] = "value"
        with pytest.raises(hashmere.Full, match="max_bytes"):
            for n in range(100_000):
                store[str(n)] = b"x" * 1000
        with pytest.raises(hashmere.Full):
            store["old"] = b"y" * 100_000
        assert store["old"] == b"value"
        for key in list(store.scan_keys(glob="[0-9]*")):
            del store[key]
        store["old"] = b"y" * 100_000


def test_fixed_lengths(folder):
    with hashmere.open("fixed", fixed_key_len=4, fixed_value_len=8) as store:
        store["abcd"] = b"12345678"
        with pytest.raises(hashmere.WrongLength):
            store["abc"] = b"12345678"
        with pytest.raises(ValueError):
            store["abcd"] = b"1"


def test_durable(tmp_path):
    with hashmere.open(tmp_path / "d.mere", durable=True, sync_every=100) as store:
        store["k"] = "v"
        store.sync()
        assert store.stats()["syncs"] >= 2 and store.stats()["durable"]
    with hashmere.open(tmp_path / "d.mere") as store:
        assert store["k"] == b"v"
    # As if the machine had gone down since: the boot id in the header is another one, and the state is open.
    with open(tmp_path / "d.mere", "r+b") as file:
        file.seek(128)
        file.write(b"\xee" * 16)
        file.seek(152)
        life = file.read(1)[0]
        file.seek(152)
        file.write(bytes([life & ~1]))
    told = []
    with hashmere.open(tmp_path / "d.mere", on_recovery=lambda done, of: told.append((done, of))) as store:
        assert store["k"] == b"v"
    assert told and all(done <= of for done, of in told)


def test_sync_of_a_volatile_store(store):
    with pytest.raises(hashmere.InvalidState):
        store.sync()


def test_names_and_paths(folder, tmp_path):
    assert hashmere.path_of("x") == f"{folder}/x.mere"
    for name in (tmp_path / "a.mere", str(tmp_path / "b.mere"), bytes(tmp_path / "c.mere")):
        with hashmere.open(name, create_new=True) as store:
            assert store.path.startswith(str(tmp_path))
        assert hashmere.remove(name) and not hashmere.remove(name)


def test_read_only_and_drop(store):
    store["k"] = "v"
    with hashmere.open("test", read_only=True) as reader:
        assert reader["k"] == b"v" and reader.read_only and not store.read_only
        with pytest.raises(hashmere.ReadOnly):
            reader["k"] = "w"
        with pytest.raises(PermissionError):
            reader.delete("k")
    store.remove()
    assert store.closed
    with pytest.raises(hashmere.NotFound):
        hashmere.open("test", create=False)


def test_remove_on_last_close(folder):
    store, other = (hashmere.open("gone", remove_on_last_close=True) for _ in range(2))
    store.close()
    assert hashmere.path_of("gone") == other.path
    other.close()
    with pytest.raises(FileNotFoundError):
        hashmere.open("gone", create=False)


def test_count_with_and_without_what_expired(store):
    for n in range(200):
        store.set(f"k{n}", "v", ttl=0.001)
    store["stays"] = "v"
    time.sleep(0.02)
    assert (len(store), store.len_exact(), len(list(store.scan_keys()))) == (201, 1, 1)
    store.compact()
    assert (len(store), store.len_exact()) == (1, 1)


def test_backup(store, tmp_path):
    store.update({f"k{n}": str(n) for n in range(500)})
    copy = tmp_path / "copy.mere"
    told = []
    report = store.backup(copy, progress=lambda done, of: told.append((done, of)))
    assert report["items"] == 500 and report["thinned"] is False and report["bytes_file"] > 0
    assert told and told[-1][0] <= 500
    with pytest.raises(hashmere.BackupExists) as raised:
        store.backup(copy)
    assert raised.value.code == 52 and isinstance(raised.value, FileExistsError)
    store["more"] = "x"
    assert store.backup(copy, replace=True)["items"] == 501

    def fails(done, of):
        raise KeyError(done)

    with pytest.raises(KeyError):
        store.backup(copy, replace=True, progress=fails)
    with hashmere.open(copy, create=False) as opened:
        assert len(opened) == 501 and opened["k77"] == b"77"
