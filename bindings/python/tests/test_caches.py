"""The caches of the frameworks."""

import os
import re
import subprocess
import sys

import pytest

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
