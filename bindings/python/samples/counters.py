"""Several processes count in one store, and share something that the last of them removes."""

import multiprocessing

import hashmere

PROCESSES, STEPS = 4, 1000


def work(store: hashmere.Store) -> None:
    for _ in range(STEPS):
        store.incr("hits", initial=1)
    store.dec_ref("shared")


if __name__ == "__main__":
    with hashmere.open("sample-counters") as store:
        store.clear()
        store.inc_ref("shared", PROCESSES)
        # The handle goes to a forked child as it is, and to a spawned one by pickling.
        children = [multiprocessing.Process(target=work, args=(store,)) for _ in range(PROCESSES)]
        for child in children:
            child.start()
        for child in children:
            child.join()

        print(f"{PROCESSES} processes counted to {store['hits'].decode()}")
        print(f"the last of {PROCESSES} references is gone:", "no" if "shared" in store else "yes")
        store.remove()
