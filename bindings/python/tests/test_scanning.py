"""Regular expressions, parts, a scan from a key, a visitor of all keys; dump and load; a store by its name."""

import re
import threading

import pytest

import hashmere


@pytest.fixture
def filled(store):
    store.set_many({f"k{n}": str(n) for n in range(1000)})
    return store


def test_regular_expressions(filled):
    assert len(list(filled.scan(regex="^k[0-9]5$"))) == 9
    assert len(list(filled.scan_keys(regex=re.compile("^K[0-9]5$", re.IGNORECASE)))) == 9
    assert len(list(filled.scan_items(regex=re.compile("5 $ # ends in it", re.VERBOSE)))) == 100
    for wrong in ("a(", r"(a)\1", re.compile("(?=a)")):
        with pytest.raises(hashmere.BadPattern, match="the pattern"):
            filled.scan(regex=wrong)
    with pytest.raises(ValueError, match="of str"):
        filled.scan(regex=re.compile(b"k"))
    with pytest.raises(TypeError, match="regex must be str or a pattern of re"):
        filled.scan(regex=5)


def test_parts_share_the_keys(filled):
    seen = [key for part in range(4) for key in filled.scan_keys(part=(part, 4))]
    assert len(seen) == len(set(seen)) == 1000
    found = []
    filled.parallel_scan(lambda key, value: found.append(key), part=(1, 4), regex="9")
    assert sorted(found) == sorted(filled.scan_keys(part=(1, 4), regex="9"))
    with pytest.raises(hashmere.BadPart, match="no part 4 of 4"):
        filled.scan(part=(4, 4))


def test_a_scan_begins_at_a_key(filled):
    order = list(filled)
    assert list(filled.scan_keys(cursor=filled.cursor_of(order[400]))) == order[400:]
    assert filled.cursor_of("absent") is None


def test_a_visitor_of_all_keys(filled):
    assert filled.update_each(lambda key, value: value + b"!", prefix="k9") == 111
    assert filled["k99"] == b"99!"
    assert filled.update_each(lambda key, value: hashmere.KEEP) == 0
    assert filled.update_each(lambda key, value: hashmere.REMOVE if key == b"k1" else hashmere.KEEP) == 1
    assert "k1" not in filled
    calls = []

    def fails(key, value):
        calls.append(key)
        if len(calls) == 3:
            raise RuntimeError("enough")
        return hashmere.KEEP

    with pytest.raises(RuntimeError, match="enough"):
        filled.update_each(fails)
    assert len(calls) == 3
    hashed = hashmere.HashedKey("hashed", 7)
    filled[hashed] = "x"
    assert filled.update_each(lambda key, value: b"y", prefix="hashed") == 1 and filled[hashed] == b"y"


def test_a_visitor_beside_another_writer(store):
    store.set_many({f"n{n}": "0" for n in range(50)})
    seen = []

    def visitor(key, value):
        if key not in seen:
            seen.append(key)
            store.incr(f"other{key}", initial=1)
            # Once for each key another writer is faster: in a thread, for this one may not write what it is asked about.
            thread = threading.Thread(target=lambda: store.incr(key, 1))
            thread.start()
            thread.join()
        return b"%d" % (int(value) + 10)

    assert store.update_each(visitor, prefix="n") == 50
    assert {value for _, value in store.scan(prefix="n")} == {b"11"}


def test_dump_and_load(filled, folder):
    for name, format in (("all.tsv", None), ("all.jsonl", None), ("other.txt", "jsonl")):
        path = f"{folder}/{name}"
        assert filled.dump(path, format=format, prefix="k1") == 111
        with hashmere.open("copy", remove_on_last_close=True) as copy:
            assert copy.load(path, format=format) == 111
            assert dict(copy) == dict(filled.scan(prefix="k1"))
    with open(f"{folder}/bad.tsv", "w") as file:
        file.write("one\t1\ntwo\n")
    with pytest.raises(hashmere.Malformed, match="line 2: no tab.*the first line is loaded"):
        filled.load(f"{folder}/bad.tsv")
    with pytest.raises(OSError, match="cannot open"):
        filled.load(f"{folder}/absent")
    with pytest.raises(OSError, match="cannot write"):
        filled.dump("/nowhere/at/all")
    with pytest.raises(ValueError, match='"tsv" or "jsonl"'):
        filled.dump(f"{folder}/x", format="xml")


def test_a_store_by_its_name(filled, folder):
    path = f"{folder}/all.jsonl"
    assert hashmere.check("test") == [] and hashmere.stats("test")["items"] == 1000
    assert hashmere.dump("test", path, part=(0, 1)) == 1000
    assert hashmere.load("cache", path, cache=True, max_bytes=8 << 20) == 1000
    assert hashmere.stats("cache")["mode"] == "cache"
    assert hashmere.backup("test", f"{folder}/saved.mere")["items"] == 1000
    with pytest.raises(hashmere.BackupExists):
        hashmere.backup("test", f"{folder}/saved.mere")
    hashmere.backup("test", f"{folder}/saved.mere", replace=True)
    for call in (hashmere.check, hashmere.stats, lambda name: hashmere.backup(name, path), lambda name: hashmere.dump(name, path)):
        with pytest.raises(hashmere.NotFound):
            call("never")
    with pytest.raises(FileNotFoundError):
        hashmere.load("never", f"{folder}/absent")
    with pytest.raises(hashmere.NotFound):
        hashmere.check("never")
