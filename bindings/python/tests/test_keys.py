"""A key is named by its bytes, its text, with a hash, by a UID or by an entry id, and every call does the same whatever names it. By a
number it finds that very entry, never another, and never makes it again."""

import copy
import pickle

import pytest

import hashmere
from hashmere import KEEP, REMOVE, EntryId, HashedKey, Stale, Uid

KINDS = ("bytes", "str", "hashed", "uid", "id", "uid of hashed", "id of hashed")

# Every call of a store that names one key, as (call, what it returns of a key whose value is b"7", the value it leaves).
CALLS = {
    "[]": (lambda s, k: s[k], b"7", b"7"),
    "[]=": (lambda s, k: s.__setitem__(k, "8"), None, b"8"),
    "[]= buffer": (lambda s, k: s.__setitem__(k, bytearray(b"8")), None, b"8"),
    "[]= long": (lambda s, k: s.__setitem__(k, b"8" * 200_000), None, b"8" * 200_000),
    "del": (lambda s, k: s.__delitem__(k), None, None),
    "in": (lambda s, k: k in s, True, b"7"),
    "get": (lambda s, k: s.get(k), b"7", b"7"),
    "get or": (lambda s, k: s.get(k, 5), b"7", b"7"),
    "set": (lambda s, k: s.set(k, "8", flags=3) > 0, True, b"8"),
    "add": (lambda s, k: s.add(k, "8", flags=3), None, b"7"),
    "replace": (lambda s, k: s.replace(k, "8", ttl=9) > 0, True, b"8"),
    "append": (lambda s, k: s.append(k, "8") > 0, True, b"78"),
    "prepend": (lambda s, k: s.prepend(k, "8") > 0, True, b"87"),
    "delete": (lambda s, k: s.delete(k), True, None),
    "delete expected": (lambda s, k: (s.delete(k, expected="6"), s.delete(k, expected="7")), (False, True), None),
    "take": (lambda s, k: s.take(k), b"7", None),
    "pop": (lambda s, k: s.pop(k), b"7", None),
    "setdefault": (lambda s, k: s.setdefault(k, "8"), b"7", b"7"),
    "cas version": (lambda s, k: s.cas(k, "8", version=s.version(k)) > 0, True, b"8"),
    "cas": (lambda s, k: (s.cas(k, "8", expected="6"), s.cas(k, "8", version=0)), (None, None), b"7"),
    "update_with": (lambda s, k: s.update_with(k, lambda old: old + b"!"), b"7!", b"7!"),
    "update_with KEEP": (lambda s, k: s.update_with(k, lambda old: KEEP), b"7", b"7"),
    "update_with REMOVE": (lambda s, k: s.update_with(k, lambda old: REMOVE), None, None),
    "incr": (lambda s, k: s.incr(k, 3, initial=1), 10, b"10"),
    "incr down": (lambda s, k: s.incr(k, -3), 4, b"4"),
    "decr": (lambda s, k: s.decr(k, 3), 4, b"4"),
    "incr_signed": (lambda s, k: s.incr_signed(k, -9, initial=1), -2, b"-2"),
    "incr_float": (lambda s, k: s.incr_float(k, 0.5), 7.5, b"7.5"),
    "inc_ref": (lambda s, k: s.inc_ref(k), 8, b"8"),
    "dec_ref": (lambda s, k: s.dec_ref(k, 2), 5, b"5"),
    "get_item": (lambda s, k: s.get_item(k)[:2], (b"k", b"7"), b"7"),
    "version": (lambda s, k: s.version(k) > 0, True, b"7"),
    "is_up_to_date": (lambda s, k: (s.is_up_to_date(k, s.version(k)), s.is_up_to_date(k, 1)), (True, False), b"7"),
    "value_len": (lambda s, k: s.value_len(k), 1, b"7"),
    "ttl": (lambda s, k: 0 < s.ttl(k) <= 1000, True, b"7"),
    "expires_at": (lambda s, k: s.expires_at(k) > 1e9, True, b"7"),
    "touch": (lambda s, k: (s.touch(k, 50), s.ttl(k) <= 50), (True, True), b"7"),
    "get_and_touch": (lambda s, k: (s.get_and_touch(k, 50), s.ttl(k) <= 50), (b"7", True), b"7"),
    "view": (lambda s, k: s.view(k).tobytes(), b"7", b"7"),
    "uid_of": (lambda s, k: s.uid_of(k) == s.id_of(k).uid == s.get_item(k).uid, True, b"7"),
    "key_of": (lambda s, k: s.key_of(k), b"k", b"7"),
    "get_many": (lambda s, k: s.get_many(["other", k, "absent"]), [b"o", b"7", None], b"7"),
    "set_many": (lambda s, k: s.set_many([("other", "o"), (k, "8")]), 2, b"8"),
    "set_many dict": (lambda s, k: s.set_many({"other": "o", k: bytearray(b"8")}, flags=3), 2, b"8"),
    "update": (lambda s, k: s.update([(k, "8"), ("other", "o"), (k, "9")]), None, b"9"),
    "delete_many": (lambda s, k: s.delete_many(["absent", k, k]), 1, None),
    "coded": (lambda s, k: s.coded().get(k), 7, b"7"),
    "coded update_with": (lambda s, k: s.coded().update_with(k, lambda old: [old]), [7], b"[7]"),
}

