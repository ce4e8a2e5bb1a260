"""What users of django-redis call besides Django's own interface."""

import threading

import pytest


@pytest.fixture
def cache(folder):
    from django.conf import settings

    if not settings.configured:
        settings.configure()
    from hashmere.django import HashmereCache

    cache = HashmereCache("names", {"KEY_PREFIX": "we[i]rd*"})
    yield cache
    cache.store.remove()


def test_keys_and_patterns(cache):
    cache.set_many({"user:1": 1, "user:2": 2, "page": 3})
    cache.set("user:3", 3, version=2)
    cache.store["other"] = "not of the cache"
    assert sorted(cache.keys("user:*")) == ["user:1", "user:2"] and sorted(cache.keys()) == ["page", "user:1", "user:2"]
    assert list(cache.iter_keys("user:*", version=2)) == ["user:3"]
    assert cache.delete_pattern("user:*") == 2 and cache.keys() == ["page"] and cache.get("user:3", version=2) == 3


def test_times(cache):
    cache.set("a", 1, timeout=100)
    cache.set("b", 1, timeout=None)
    assert 90 < cache.ttl("a") <= 100 and 90_000 < cache.pttl("a") <= 100_000
    assert cache.ttl("b") is None and cache.ttl("absent") == 0 and cache.pttl("absent") == 0
    assert cache.persist("a") and cache.ttl("a") is None and not cache.persist("absent")
    assert cache.expire("a", 50) and cache.ttl("a") <= 50 and not cache.expire("absent", 50)


def test_a_lock(cache):
    with cache.lock("report", timeout=5) as lock:
        assert lock.owned() and lock.locked()
        found = []

        def other():
            found.append(cache.lock("report").acquire(blocking=False))
            try:
                with cache.lock("report", blocking_timeout=0.01):
                    found.append("held")
            except TimeoutError as error:
                found.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert found[0] is False and "was held by others" in found[1]
    free = cache.lock("report")
    assert not free.locked() and free.acquire() and cache.lock("report").locked()
    free.release()
    with pytest.raises(RuntimeError):
        free.release()
