"""Two processes pass one element to and fro; it carries a number that each of them checks and counts on."""

import multiprocessing
import struct
import sys

import hashmere

PASSES, PATIENCE = 20_000, 30
NUMBER = struct.Struct("<Q")


def play(pool: hashmere.Pool, source: hashmere.Queue, target: hashmere.Queue, first: int) -> None:
    """Takes the ball as long as it is in play, finds in it the number that must be next, and passes on the one behind that."""
    with pool.endpoint() as endpoint:
        for number in range(first, PASSES, 2):
            ball = endpoint.pop(source, timeout=PATIENCE)
            if ball is None:
                sys.exit("the other player has gone")
            with ball.view() as room:  # the bytes in place, without a copy
                (carried,) = NUMBER.unpack(room)
                if carried != number:
                    sys.exit(f"the ball carries {carried} instead of {number}")
                NUMBER.pack_into(room, 0, number + 1)
            ball.push(target if number + 1 < PASSES else pool.free)


def open_pool(store: hashmere.Store) -> hashmere.Pool:
    # One element of eight bytes. Elements that are not in use are in the pool's free queue.
    return hashmere.Pool(store, "ball", elements=1, bytes=NUMBER.size)


def partner(store: hashmere.Store) -> None:
    pool = open_pool(store)
    play(pool, pool.queue("there"), pool.queue("back"), 0)


if __name__ == "__main__":
    hashmere.remove("sample-ping-pong")
    with hashmere.open("sample-ping-pong") as store:
        other = multiprocessing.Process(target=partner, args=(store,))
        other.start()
        pool = open_pool(store)
        there, back = pool.queue("there"), pool.queue("back")
        with pool.endpoint() as endpoint:
            ball = endpoint.pop(pool.free)
            if ball is None:
                sys.exit("the pool is empty")
            ball.write(0, NUMBER.pack(0))
            ball.push(there)
        play(pool, back, there, 1)
        other.join()
        if other.exitcode != 0:
            sys.exit("the other player has failed")
        if pool.free.peek() != NUMBER.pack(PASSES):
            sys.exit("the ball was passed on too often, or too seldom")
        print(f"two processes passed one element {PASSES} times")
        print(f"it carried every number from 0 to {PASSES - 1}")
        store.remove()
