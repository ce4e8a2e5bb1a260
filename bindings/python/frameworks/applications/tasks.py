"""Tasks whose results are in a store; the broker is a folder."""

import os

from celery import Celery

folder = os.environ["HASHMERE_DIR"]
app = Celery("tasks", broker="filesystem://", backend="hashmere://results")
app.conf.update(
    broker_transport_options={"data_folder_in": f"{folder}/queue", "data_folder_out": f"{folder}/queue", "store_processed": False},
    worker_prefetch_multiplier=1,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    broker_connection_retry_on_startup=True,
    result_expires=1000,
)


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def fail(text):
    raise ValueError(text)


@app.task
def killed_once():
    """Kills its worker, the first time."""
    try:
        os.mkdir(f"{folder}/killed")
    except FileExistsError:
        return "done"
    os.kill(os.getpid(), 9)
