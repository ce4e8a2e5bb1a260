"""Jobs are handed out to worker processes; one of them is killed, and what it was working on is done by another."""

import multiprocessing
import struct
import sys
import time
from multiprocessing.synchronize import Event
from typing import Optional

import hashmere

JOBS, PATIENCE = 1000, 30
NO_MORE = 2**64 - 1  # a job that says that there are no more
JOB = struct.Struct("<QQ")  # a number, and where its square goes


def open_pool(store: hashmere.Store) -> hashmere.Pool:
    return hashmere.Pool(store, "jobs", elements=64, bytes=JOB.size)


def work(store: hashmere.Store, has_job: Optional[Event]) -> None:
    pool = open_pool(store)
    todo, done = pool.queue("todo"), pool.queue("done")
    with pool.endpoint() as endpoint:
        while True:
            job = endpoint.pop(todo, timeout=PATIENCE)
            if job is None:
                sys.exit("there is nothing to do")
            if has_job is not None:
                has_job.set()
                time.sleep(PATIENCE)  # and is killed
            with job.view() as room:
                number, _ = JOB.unpack(room)
                if number != NO_MORE:
                    JOB.pack_into(room, 0, number, number * number)
            if number == NO_MORE:
                job.push(pool.free)
                return
            job.push(done)


def put(endpoint: hashmere.Endpoint, pool: hashmere.Pool, todo: hashmere.Queue, number: int) -> bool:
    """Whether there was an element for one more job."""
    job = endpoint.pop(pool.free)
    if job is not None:
        job.write(0, JOB.pack(number, 0))
        job.push(todo)
    return job is not None


def hand_out(endpoint: hashmere.Endpoint, pool: hashmere.Pool, next: int) -> None:
    """Endpoints out all jobs and takes the results. As many as the pool has elements are under way at a time."""
    todo, done = pool.queue("todo"), pool.queue("done")
    was_done = set()
    for _ in range(JOBS):
        while next < JOBS and put(endpoint, pool, todo, next):
            next += 1
        # A pop that waits recovers the elements of crashed processes: each goes back to where it came from.
        job = endpoint.pop(done, timeout=PATIENCE)
        if job is None:
            sys.exit("a job is lost")
        number, square = JOB.unpack(job.read())
        if square != number * number or number in was_done or number >= JOBS:
            sys.exit(f"job {number} was done twice, or wrongly")
        was_done.add(number)
        job.push(pool.free)


if __name__ == "__main__":
    hashmere.remove("sample-work")
    with hashmere.open("sample-work") as store:
        pool = open_pool(store)
        todo, endpoint = pool.queue("todo"), pool.endpoint()
        # The first worker gets the first job, and is killed with it.
        put(endpoint, pool, todo, 0)
        has_job = multiprocessing.Event()
        victim = multiprocessing.Process(target=work, args=(store, has_job))
        victim.start()
        if not has_job.wait(PATIENCE) or len(todo) > 0:
            sys.exit("the worker has no job")
        victim.kill()
        victim.join()
        print("a worker was killed with a job in its endpoint")

        workers = [multiprocessing.Process(target=work, args=(store, None)) for _ in range(2)]
        for worker in workers:
            worker.start()
        hand_out(endpoint, pool, 1)
        for worker in workers:
            put(endpoint, pool, todo, NO_MORE)
        for worker in workers:
            worker.join()
            if worker.exitcode != 0:
                sys.exit("a worker has failed")
        if pool.stats()["recovered"] != 1 or len(pool.free) != pool.elements:
            sys.exit("not every element is back")
        print(f"{JOBS} jobs done by the others, none lost, none twice")
        endpoint.close()
        store.remove()
