"""Whatever a program hands in by mistake: the usual exception with a text that says what would be right, never a crash."""

import pickle

import pytest

import hashmere

HUGE = 10**40


@pytest.mark.parametrize("key", [None, 5, 1.5, ["a"], object(), bytearray(b"a"), memoryview(b"a")])
def test_keys_of_wrong_types(store, key):
    calls = [
        lambda: store[key],
        lambda: store.__setitem__(key, "v"),
        lambda: store.__delitem__(key),
        lambda: key in store,
        lambda: store.get(key),
        lambda: store.set(key, "v"),
        lambda: store.pop(key),
        lambda: store.add(key, "v"),
        lambda: store.incr(key),
        lambda: store.view(key),
        lambda: store.update_with(key, lambda old: old),
        lambda: store.key_of(key),
        lambda: store.get_many([key]),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="a key must be bytes, str, or a hashmere.Uid, EntryId or HashedKey, not "):
            call()


@pytest.mark.parametrize("value", [None, 5, 1.5, ["a"], {}, object()])
def test_values_of_wrong_types(store, value):
    for call in (store.set, store.__setitem__, store.add, store.replace, store.append, store.prepend, store.setdefault):
        with pytest.raises(TypeError, match="a value must be bytes, str or an object with the buffer protocol, not "):
            call("k", value)
    for call in (lambda: store.set_many({"k": value}), lambda: store.update({"k": value})):
        with pytest.raises(TypeError):
            call()
    assert "k" not in store


def test_texts_without_utf_8(store):
    for call in (lambda: store["\ud800"], lambda: store.set("k", "\udfff"), lambda: store.add("\ud800", "")):
        with pytest.raises(UnicodeEncodeError):
            call()


def test_buffers_that_do_not_fit(store):
    with pytest.raises(BufferError):
        store["k"] = memoryview(b"abcdef")[::2]
    released = memoryview(b"abc")
    released.release()
    with pytest.raises(ValueError):
        store["k"] = released


def test_numbers_out_of_range(store):
    store["n"] = "1"
    for call in (
        lambda: store.incr("n", HUGE),
        lambda: store.incr("n", -HUGE),
        lambda: store.decr("n", -1),
        lambda: store.incr("m", initial=-1),
        lambda: store.incr("m", initial=HUGE),
        lambda: store.cas("n", "v", version=HUGE),
        lambda: store.cas("n", "v", version=-1),
        lambda: store.set("n", "v", flags=2**32),
        lambda: store.set("n", "v", flags=-1),
        lambda: store.set("n", "v", ttl=1e30),
        lambda: store.set("n", "v", ttl=HUGE),
        lambda: store.scan(cursor=-1),
        lambda: store.scan(cursor=HUGE),
        lambda: hashmere.open("x", max_bytes=-1),
        lambda: hashmere.open("x", max_bytes=HUGE),
        lambda: hashmere.open("x", segment_bytes=2**32),
    ):
        with pytest.raises(OverflowError):
            call()
    for call in (lambda: store.incr("n", 1.5), lambda: store.incr("n", "1"), lambda: store.set("n", "v", flags="1")):
        with pytest.raises(TypeError, match="must be an int"):
            call()
    assert store["n"] == b"1"


@pytest.mark.parametrize("ttl", [-1, -0.001, float("nan"), float("-inf")])
def test_negative_times(store, ttl):
    for call in (
        lambda: store.set("k", "v", ttl=ttl),
        lambda: store.add("k", "v", ttl=ttl),
        lambda: store.touch("k", ttl),
        lambda: store.incr("k", initial=1, ttl=ttl),
        lambda: store.set("k", "v", expires_at=ttl),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match="ttl must be a number of seconds or a timedelta, not str"):
        store.set("k", "v", ttl="soon")
    with pytest.raises(TypeError, match="not both"):
        store.set("k", "v", ttl=1, expires_at=2)
    with pytest.raises(ValueError):
        hashmere.open("x", busy_timeout=ttl)
    assert "k" not in store


