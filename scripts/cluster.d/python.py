"""pylibmc and pymemcache at a cluster: each writes keys of its own, and each reads those of all clients.

Usage: python.py ADDRESS write | read CLIENT...
"""

import importlib.util
import sys

KEYS = 100


def pylibmc(address):
    import pylibmc

    client = pylibmc.Client([address])
    return client.set, client.get_multi


def pymemcache(address):
    from pymemcache.client.base import Client

    host, port = address.split(":")
    # twemproxy knows no `noreply`.
    client = Client((host, int(port)), default_noreply=False)
    return client.set, client.get_many


address, verb, names = sys.argv[1], sys.argv[2], sys.argv[3:]
for name, connect in {"pylibmc": pylibmc, "pymemcache": pymemcache}.items():
    if importlib.util.find_spec(name) is None:
        print(f"{name}: not installed, left out", file=sys.stderr)
        continue
    set_key, get_many = connect(address)
    if verb == "write":
        for i in range(KEYS):
            assert set_key(f"{name}:{i}", f"{name}-{i}".encode()), f"{name} cannot write {i}"
        print(name)
        continue
    for other in names:
        wanted = {f"{other}:{i}": f"{other}-{i}".encode() for i in range(KEYS)}
        found = {key: value.encode() if isinstance(value, str) else value for key, value in get_many(list(wanted)).items()}
        assert found == wanted, f"{name} does not find what {other} wrote"
    print(f"{name}: finds the keys of {', '.join(names)}", file=sys.stderr)
