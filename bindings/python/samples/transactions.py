"""Several processes move money between accounts; the sum never changes, not even for a moment."""

import multiprocessing

import hashmere
from hashmere import Condition, Transaction, WriteBatch

PROCESSES, STEPS = 4, 500
ACCOUNTS = ["alice", "bob", "carol"]


def transfer(store: hashmere.Store, source: str, target: str, amount: int) -> bool:
    def move(t: Transaction) -> bool:
        # It may run several times: it has no effects but through `t`.
        if int(t.get(source, b"0")) < amount:
            return False
        t.incr(source, -amount)
        t.incr(target, amount)
        return True

    return store.transaction(move)


def total(store: hashmere.Store) -> int:
    return sum(int(item.value) for item in store.get_many_snapshot(ACCOUNTS) if item)


def work(store: hashmere.Store, who: int) -> None:
    for step in range(STEPS):
        transfer(store, ACCOUNTS[(who + step) % 3], ACCOUNTS[(who + step + 1) % 3], 1 + step % 5)


if __name__ == "__main__":
    with hashmere.open("sample-transactions") as store:
        batch = WriteBatch()
        for account in ACCOUNTS:
            batch.set(account, "100")
        store.write_batch(batch)

        children = [multiprocessing.Process(target=work, args=(store, who)) for who in range(PROCESSES)]
        for child in children:
            child.start()
        for _ in range(100):
            assert total(store) == 300
        for child in children:
            child.join()
        print(f"the sum of all accounts is {total(store)}")

        # If alice still has what was seen, close her account and note it; else read what she has.
        unchanged = Condition.value("alice", store["alice"])
        branch = store.write_batch_if(
            [unchanged], WriteBatch().delete("alice").set("closed", "alice"), WriteBatch().get("alice")
        )
        print(f"alice's account is closed: {str(branch.succeeded).lower()}")
        store.remove()