# What each does where the entry is gone: what it returns, or Stale, for it would have to make the key.
GONE = {
    "[]": KeyError, "[]=": Stale, "[]= buffer": Stale, "[]= long": Stale, "del": KeyError, "in": False, "get": None, "get or": 5,
    "set": Stale, "add": Stale, "delete": False, "delete expected": (False, False), "take": None, "pop": KeyError,
    "setdefault": Stale, "update_with KEEP": Stale, "update_with REMOVE": Stale, "incr": Stale, "incr down": None, "decr": None,
    "incr_signed": Stale, "incr_float": None, "inc_ref": Stale, "dec_ref": None, "key_of": None, "value_len": None,
    "get_many": [b"o", None, None], "set_many": Stale,
    "set_many dict": Stale, "update": Stale, "delete_many": 0, "coded": None,
}  # fmt: skip
MORE_GONE = {
    "replace": (lambda s, k: s.replace(k, "8"), None),
    "append": (lambda s, k: s.append(k, "8"), None),
    "prepend": (lambda s, k: s.prepend(k, "8"), None),
    "cas expected": (lambda s, k: s.cas(k, "8", expected="7"), None),
    "cas version": (lambda s, k: s.cas(k, "8", version=7), None),
    "cas absent": (lambda s, k: s.cas(k, "8", version=0), Stale),
    "update_with": (lambda s, k: s.update_with(k, pytest.fail), Stale),
    "get_item": (lambda s, k: s.get_item(k), None),
    "version": (lambda s, k: s.version(k), None),
    "is_up_to_date": (lambda s, k: s.is_up_to_date(k, 7), False),
    "ttl": (lambda s, k: s.ttl(k), None),
    "expires_at": (lambda s, k: s.expires_at(k), None),
    "touch": (lambda s, k: s.touch(k, 5), False),
    "get_and_touch": (lambda s, k: s.get_and_touch(k, 5), None),
    "view": (lambda s, k: s.view(k), None),
    "uid_of": (lambda s, k: s.uid_of(k), None),
    "id_of": (lambda s, k: s.id_of(k), None),
    "reserve": (lambda s, k: s.reserve(k, 3).commit(), Stale),
}


def key_of_kind(store, kind):
    """A key of a kind, its value being b"7", and the name by which it is found when all numbers are gone."""
    name = HashedKey("k", 2**64 - 1) if "hashed" in kind else b"k"
    store.set(name, "7", ttl=1000, flags=9)
    numbers = {"uid": store.uid_of, "id": store.id_of}
    key = "k" if kind == "str" else numbers.get(kind.split()[0], lambda name: name)(name)
    return key, name


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_by_every_kind_of_key(store, kind):
    store["other"] = "o"
    for what, (call, returns, leaves) in CALLS.items():
        key, name = key_of_kind(store, kind)
        uid = store.uid_of(name)
        assert call(store, key) == returns, (what, key)
        assert store.get(name) == leaves, (what, key)
        assert leaves is None or store.uid_of(name) == uid, (what, "another entry")
        assert store["other"] == b"o" and len(store) == 1 + (leaves is not None), (what, key)
        store.delete(name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reservation_by_every_kind_of_key(store, kind):
    key, name = key_of_kind(store, kind)
    with store.reserve(key, 3, flags=4) as room:
        room[:] = b"new"
    assert store.get_item(name)[1:4:2] == (b"new", 4) and len(store) == 1
    reservation = store.reserve(key, 5)
    reservation.abandon()
    assert store[name] == b"new"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "id" in kind])
def test_by_the_number_of_an_entry_that_is_gone(store, kind):
    store["other"] = "o"
    key, name = key_of_kind(store, kind)
    del store[name]
    for what, (call, outcome) in {**{what: (CALLS[what][0], GONE[what]) for what in GONE}, **MORE_GONE}.items():
        if isinstance(outcome, type):
            with pytest.raises(outcome) as raised:
                call(store, key)
            assert outcome is Stale or raised.value.args == (key,), what
        else:
            assert call(store, key) == outcome, (what, key)
        assert store["other"] == b"o" and len(store) == 1, (what, key)
    assert {*GONE, *MORE_GONE} >= {*CALLS} - {"cas", "coded update_with"}


