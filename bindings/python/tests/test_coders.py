"""Objects through coders: JSON unless another is asked for, pickle only when asked for."""

import json
import marshal
import pickle
from collections.abc import MutableMapping

import pytest

import hashmere
from hashmere import JSON, PICKLE, RAW, REMOVE


def test_json_is_what_is_taken_without_a_word(store):
    objects = store.coded()
    assert isinstance(objects, MutableMapping) and objects.coder is JSON and objects.store is store
    objects["user:7"] = {"name": "Ada", "tags": ["a", "б"], "n": None}
    assert objects["user:7"] == {"name": "Ada", "tags": ["a", "б"], "n": None}
    assert store["user:7"] == '{"name":"Ada","tags":["a","б"],"n":null}'.encode()
    with pytest.raises(TypeError):
        objects["set"] = {1, 2}
    assert "set" not in store


def test_nothing_is_unpickled_unless_asked_for(store):
    class Bomb:
        def __reduce__(self):
            return exec, ("raise SystemExit('unpickled')",)

    store["k"] = pickle.dumps(Bomb())
    assert isinstance(store["k"], bytes)
    with pytest.raises(ValueError):
        store.coded()["k"]
    with pytest.raises(SystemExit):
        store.coded(PICKLE)["k"]


@pytest.mark.parametrize("coder", [JSON, PICKLE, RAW, json, pickle, marshal])
def test_as_a_mapping(store, coder):
    value = b"bytes" if coder is RAW else [1, "x", None]
    objects = store.coded(coder)
    objects["a"] = value
    assert objects["a"] == objects.get("a") == value and objects.get("b", 3) == 3 and "a" in objects
    assert objects.set("b", value, ttl=50, flags=2) and store.get_item("b").flags == 2 and store.ttl("b") <= 50
    assert objects.add("b", value) is None and objects.replace("b", value)
    assert objects.get_many(["a", "x"]) == [value, None] and dict(objects.scan(prefix="a")) == {b"a": value}
    assert objects.set_many({"c": value}) == 1 and sorted(objects) == [b"a", b"b", b"c"] and len(objects) == 3
    assert objects.pop("c") == value and objects.pop("c", 5) == 5
    assert objects.update_with("a", lambda old: old + old) == value + value
    assert objects.update_with("a", lambda old: REMOVE) is None and "a" not in objects
    assert objects.popitem() == (b"b", value)
    with pytest.raises(KeyError):
        objects.pop("c")
    with pytest.raises(KeyError):
        del objects["c"]
    objects.clear()
    assert dict(objects.items()) == {}


def test_a_coder_of_ones_own(store):
    class Upper:
        def dumps(self, value):
            return value.upper()

        def loads(self, data):
            return data.decode().lower()

    objects = store.coded(Upper())
    objects["k"] = "abc"
    assert store["k"] == b"ABC" and objects["k"] == "abc"
    with pytest.raises(TypeError, match="loads"):
        store.coded(type("Half", (), {"dumps": lambda self, value: b""})())


def test_a_coded_store_has_the_calls_of_a_store(store, in_time):
    with store.coded() as coded:
        assert coded.add("a", [1]) and coded.cas("a", [2], version=0) is None
        assert coded.cas("a", [2], version=coded.version("a")) and coded.take("a") == [2]
        assert coded.take("a") is None and coded.take("a", 5) == 5
        coded["b"] = {"x": 1}
        assert coded.touch("b", 100) and 90 < coded.ttl("b") <= 100 and coded.get_and_touch("b") == {"x": 1}
        assert coded.ttl("b") == float("inf")
        assert not coded.delete("b", version=1) and coded.delete("b") and not coded.delete("b")
        assert coded.incr("n", initial=5) == 5 and coded.incr("n", 2) == 7 and coded.decr("n") == 6 and coded["n"] == 6
        assert coded.once("o", lambda: {"y": 2}) == {"y": 2} and coded.once("o", lambda: 1 / 0) == {"y": 2}
        assert coded.random()[0] in (b"n", b"o")
        coded |= {"p": None}
        assert coded.copy() == {b"n": 6, b"o": {"y": 2}, b"p": None}
        assert coded.delete_many(["n", "o", "p", "q"]) == 3 and coded.random() is None
    assert coded.closed and store.closed
