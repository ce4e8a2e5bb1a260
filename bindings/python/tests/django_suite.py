"""Runs Django's tests of a cache backend and of a session engine on ours. Usage: django_suite.py UNPACKED_DJANGO"""

import sys

source = sys.argv[1]
sys.path.insert(0, f"{source}/tests")

import django  # noqa: E402
from django.conf import settings  # noqa: E402

settings.configure(
    INSTALLED_APPS=[
        "django.contrib.contenttypes",
        "django.contrib.auth",
        "django.contrib.sessions",
        "django.contrib.sites",
        "cache",
        "sessions_tests",
    ],
    DATABASES={name: {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"} for name in ("default", "other")},
    SITE_ID=1,
    SECRET_KEY="for tests",
    ROOT_URLCONF="urls",
    USE_TZ=False,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()

from cache.tests import BaseCacheTests, caches_setting_for_tests  # noqa: E402
from django.core.cache import cache, caches  # noqa: E402
from django.test import SimpleTestCase, TestCase, override_settings  # noqa: E402
from django.test.runner import DiscoverRunner  # noqa: E402
from sessions_tests.tests import SessionTestsMixin  # noqa: E402

from hashmere import django_sessions  # noqa: E402


# Culling by number is not how the store makes room, so there are no caches for those tests, as for memcached and Redis.
@override_settings(
    CACHES=caches_setting_for_tests(
        BACKEND="hashmere.django.HashmereCache", LOCATION="django", exclude={"cull", "zero_cull"}
    )
)
class HashmereCacheTests(BaseCacheTests, TestCase):
    incr_decr_type_error = TypeError

    def test_integers_are_counters_for_all_processes(self):
        cache.set("n", 5)
        self.assertEqual(cache.store.incr(cache.make_key("n"), 2), 7)
        self.assertEqual(cache.get("n"), 7)

    def test_threads_share_a_handle(self):
        self.assertIs(caches["default"].store, caches["prefix"].store)

    def test_what_does_not_fit(self):
        huge, name = "x" * (100 << 20), "hashmere.django"
        cache.set("k", "small")
        with self.assertLogs(name, "WARNING"):
            self.assertIsNone(cache.set("k", huge))
        self.assertIsNone(cache.get("k"), "the value of before is taken for the new one")
        with self.assertLogs(name, "WARNING"):
            self.assertIs(cache.add("k", huge), False)
            self.assertEqual(cache.set_many({"a": 1, "k": huge, "b": 2}), ["k"])
        self.assertEqual(cache.get_many(["a", "b", "k"]), {"a": 1, "b": 2})
        with self.assertLogs(name, "WARNING"):
            self.assertEqual(cache.get_or_set("other", huge, 10), huge)

    def test_another_maximum(self):
        def backend(size):
            return caches["default"].__class__("sized", {"OPTIONS": {"max_bytes": size}})

        page = b"p" * 100_000
        first, smaller = backend(24 << 20), backend(6 << 20)
        first.set_many({f"k{i}": page for i in range(200)})
        smaller.set("n", page)
        self.assertEqual((first.get("n"), first.store.stats()["bytes_max"]), (page, 6 << 20))
        self.assertLessEqual(first.store.stats()["bytes_allocated"], 6 << 20)

    def test_other_coders(self):
        other = caches.create_connection("default").__class__("django", {"OPTIONS": {"coder": "hashmere.JSON"}})
        other.set("json", {"a": [1]})
        self.assertEqual(other.store[other.make_key("json")], b'{"a":[1]}')
        self.assertEqual(other.get("json"), {"a": [1]})


class HashmereSessionTests(SessionTestsMixin, SimpleTestCase):
    backend = django_sessions.SessionStore

    def test_a_record_is_signed_and_expires(self):
        self.session["user"] = "Ada"
        self.session.set_expiry(1000)
        self.session.save()
        store, key = self.session.store, f"django.session:{self.session.session_key}"
        self.assertTrue(500 < store.ttl(key) <= 1000)
        self.assertEqual(self.backend(self.session.session_key)["user"], "Ada")
        store[key] = store[key][:-1] + b"?"
        self.assertNotIn("user", self.backend(self.session.session_key))

    def test_what_expired_is_gone(self):
        self.session["user"] = "Ada"
        self.session.set_expiry(-1)
        self.session.save()
        self.assertFalse(self.session.exists(self.session.session_key))
        self.session.clear_expired()

    def test_the_store_of_the_settings(self):
        self.assertTrue(self.session.store.path.endswith("/django-sessions.mere"))
        self.session.store.close()
        with override_settings(HASHMERE_SESSIONS={"LOCATION": "other", "OPTIONS": {"max_bytes": 8 << 20}}):
            self.assertEqual(self.backend().store.stats()["bytes_max"], 8 << 20)
        self.backend().store.close()


class Runner(DiscoverRunner):
    def build_suite(self, *args, **kwargs):
        suite = self.test_loader.loadTestsFromTestCase(HashmereCacheTests)
        suite.addTests(self.test_loader.loadTestsFromTestCase(HashmereSessionTests))
        return suite


if __name__ == "__main__":
    sys.exit(bool(Runner(verbosity=1).run_tests([])))
