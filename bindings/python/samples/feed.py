"""What happens to the keys of a store, followed by a consumer that stops and resumes."""

import multiprocessing
import sys

import hashmere

CHANGES = 500


def worker(store: hashmere.Store) -> None:
    for _ in range(CHANGES):
        store.incr("hits", initial=1)


def show(event: hashmere.FeedEvent) -> None:
    if event.kind == "reset":
        print(f"reset: {event.reason}")
    elif event.key is None:
        print(event.kind)
    else:
        if event.transaction is not None and event.transaction.index == 0:
            print(f"in a transaction, {event.transaction.len} of it:")
        value = "" if event.value is None else f" = {event.value.decode()}"
        print(f"{event.operation} {event.key.decode()}{value}")


def drain(feed: hashmere.Feed) -> None:
    """Shows what there is."""
    while True:
        event = feed.next(0)
        if event is None:
            return
        show(event)


if __name__ == "__main__":
    hashmere.remove("sample-feed")
    with hashmere.open("sample-feed", feed=1 << 20, feed_values=True) as store:
        store["alice"] = "100"
        with store.feed("start", values=True) as feed:  # every key first
            drain(feed)
            store["bob"] = "7"
            batch = hashmere.WriteBatch()
            batch.set("alice", "70")
            batch.set("bob", "37")
            store.write_batch(batch)
            del store["bob"]
            drain(feed)
            token = feed.token  # a consumer keeps it where its data are
        store["carol"] = "5"
        store.clear()
        print("resumed")
        with store.feed(token, values=True) as feed:
            drain(feed)
            sys.stdout.flush()
            process = multiprocessing.Process(target=worker, args=(store,))
            process.start()
            for number, event in zip(range(1, CHANGES + 1), feed):  # waits for each
                if event.value != b"%d" % number:
                    sys.exit(f"change {number} is missing: {event}")
            process.join()
            if process.exitcode != 0:
                sys.exit("the other process has failed")
        print(f"{CHANGES} changes of another process, in order")
        store.remove()
