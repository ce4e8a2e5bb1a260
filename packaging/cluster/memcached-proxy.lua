-- Three stores behind memcached's own proxy (1.6.23 and later, built with it). Change the addresses; keep the order.
-- scripts/cluster runs this file where such a memcached is there.
--   memcached -l 127.0.0.1:11210 -U 0 -o proxy_config=routelib,proxy_arg=memcached-proxy.lua
settings{
    -- Seconds. The default is five for a connection and three for a reply: long for a cache.
    backend_connect_timeout = 0.25,
    backend_read_timeout = 0.4,
    -- A store that is killed is back within milliseconds: ask again after one second, the least there is, not three.
    backend_retry_waittime = 1,
    -- One failure in a row is a restart. More than these mark the backend as bad.
    backend_failure_limit = 3,
}
pools{
    cache = {
        -- The place in this list is what keys go by (xxhash and jump hash): replace an address, never remove or insert one.
        backends = {
            "127.0.0.1:11311",
            "127.0.0.1:11312",
            "127.0.0.1:11313",
        },
    },
}
routes{
    -- No failover: a key has one store, which is warm when it is back.
    default = route_direct{ child = "cache" },
}
