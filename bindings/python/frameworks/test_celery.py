"""A worker of Celery that forks its children, and callers in this process."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "applications"))
PATIENCE = 120


@pytest.fixture
def tasks(folder, process):
    os.mkdir(f"{folder}/queue")
    sys.modules.pop("tasks", None)
    import tasks

    process("celery", "-A", "tasks", "worker", "--pool", "prefork", "--concurrency", "2", "-l", "INFO").said("ready\\.")
    yield tasks
    tasks.app.backend.store.close()


def test_a_worker(tasks):
    from celery import chord, group
    from celery.exceptions import TimeoutError

    result = tasks.add.delay(2, 3)
    assert result.get(timeout=PATIENCE) == 5 and result.successful()
    store = tasks.app.backend.store
    assert 500 < store.ttl(f"celery-task-meta-{result.id}") <= 1000
    result.forget()
    assert result.state == "PENDING" and f"celery-task-meta-{result.id}" not in store
    with pytest.raises(ValueError, match="no such thing"):
        tasks.fail.delay("no such thing").get(timeout=PATIENCE)
    many = group(tasks.add.s(i, i) for i in range(20))()
    assert many.get(timeout=PATIENCE) == [2 * i for i in range(20)]
    assert chord(tasks.add.s(i, 1) for i in range(10))(tasks.total.s()).get(timeout=PATIENCE) == 55
    assert tasks.killed_once.delay().get(timeout=PATIENCE) == "done"
    with pytest.raises(TimeoutError):
        tasks.app.AsyncResult("of no task").get(timeout=0.05)


def test_urls(folder):
    from celery import Celery
    from celery.exceptions import ImproperlyConfigured

    app = Celery("app", backend=f"hashmere://{folder}/a.mere")
    app.conf.result_backend_transport_options = {"max_bytes": 8 << 20, "global_keyprefix": "site"}
    app.backend.store_result("task", 5, "SUCCESS")
    assert app.backend.store.path == f"{folder}/a.mere" and app.backend.store.stats()["bytes_max"] == 8 << 20
    assert "site_celery-task-meta-task" in app.backend.store and app.AsyncResult("task").get() == 5
    app.backend.store.close()
    for url in ("hashmere://", "hashmere:///", "hashmere://host/path"):
        with pytest.raises(ImproperlyConfigured, match="names no store"):
            Celery("app", backend=url).backend
