"""Every Python client that is installed does its usual work; values are compared."""

import asyncio
import importlib.util
import sys

PORT = int(sys.argv[1])
# Longer than a server of a busy machine takes.
PATIENCE = 120


def pymemcache():
    from pymemcache.client.base import Client

    client = Client(("127.0.0.1", PORT), default_noreply=False, connect_timeout=PATIENCE, timeout=PATIENCE)
    assert client.set("py", b"value", expire=1000, flags=3)
    assert client.get("py") == b"value"
    value, cas = client.gets("py")
    assert client.cas("py", b"next", cas) is True
    assert client.cas("py", b"lost", cas) is False
    assert client.get_many(["py", "none"]) == {"py": b"next"}
    assert client.add("py", b"x") is False and client.replace("py", b"7") is True
    assert client.incr("py", 5) == 12 and client.decr("py", 20) == 0
    assert client.append("py", b"!") and client.prepend("py", b"!")
    assert client.touch("py", 1000) and client.delete("py") and client.get("py") is None
    assert client.set_many({f"m{i}": b"x" * i for i in range(500)}) == []
    assert client.get_many([f"m{i}" for i in range(500)]) == {f"m{i}": b"x" * i for i in range(500)}
    assert client.stats()[b"version"] and client.version()
    assert client.flush_all() and client.get("m1") is None


def bmemcached():
    import bmemcached

    client = bmemcached.Client((f"127.0.0.1:{PORT}",), socket_timeout=PATIENCE)
    assert client.set("bin", {"a": [1, 2]}) and client.get("bin") == {"a": [1, 2]}
    value, cas = client.gets("bin")
    assert client.cas("bin", "next", cas) and not client.cas("bin", "lost", cas)
    assert client.set_multi({f"b{i}": str(i) for i in range(200)}) in (True, [])
    assert client.get_multi([f"b{i}" for i in range(200)]) == {f"b{i}": str(i) for i in range(200)}
    assert client.incr("count", 1, default=10) == 10 and client.incr("count", 5) == 15
    assert client.delete("bin") and client.get("bin") is None
    assert client.stats()
    client.disconnect_all()


def aiomcache():
    import aiomcache

    async def work():
        client = aiomcache.Client("127.0.0.1", PORT)
        assert await client.set(b"aio", b"value")
        assert await client.get(b"aio") == b"value"
        assert await client.multi_get(b"aio", b"none") == (b"value", None)
        assert await client.set(b"n", b"1") and await client.incr(b"n", 4) == 5
        assert await client.delete(b"aio")
        await client.close()

    asyncio.run(work())


def meta_memcache():
    from meta_memcache import CacheClient, Key, ServerAddress, connection_pool_factory_builder

    client = CacheClient.cache_client_from_servers(
        servers=[ServerAddress("127.0.0.1", PORT)],
        connection_pool_factory_fn=connection_pool_factory_builder(connection_timeout=PATIENCE, recv_timeout=PATIENCE),
    )
    assert client.set(key=Key("meta"), value="value", ttl=1000)
    assert client.get(key=Key("meta")) == "value"
    assert client.multi_get(keys=[Key("meta"), Key("none")])[Key("meta")] == "value"
    assert client.delete(key=Key("meta")) and client.get(key=Key("meta")) is None


def pylibmc():
    import pylibmc

    milliseconds = {"connect_timeout": PATIENCE * 1000, "_poll_timeout": PATIENCE * 1000}
    for binary in (False, True):
        behaviors = {"ketama": True, "cas": not binary, **milliseconds}
        client = pylibmc.Client([f"127.0.0.1:{PORT}"], binary=binary, behaviors=behaviors)
        assert client.set("libmc", "value", time=1000) and client.get("libmc") == "value"
        if not binary:
            value, cas = client.gets("libmc")
            assert client.cas("libmc", "next", cas)
        assert client.set_multi({f"l{i}": i for i in range(300)}) == []
        assert client.get_multi([f"l{i}" for i in range(300)]) == {f"l{i}": i for i in range(300)}
        assert client.set("n", 5) and client.incr("n", 3) == 8 and client.decr("n", 2) == 6
        assert client.delete("libmc") and client.get("libmc") is None
        assert client.get_stats()


MODULES = {
    "pymemcache": pymemcache,
    "bmemcached": bmemcached,
    "aiomcache": aiomcache,
    "meta_memcache": meta_memcache,
    "pylibmc": pylibmc,
}
for name, test in MODULES.items():
    if importlib.util.find_spec(name) is None:
        print(f"{name}: not installed, left out")
        continue
    test()
    print(f"{name}: ok")
