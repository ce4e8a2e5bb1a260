"""A reserved value is written in place and not visible before its commit. Catches rooms that are written to when they are not
ours any more."""

import threading

import pytest

import hashmere


def test_written_in_place(store):
    with store.reserve("k", 5, ttl=100, flags=4) as room:
        room[:] = b"hello"
        assert "k" not in store
    assert store["k"] == b"hello" and store.get_item("k").flags == 4 and store.ttl("k") <= 100
    with pytest.raises(ValueError):
        room[0] = 1


def test_commit_and_abandon_by_hand(store):
    reservation = store.reserve("k", 300_000)
    assert len(reservation) == 300_000
    with memoryview(reservation) as room:
        room[:] = b"x" * 300_000
        with pytest.raises(BufferError):
            reservation.commit()
    version = reservation.commit()
    assert version == store.version("k") and store["k"] == b"x" * 300_000
    for call in (reservation.commit, reservation.abandon):
        with pytest.raises(hashmere.InvalidState):
            call()
    with pytest.raises(BufferError):
        memoryview(reservation)
    reservation = store.reserve("k", 10)
    reservation.abandon()
    assert store["k"] == b"x" * 300_000


def test_an_exception_leaves_the_key(store):
    store["k"] = "old"
    with pytest.raises(ZeroDivisionError):
        with store.reserve("k", 3) as room:
            room[:] = b"new"
            1 / 0
    assert store["k"] == b"old"


def test_a_buffer_that_outlives_the_block(store):
    with pytest.raises(BufferError):
        with store.reserve("k", 10) as room:
            part = room[2:5]
    part[0] = 1
    assert "k" not in store


def test_other_writes_while_one_is_held(store):
    with store.reserve("k", 100) as room:
        store.update({str(n): "v" * 1000 for n in range(1000)})
        room[:] = b"r" * 100
    assert store["k"] == b"r" * 100 and len(store) == 1001


def test_another_thread_may_not_commit(store):
    reservation, errors = store.reserve("k", 3), []

    def commit():
        try:
            reservation.commit()
        except hashmere.InvalidState as error:
            errors.append(error)

    thread = threading.Thread(target=commit)
    thread.start()
    thread.join()
    assert len(errors) == 1 and "thread" in str(errors[0])
    reservation.commit()
    assert len(store["k"]) == 3


def test_a_reservation_outlives_its_handle(store):
    reservation = store.reserve("k", 3)
    store.close()
    with memoryview(reservation) as room:
        room[:] = b"abc"
    reservation.commit()
    with hashmere.open("test") as again:
        assert again["k"] == b"abc"


def test_too_long_and_wrong_lengths(store):
    with pytest.raises(hashmere.TooLarge):
        store.reserve("k", 2**33)
    with pytest.raises(OverflowError):
        store.reserve("k", -1)
    with pytest.raises(BufferError):
        memoryview(hashmere.Reservation())
