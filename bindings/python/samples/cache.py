"""A cache: values with a time to live, in a file that never grows beyond its size."""

import time

import hashmere

MINUTE, PAGES, MAX_BYTES = 60, 20_000, 4 << 20


def yes(it_is: bool) -> str:
    return "yes" if it_is else "no"


cache = hashmere.open("sample-cache", cache=True, max_bytes=MAX_BYTES)
cache.clear()

cache.set("session:1", "Ada", ttl=MINUTE, flags=7)
left = cache.ttl("session:1")
print("session:1 lives for less than a minute:", yes(left is not None and 0 < left <= MINUTE))

cache.set("session:2", "Grace", ttl=0.02)
time.sleep(0.04)
print("session:2 is gone after its time:", yes("session:2" not in cache))

cache.touch("session:1", 10 * MINUTE)
session = cache.get_item("session:1")
assert session is not None and session.expires_at is not None
longer = session.expires_at > time.time() + MINUTE
print(f"session:1 was touched, flags {session.flags}, lives for more than a minute:", yes(longer))

for number in range(1, PAGES + 1):
    cache[f"page:{number}"] = b"." * 1000
print(f"after {PAGES} pages the file has at most 4 MiB:", yes(cache.stats()["bytes_file"] <= MAX_BYTES))
print("the last page is there, the first made room:", yes(f"page:{PAGES}" in cache and "page:1" not in cache))

cache.remove()
