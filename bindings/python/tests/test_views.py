"""A view stays what it was for as long as anything uses its bytes, whatever happens to the key, the handle and the Python objects
between. Catches pins that are given back early, and pins that are never given back."""

import gc

import hashmere
import pytest


def churn(store, rounds=40):
    """Overwrites so much that every segment without a pin is used again."""
    for n in range(rounds):
        for key in range(20):
            store[f"churn{key}"] = bytes([n]) * 20_000


def pins(store):
    return sum(client["pins"] for client in store.stats()["clients"])


def test_a_view_is_the_value_without_a_copy(store):
    version = store.set("k", b"value", flags=3, ttl=100)
    view = store.view("k")
    assert view == b"value" and view.readonly and view.obj.zero_copy and len(view.obj) == 5
    assert (view.obj.version, view.obj.flags) == (version, 3) and view.obj.expires_at == store.expires_at("k")
    assert view.obj.is_up_to_date() and store.touch("k", 50) and view.obj.is_up_to_date()
    store["k"] = b"value"
    assert not view.obj.is_up_to_date() and store.view("k").obj.is_up_to_date()
    assert store.view("absent") is None
    store["empty"] = ""
    assert store.view("empty").tobytes() == b""
    with pytest.raises(TypeError):
        view[0] = 1


@pytest.mark.parametrize("size", [300, 30_000, 500_000])
def test_overwritten_deleted_and_closed_under_a_view(store, size):
    value = bytes(range(256)) * (size // 256) + b"end"
    store["k"] = value
    view = store.view("k")
    assert view.obj.zero_copy
    del store["k"]
    churn(store)
    assert view == value
    part = view[10:20]
    view.release()
    del view
    gc.collect()
    churn(store)
    assert part == value[10:20], "a slice of a view holds the pin"
    assert pins(store) == 1
    store.close()
    assert part == value[10:20]
    del part


def test_the_pin_goes_with_the_last_user(store):
    store["k"] = "v" * 100
    with store.view("k"):
        assert pins(store) == 1
    assert pins(store) == 0
    view = store.view("k")
    other = memoryview(view.obj)
    view.release()
    assert pins(store) == 1 and other == b"v" * 100
    del view, other
    assert pins(store) == 0
    view = store.view("k")
    with pytest.raises(ValueError):
        with view:
            view.release()
            view.tobytes()
    del view
    assert pins(store) == 0


def test_more_views_than_pins_are_copies(store):
    views = []
    for n in range(40):
        store[str(n)] = bytes([n]) * 300_000
        views.append(store.view(str(n)))
    assert views[0].obj.zero_copy and not views[-1].obj.zero_copy
    store.clear()
    churn(store)
    for n, view in enumerate(views):
        assert view == bytes([n]) * 300_000


def test_views_of_a_read_only_handle_are_copies(store):
    store["k"] = "v" * 1000
    with hashmere.open("test", read_only=True) as reader:
        view = reader.view("k")
        assert not view.obj.zero_copy and view == b"v" * 1000


def test_a_value_may_be_stored_from_a_view(store):
    store["k"] = b"x" * 200_000
    store["copy"] = store.view("k")
    assert store["copy"] == b"x" * 200_000 and pins(store) == 0
