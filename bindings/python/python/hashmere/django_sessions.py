"""Sessions of Django in a store that all worker processes of the machine share.

    SESSION_ENGINE = "hashmere.django_sessions"
    HASHMERE_SESSIONS = {"LOCATION": "my-site-sessions", "OPTIONS": {"max_bytes": 256 << 20}}      # may be left out

The store is strict: a session lives until it expires or is deleted, and is never dropped to make room; a store that is full refuses new
sessions with `hashmere.Full`. (``SESSION_ENGINE = "django.contrib.sessions.backends.cache"`` on `hashmere.django.HashmereCache` is
the other choice: there those that are not used go.) ``LOCATION`` is a name or a path as for `hashmere.open`, "django-sessions"
without; ``OPTIONS`` are its options. Values are signed and serialized as by Django's database engine, so by ``SESSION_SERIALIZER``
(JSON), and ``SECRET_KEY``. ``manage.py clearsessions`` gives back the room of expired sessions, which writers do by themselves when they need
it. Keys begin with ``django.session:``.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from django.conf import settings
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError

from ._shared import shared
from ._store import Store

_KEY = "django.session:"
_NAME = "django-sessions"


def _store() -> Store:
    """The store of the settings."""
    given = getattr(settings, "HASHMERE_SESSIONS", {})
    return shared(given.get("LOCATION", _NAME), given.get("OPTIONS", {}))


class SessionStore(SessionBase):
    """See the module."""

    @property
    def store(self) -> Store:
        """Where the sessions are."""
        return _store()

    @staticmethod
    def _named(session_key: Optional[str]) -> str:
        return f"{_KEY}{session_key or ''}"

    def load(self) -> Dict[str, Any]:
        data = self.store.get(self._named(self.session_key))
        if data is None:
            self._session_key = None
            return {}
        # What was not signed with this key is an empty session, as in Django's own engines.
        return self.decode(data.decode("latin-1"))

    def create(self) -> None:
        while True:
            self._session_key = self._get_new_session_key()
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        if self.session_key is None:
            return self.create()
        data = self.encode(self._get_session(no_load=must_create)).encode("latin-1")
        write = self.store.add if must_create else self.store.replace
        if write(self._named(self.session_key), data, ttl=max(self.get_expiry_age(), 0)) is None:
            raise CreateError if must_create else UpdateError

    def exists(self, session_key: str) -> bool:
        return bool(session_key) and self._named(session_key) in self.store

    def delete(self, session_key: Optional[str] = None) -> None:
        session_key = self.session_key if session_key is None else session_key
        if session_key is not None:
            self.store.delete(self._named(session_key))

    @classmethod
    def clear_expired(cls) -> None:
        _store().compact()


__all__ = ["SessionStore"]
