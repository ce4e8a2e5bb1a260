"""A store is a mapping: whatever a dict answers, it answers. Catches lost, torn and mixed-up keys and values, and wrong answers
about absence."""

import pydoc
import random
from collections.abc import MutableMapping

import pytest

import hashmere


def test_is_a_mutable_mapping(store):
    assert isinstance(store, MutableMapping)
    for name in dir(MutableMapping):
        assert name.startswith("_") or hasattr(store, name), name


def test_text_and_bytes_are_the_same_key(store):
    store["ключ"] = "значение"
    assert store["ключ".encode()] == "значение".encode()
    assert "ключ" in store and "ключ".encode() in store
    assert list(store) == ["ключ".encode()]


def test_any_bytes(store):
    for key in (b"", b"\0", b"\xff\xfe", b"a\0b", bytes(range(256)), b"k" * 70_000):
        for value in (b"", b"\0", bytes(range(256)), b"v" * 32_768, b"v" * 32_769, b"v" * 300_000):
            store[key] = value
            assert store[key] == value and store.get(key) == value and store.value_len(key) == len(value)


def test_values_of_any_buffer(store):
    import array

    for value in (bytearray(b"xyz"), memoryview(b"xyz"), array.array("B", b"xyz"), bytearray(200_000)):
        store["k"] = value
        assert store["k"] == bytes(value)


def test_as_a_dict(store, seed):
    rng = random.Random(seed)
    model = {}
    keys = [b"%d" % n for n in range(200)]
    for step in range(20_000):
        key = rng.choice(keys)
        value = rng.randbytes(rng.choice((0, 1, 8, 100, 3000)))
        action = rng.randrange(12)
        if action < 4:
            store[key] = value
            model[key] = value
        elif action < 7:
            assert store.get(key) == model.get(key)
        elif action == 7:
            assert (key in store) == (key in model)
        elif action == 8:
            assert store.pop(key, None) == model.pop(key, None)
        elif action == 9:
            assert store.setdefault(key, value) == model.setdefault(key, value)
        elif action == 10:
            if key in model:
                del store[key], model[key]
            else:
                with pytest.raises(KeyError):
                    del store[key]
        else:
            more = {rng.choice(keys): value, rng.choice(keys): b"more"}
            store.update(more)
            model.update(more)
        if step % 2000 == 0:
            assert store == model and len(store) == len(model)
            assert sorted(store.items()) == sorted(model.items())
            assert sorted(store.keys()) == sorted(model)
            assert sorted(store.values()) == sorted(model.values())
    while model:
        key, value = store.popitem()
        assert model.pop(key) == value
    with pytest.raises(KeyError):
        store.popitem()
    assert not store and len(store) == 0


def test_missing_keys(store):
    with pytest.raises(KeyError) as raised:
        store["nowhere"]
    assert raised.value.args == ("nowhere",)
    with pytest.raises(KeyError):
        store.pop("nowhere")
    assert store.pop("nowhere", 7) == 7
    assert store.get("nowhere") is None and store.get("nowhere", 7) == 7
    assert store.get("nowhere", None) is None


def test_views_of_a_mapping(store):
    store.update({"a": "1", "b": "2"}, c="3")
    assert (b"a", b"1") in store.items() and b"a" in store.keys() and b"1" in store.values() and b"9" not in store.values()
    assert store.keys() & {b"a", b"z"} == {b"a"}
    assert store == {b"a": b"1", b"b": b"2", b"c": b"3"} and store != {b"a": b"1"} and store != 7
    store.clear()
    assert list(store.items()) == []


def test_opened_twice_is_one_store(store):
    with hashmere.open("test") as other:
        other["a"] = "1"
        assert store["a"] == b"1" and store == other
        assert store.path == other.path and repr(store.path) in repr(other)


def test_union_and_copy(store):
    store |= {"a": "1"}
    store |= [("b", "2")]
    assert store.copy() == {b"a": b"1", b"b": b"2"} and type(store.copy()) is dict
    assert store | {b"b": b"3"} == {b"a": b"1", b"b": b"3"}
    assert {b"b": b"3", b"c": b"4"} | store == {b"a": b"1", b"b": b"2", b"c": b"4"}
    with pytest.raises(TypeError):
        store | 5


def test_help_of_open_has_its_options():
    text = pydoc.render_doc(hashmere.open, renderer=pydoc.plaintext)
    assert "open(" in text
    for option in ("create_new", "max_bytes", "durable", "remove_on_last_close", "feed_values", "origin"):
        assert text.count(option) >= 2, option
    with pytest.raises(TypeError, match=r"hashmere.open\(\) has no option 'max_size'; it has create, .*max_bytes"):
        hashmere.open("never", max_size=1)
    with pytest.raises(TypeError, match="max_bytes"):
        hashmere.open("never", max_bytes="64M")