def test_wrong_arguments(store):
    for call in (
        lambda: store.get(),
        lambda: store.get("k", 1, 2),
        lambda: store.get(key="k"),
        lambda: store.set("k"),
        lambda: store.set("k", "v", "w"),
        lambda: store.set("k", "v", expires=1),
        lambda: store.update_with("k", None),
        lambda: store.update_with("k", lambda: "v"),
        lambda: store.update_with("k", lambda old: 5),
        lambda: store.update_with("k", lambda old: None),
        lambda: hashmere.HashedKey("k"),
        lambda: hashmere.HashedKey(["k"], 7),
        lambda: store.scan(prefix=5),
        lambda: hashmere.open(),
        lambda: hashmere.open("x", nonsense=True),
        lambda: hashmere.open(None),
        lambda: hashmere.open(5),
        lambda: hashmere.memoize("x"),
        lambda: store.coded(5),
    ):
        with pytest.raises(TypeError):
            call()


def test_numbers_that_are_none(store):
    for value in ("", "abc", "-1", "1.5", str(2**64), " 1", b"\xff"):
        store["k"] = value
        with pytest.raises(hashmere.NotANumber):
            store.incr("k")
        assert store["k"] == (value if isinstance(value, bytes) else value.encode())


def test_a_closed_handle(store):
    store["k"] = "v"
    scan, view, uid = store.scan(), store.view("k"), store.uid_of("k")
    store.close()
    store.close()
    assert store.closed and repr(store) == "<hashmere.Store closed>"
    for call in (
        lambda: store["k"],
        lambda: store.__setitem__("k", "v"),
        lambda: store.__delitem__("k"),
        lambda: "k" in store,
        lambda: store.get("k"),
        lambda: store.set("k", "v"),
        lambda: store.incr("k"),
        lambda: store.view("k"),
        lambda: len(store),
        lambda: bool(store),
        lambda: list(store),
        lambda: next(scan),
        lambda: store.stats(),
        lambda: store.clear(),
        lambda: store.path,
        lambda: store.get_many(["k"]),
        lambda: store.update_with("k", lambda old: old),
        lambda: store[uid],
        lambda: store.get_item(uid),
        lambda: store.remove(),
        lambda: pickle.dumps(store),
    ):
        with pytest.raises(hashmere.Closed, match="closed"):
            call()
    assert view.tobytes() == b"v"
    with pytest.raises(ValueError):
        store["k"]


def test_bad_names(folder, tmp_path):
    for name in ("", ".", "..", ".hidden", "a\nb", "x" * 300):
        with pytest.raises(hashmere.BadName):
            hashmere.open(name)
    with pytest.raises(ValueError, match="zero byte"):
        hashmere.open("a\0b")
    with pytest.raises(hashmere.Error):
        hashmere.open(tmp_path)
    file = tmp_path / "text.mere"
    file.write_text("this is no store" * 1000)
    with pytest.raises(hashmere.NotAStore):
        hashmere.open(file)
    with pytest.raises(hashmere.NotAStore):
        hashmere.remove(file)
    with pytest.raises(OSError):
        hashmere.open(tmp_path / "no" / "folder" / "x.mere")


def test_options_that_contradict(folder):
    with hashmere.open("a", fixed_key_len=4):
        with pytest.raises(hashmere.OptionMismatch, match="fixed_key_len"):
            hashmere.open("a", fixed_key_len=5)
        with pytest.raises(hashmere.AlreadyExists):
            hashmere.open("a", create_new=True)
    with pytest.raises(hashmere.BadOption, match="max_bytes"):
        hashmere.open("b", cache=True)
    with pytest.raises(hashmere.BadOption):
        hashmere.open("b", segment_bytes=5000)
    with pytest.raises(ValueError):
        hashmere.open("b", create_new=True, read_only=True)


def test_cursors_from_elsewhere(store):
    with pytest.raises(hashmere.BadCursor):
        list(store.scan(cursor=2**63))


@pytest.mark.parametrize("glob", ["[a", "[z-a]", "a\\"])
def test_malformed_patterns(store, glob):
    for call in (store.scan, store.scan_keys, store.scan_items):
        with pytest.raises(hashmere.BadPattern, match="the pattern"):
            call(glob=glob)
    with pytest.raises(ValueError):
        store.parallel_scan(print, glob=glob)


def test_views_are_made_by_stores(store):
    with pytest.raises(BufferError):
        memoryview(hashmere.View())
    with pytest.raises(TypeError):
        len(hashmere.View())


def test_each_error_has_its_code():
    codes = [error.code for error in hashmere.Error.__subclasses__()]
    assert len(codes) == len(set(codes)) and all(isinstance(code, int) and code > 0 for code in codes)
    assert hashmere.errors.BY_CODE[1] is hashmere.NotFound and issubclass(hashmere.NotFound, FileNotFoundError)
