"""redis-py, Django's Redis cache and django-redis do their usual work; values are compared."""

import sys
import threading
from urllib.parse import urlencode

PORT = int(sys.argv[1])
# Longer than a server of a busy machine takes.
PATIENCE = 120
TIMEOUTS = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}


def redis_py(protocol):
    import redis

    r = redis.Redis(port=PORT, protocol=protocol, decode_responses=True, client_name="py", **TIMEOUTS)
    r.flushall()
    assert r.ping() and r.client_getname() == "py" and r.client_id() > 0
    assert r.set("k", "v", ex=1000) and r.get("k") == "v" and 0 < r.ttl("k") <= 1000
    assert r.set("k", "w", nx=True) is None and r.set("k", "w", xx=True, get=True) == "v"
    assert r.mset({"a": 1, "b": 2}) and r.mget("a", "none", "b") == ["1", None, "2"]
    assert r.incr("a", 4) == 5 and r.decr("a") == 4 and r.incrbyfloat("f", 0.5) == 0.5
    assert r.append("k", "!") == 2 and r.getrange("k", 0, 0) == "w" and r.setrange("k", 1, "?") == 2
    assert r.getdel("k") == "w?" and r.exists("k", "a") == 1 and r.delete("a", "b") == 2
    assert r.set("t", "x", ex=1000) and r.persist("t") and r.ttl("t") == -1 and r.expire("t", 500, nx=True)
    assert r.getex("t", persist=True) == "x" and r.pttl("t") == -1 and r.type("t") == "string"
    assert r.rename("t", "u") and not r.renamenx("u", "f") and r.copy("u", "v") and r.strlen("v") == 1
    r.mset({f"key:{i}": i for i in range(500)})
    assert sorted(r.scan_iter("key:*", count=50)) == sorted(f"key:{i}" for i in range(500))
    assert len(r.keys("key:1*")) == 111 and r.dbsize() == 503
    with r.pipeline() as pipe:
        pipe.watch("key:1")
        value = int(pipe.get("key:1"))
        pipe.multi()
        pipe.set("key:1", value + 1).get("key:1").incr("u")
        try:
            pipe.execute()
            raise AssertionError("`u` is no number")
        except redis.ResponseError as error:
            assert "not an integer" in str(error), error
    assert r.get("key:1") == "2"
    with r.pipeline() as pipe:
        pipe.watch("key:1")
        r.set("key:1", "other")
        pipe.multi()
        pipe.set("key:1", "lost")
        try:
            pipe.execute()
            raise AssertionError("the key was changed")
        except redis.WatchError:
            pass
    binary = redis.Redis(port=PORT, protocol=protocol, **TIMEOUTS)
    assert binary.set(b"\0\xff\r\n", bytes(range(256)) * 300) and binary.get(b"\0\xff\r\n") == bytes(range(256)) * 300
    pubsub = r.pubsub()
    pubsub.subscribe("news")
    pubsub.psubscribe("n*")
    kinds = [pubsub.get_message(timeout=PATIENCE)["type"] for _ in range(2)]
    assert kinds == ["subscribe", "psubscribe"] and r.publish("news", "hello") == 2
    assert {pubsub.get_message(timeout=PATIENCE)["type"] for _ in range(2)} == {"message", "pmessage"}
    pubsub.close()
    assert r.info()["redis_version"] and r.config_get("save") == {"save": ""} and r.time()
    assert len(r.client_list()) >= 1 and r.object("encoding", "key:2") == "int" and r.memory_usage("key:2") > 0
    # On a busy machine any command may be slow.
    assert isinstance(r.slowlog_get(), list) and r.slowlog_reset()
    assert r.command_count() > 50 and "get" in r.command()
    # A lock takes SET NX PX; to release it redis-py runs a script.
    lock = r.lock("lock", timeout=1000)
    assert lock.acquire(blocking=False) and not r.lock("lock").acquire(blocking=False)
    try:
        lock.release()
        raise AssertionError("there are no scripts")
    except (redis.exceptions.ResponseError, redis.exceptions.NoScriptError) as error:
        assert "unknown command" in str(error), error


def fixed_window():
    """A rate limiter of INCR and EXPIRE NX in a transaction, from several threads."""
    import redis

    allowed = []

    def work():
        r = redis.Redis(port=PORT, **TIMEOUTS)
        for _ in range(50):
            count, _ = r.pipeline(transaction=True).incr("limit").expire("limit", 1000, nx=True).execute()
            allowed.append(count <= 60)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sum(allowed) == 60, sum(allowed)


def django(backend, **more):
    from django.conf import settings

    caches = {"default": {"BACKEND": backend, "LOCATION": f"redis://127.0.0.1:{PORT}/0?{urlencode(TIMEOUTS)}", **more}}
    if settings.configured:
        settings.CACHES = caches
    else:
        settings.configure(CACHES=caches)
    from django.core.cache.backends.base import InvalidCacheBackendError  # noqa: F401
    from django.utils.module_loading import import_string

    parameters = {key: value for key, value in caches["default"].items() if key not in ("BACKEND", "LOCATION")}
    cache = import_string(backend)(caches["default"]["LOCATION"], parameters)
    cache.clear()
    cache.set("k", {"a": [1, 2]}, 1000)
    assert cache.get("k") == {"a": [1, 2]} and cache.add("k", 1) is False and cache.get("none", 7) == 7
    assert cache.set_many({"x": 1, "y": 2}) in ([], None) and cache.get_many(["x", "y", "z"]) == {"x": 1, "y": 2}
    assert cache.incr("x", 4) == 5 and cache.decr("x") == 4 and cache.touch("x", 1000) is True
    assert cache.has_key("x") and cache.delete("x") and cache.get("x") is None
    assert cache.get_or_set("new", lambda: "made", 1000) == "made"
    cache.clear()
    assert cache.get("y") is None


done = []
for name, run in [
    ("redis-py, RESP2", lambda: redis_py(2)),
    ("redis-py, RESP3", lambda: redis_py(3)),
    ("a rate limiter of INCR and EXPIRE", fixed_window),
    ("Django's Redis cache", lambda: django("django.core.cache.backends.redis.RedisCache")),
    ("django-redis", lambda: django("django_redis.cache.RedisCache")),
]:
    try:
        run()
    except ModuleNotFoundError as error:
        print(f"left out: {name} ({error})")
        continue
    done.append(name)
print("passed:", ", ".join(done))
