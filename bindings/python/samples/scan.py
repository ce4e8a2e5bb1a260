"""A scan by a regular expression, one that processes share, one that begins at a key; every key changed; dump and load."""

import multiprocessing
import os
import tempfile

import hashmere

PARTS = 4


def work(store: hashmere.Store, part: int) -> None:
    for _ in store.scan_keys(prefix="user:", part=(part, PARTS)):
        store.incr("seen", initial=1)


if __name__ == "__main__":
    with hashmere.open("sample-scan") as store:
        store.clear()
        store.set_many({f"user:{n}": str(n) for n in range(1000)})

        sevens = list(store.scan_keys(regex="^user:.*7$"))
        print(f"{len(sevens)} of {len(store)} keys end in 7")

        children = [multiprocessing.Process(target=work, args=(store, part)) for part in range(PARTS)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print(f"{PARTS} processes saw {store.pop('seen').decode()} keys")

        changed = store.update_each(lambda key, value: str(2 * int(value)))
        print(f"{changed} keys changed, user:7 is {store['user:7'].decode()} now")

        first = next(store.scan_keys(cursor=store.cursor_of("user:7") or 0))
        print(f"a scan from user:7 begins with {first.decode()}")

        file = os.path.join(tempfile.gettempdir(), f"sample-scan-{os.getpid()}.jsonl")
        dumped = store.dump(file)
        store.clear()
        print(f"{dumped} records dumped, {store.load(file)} loaded")
        os.remove(file)
        store.remove()
