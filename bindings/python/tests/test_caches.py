"""The caches of the frameworks."""

import os
import re
import subprocess
import sys

import pytest

import hashmere

HERE = os.path.dirname(__file__)


def test_cachelib(folder):
    from hashmere.cachelib import HashmereCache

    cache = HashmereCache("cache", default_timeout=100)
    assert cache.set("k", {"a": {1}}) and cache.get("k") == {"a": {1}} and 50 < cache.store.ttl("k") <= 100
    assert not cache.add("k", 1) and cache.add("n", 5, timeout=0) and cache.store["n"] == b"5"
    assert cache.store.ttl("n") == float("inf")
    assert cache.inc("n") == 6 and cache.dec("n", 10) == -4 and cache.inc("new", 3) == 3
    assert cache.has("k") and cache.delete("k") and not cache.has("k") and not cache.delete("k")
    assert cache.set_many({"a": 1, "b": [2]}) == ["a", "b"] and cache.get_many("a", "b", "c") == [1, [2], None]
    assert cache.get_dict("a", "c") == {"a": 1, "c": None} and cache.delete_many("a", "c") == ["a"]
    assert cache.set("gone", 1, timeout=-1) and cache.get("gone") is None
    assert cache.clear() and cache.get("b") is None
    cache.store.close()


def test_cachelib_and_what_does_not_fit(folder):
    from hashmere.cachelib import HashmereCache

    huge, small = "x" * (8 << 20), "small"
    cache = HashmereCache("cache", max_bytes=4 << 20)
    assert cache.set("k", small) and cache.set("k", huge) is False and cache.get("k") is None
    assert cache.add("k", huge) is False and cache.get("k") is None
    assert cache.set_many({"a": 1, "b": huge, "c": 3}) == ["a", "c"] and cache.get_many("a", "b", "c") == [1, None, 3]
    cache.store.close()


def test_a_cache_with_another_maximum(folder):
    from hashmere.cachelib import HashmereCache

    page = b"p" * 50_000
    first = HashmereCache("cache", max_bytes=24 << 20)
    assert all(first.set(f"k{i}", page) for i in range(400))
    smaller = HashmereCache("cache", max_bytes=6 << 20)
    stats = first.store.stats()
    assert stats["bytes_max"] == 6 << 20 and stats["bytes_allocated"] <= 6 << 20 and stats["segments_offline"] > 50, stats
    assert all(first.set(f"n{i}", page) for i in range(200)) and smaller.get("n199") == page
    assert first.store.stats()["bytes_allocated"] <= 6 << 20
    larger = HashmereCache("cache", max_bytes=24 << 20)
    assert all(larger.set(f"k{i}", page) for i in range(300)) and sum(smaller.has(f"k{i}") for i in range(300)) == 300
    with pytest.raises(hashmere.BadOption, match="max_bytes"):
        HashmereCache("cache", max_bytes=1000)
    with hashmere.open("strict", max_bytes=24 << 20) as strict:
        strict.update((f"k{i}", page) for i in range(100))
        with pytest.raises(hashmere.OptionMismatch, match="25165824.*6291456"):
            hashmere.open("strict", max_bytes=6 << 20)
        assert len(strict) == 100 and strict.stats()["bytes_max"] == 24 << 20
    for cache in (first, smaller, larger):
        cache.store.close()


def test_djangos_own_tests_of_a_backend(folder):
    """`BaseCacheTests` of Django's repository, as Django runs it for its own backends."""
    source = os.environ.get("HASHMERE_DJANGO_SOURCE")
    if not source:
        pytest.skip("HASHMERE_DJANGO_SOURCE does not name an unpacked Django")
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "django_suite.py"), source], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert any(line.startswith("OK") for line in lines), done.stderr
    # Two of culling, and one of a configuration that only Django's own settings have.
    assert re.search(r"^OK \(skipped=3\)$|^OK$", done.stderr, re.M), done.stderr
    assert int(re.search(r"^Ran (\d+) tests", done.stderr, re.M)[1]) > 50