def test_an_entry_id_notices_that_its_uid_is_of_another_key(store):
    """An id of a key that had this UID before: the fingerprint, in its upper half, is another one."""
    store["k"] = "v"
    for bit in range(32, 64):
        gone = EntryId(store.id_of("k") ^ 1 << bit)
        assert store[gone.uid] == b"v" and store.key_of(gone.uid) == b"k"
        assert gone not in store and store.get(gone) is None and store.get_item(gone) is None and not store.delete(gone)
        with pytest.raises(Stale):
            store[gone] = "wrong"
    assert store["k"] == b"v" and len(store) == 1


def test_a_reservation_of_an_entry_that_is_deleted(store):
    store["k"] = "v"
    reservation = store.reserve(store.id_of("k"), 3)
    del store["k"]
    with pytest.raises(Stale):
        reservation.commit()
    assert "k" not in store


def test_hashes_make_different_keys(store):
    names = ["k", HashedKey("k", 7), HashedKey(b"k", 8), HashedKey("n", 7)]
    for value, name in enumerate(names):
        assert name not in store
        store[name] = str(value)
    assert store.get_many(names) == [b"0", b"1", b"2", b"3"] and len(store) == 4
    assert len({store.uid_of(name) for name in names}) == 4
    assert sorted(store.popitem() for _ in names) == [(b"k", b"0"), (b"k", b"1"), (b"k", b"2"), (b"n", b"3")]
    assert len(store) == 0


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 40_000, 1_000_000])
def test_a_value_of_any_length_by_number(store, length):
    value = bytes(range(256)) * 4000
    for name in ("k", HashedKey("k", 7)):
        store[name] = value[:length]
        hits = store.stats()["hits"]
        assert store[store.uid_of(name)] == store.get(store.id_of(name)) == store[name] == value[:length]
        assert store.stats()["hits"] == hits + 3


@pytest.mark.parametrize("number", [Uid(2**32), Uid(-1), EntryId(2**64), EntryId(-1)])
def test_numbers_out_of_range(store, number):
    what = "a Uid must be from 0 to 4294967295" if isinstance(number, Uid) else "an EntryId must be from 0 to 18446744073709551615"
    for call in (store.get, store.__getitem__, store.delete, store.__contains__, store.view, lambda key: store.set(key, "v")):
        with pytest.raises(OverflowError, match=f"{what}, and {type(number).__name__}.{int(number)}. is not"):
            call(number)
    assert len(store) == 0


def test_a_plain_number_is_no_key(store):
    store["k"] = "v"
    for call in (store.get, store.__getitem__, store.__delitem__, store.__contains__, store.take, store.key_of, store.uid_of):
        with pytest.raises(TypeError, match="bytes, str, or a hashmere.Uid, EntryId or HashedKey, not int"):
            call(int(store.uid_of("k")))
    assert store["k"] == b"v"


def test_what_sleeps_or_locks_knows_a_key_by_its_bytes(store):
    store["k"] = "v"
    for key in (store.uid_of("k"), store.id_of("k"), HashedKey("k", 7)):
        for call in (
            lambda: store.wait(key, 0, timeout=0),
            lambda: store.wait_any([(key, 0)], timeout=0),
            lambda: store.once(key, lambda: "v"),
            lambda: store.once_holder(key),
            lambda: store.key_lock(key),
            lambda: hashmere.Mutex(store, key),
            lambda: hashmere.Barrier(store, key, 2),
        ):
            with pytest.raises(TypeError, match="takes a key as bytes or str, not " + type(key).__name__):
                call()


def test_ids_are_values(store):
    store["k"] = "v"
    uid, entry_id, hashed = store.uid_of("k"), store.id_of("k"), HashedKey("k", 7)
    assert type(uid) is type(store.get_item("k").uid) is type(entry_id.uid) is Uid and type(entry_id) is EntryId
    assert repr(uid) == f"Uid({int(uid)})" and repr(entry_id) == f"EntryId({int(entry_id)})"
    assert repr(hashed) == "HashedKey(b'k', 7)" and (hashed.key, hashed.hash) == (b"k", 7)
    for value in (uid, entry_id, hashed, Uid(2**32 - 1), EntryId(2**64 - 1)):
        copies = [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
        for other in [*copies, copy.copy(value), copy.deepcopy(value)]:
            assert type(other) is type(value) and other == value and hash(other) == hash(value)
    assert pickle.loads(pickle.dumps(store.get_item("k"))) == store.get_item("k")
    assert uid == int(uid) and uid != entry_id and {uid: "a"}[Uid(int(uid))] == "a"
    assert hashed == HashedKey(b"k", 7) and hashed not in (HashedKey("k", 8), HashedKey("l", 7), b"k", 7, None)
    for wrong in (-1, 2**64):
        with pytest.raises(OverflowError, match="hash must be from 0 to 18446744073709551615"):
            HashedKey("k", wrong)
    with pytest.raises(TypeError, match="as bytes or str, not Uid"):
        HashedKey(uid, 7)
    with pytest.raises(TypeError, match="hash must be an int"):
        HashedKey("k", "7")
    with pytest.raises(AttributeError):
        hashed.hash = 8
