"""The log of a store, and a handler that has it take what a program logs through `logging`."""

from __future__ import annotations

import logging
import os
from typing import Any, Callable, Dict, Optional, Tuple, Union

from . import _hashmere, _open
from ._store import Path, Store
from ._types import Level, LogLine
from .errors import LogTooLong

Target = Union[None, int, str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", Callable[[LogLine], object], Any]


class Log(_hashmere.Log):
    """A log in a store: threads of any processes log lines into it, and one drainer writes them out in the order of time.

        log = hashmere.Log(store)                       # any process opens the same one
        log.info("started", workers=4)                  # fields are optional
        with log.drain("app.log", max_bytes=1 << 24, keep=3): ...

    What is listed as inherited from `hashmere._hashmere.Log` belongs to it. The handle may be used from any number of threads, and in
    forked children; pickled, it is opened again where it is unpickled. For `logging` see `LogHandler`.
    """

    __slots__ = ("__weakref__", "_store", "_options")

    def __init__(self, store: Store, name: str = "log", /, **options: Any) -> None:
        self._store = store
        self._options: Dict[str, Any] = options

    def __reduce__(self) -> Tuple[Any, ...]:
        return _reopen, (self._store, self.name, self._options)

    def __repr__(self) -> str:
        return "<hashmere.Log closed>" if self.closed else f"<hashmere.Log {self.name!r} of {self._store!r}>"

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def drain(self, to: Target = None, /, **how: Any) -> _hashmere.Drainer:
        drainer = super().drain(to, **how)
        _open.opened(drainer)
        return drainer

    drain.__doc__ = f"{_hashmere.Log.drain.__doc__}\n\nIt is stopped at the end of the process, if not before."


def _reopen(store: Store, name: str, options: Dict[str, Any]) -> Log:
    return Log(store, name, **options)


# What every record has, and thus is no field of the caller's.
_USUAL = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__) | {"message", "asctime", "taskName"}
# Levels that the log has under the same name.
_NAMED = frozenset((logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG))


def level_of(number: int) -> Level:
    """The level of the log for one of `logging`: the next one below that is as important."""
    if number >= logging.ERROR:
        return Level.ERROR
    if number >= logging.WARNING:
        return Level.WARN
    if number >= logging.INFO:
        return Level.INFO
    return Level.DEBUG if number >= logging.DEBUG else Level.TRACE


class LogHandler(logging.Handler):
    """Has a log take what a program logs through `logging`: the stream of all processes, in the order of time, nothing lost.

    It is given a `Log`, or a store (or the name of one) and the options of `Log`, so that it can be named in the dict of
    `logging.config.dictConfig`:

        {"class": "hashmere.LogHandler", "store": "sessions", "name": "log", "on_no_drainer": "keep"}

    The text is what the formatter makes of the record; the default one, the message. A traceback follows in further lines of the same
    record, so nothing comes between. The logger's name becomes the field ``logger``, what is given as ``extra`` further fields, and a
    level that the log has not (``CRITICAL``) the field ``level``. A record that is too long with its fields goes without them. A level
    that the log does not want costs a comparison and no formatting.

    The log needs a drainer: this process (`Log.drain`), another, or ``hashmere log STORE``. Otherwise, and unless it says
    ``on_no_drainer="keep"``, each line goes to standard output. An error goes to `logging.Handler.handleError` and is never raised.
    """

    def __init__(
        self,
        log: Optional[Log] = None,
        *,
        store: Union[None, Store, Path] = None,
        name: str = "log",
        level: Union[int, str] = logging.NOTSET,
        **options: Any,
    ) -> None:
        super().__init__(level)
        if (log is None) == (store is None):
            raise TypeError("a LogHandler needs a log or a store: LogHandler(log), or LogHandler(store=...)")
        self._owned: Tuple[Any, ...] = ()
        if log is None:
            opened = store if isinstance(store, Store) else Store(store)  # type: ignore[arg-type]
            log = Log(opened, name, **options)
            self._owned = (log,) if opened is store else (log, opened)
        elif options:
            raise TypeError(f"options are for a log that the handler opens itself: {', '.join(options)}")
        self.log = log
        """The log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Logs a record."""
        try:
            level = level_of(record.levelno)
            if self.log.enabled(level):
                self._put(level, self.format(record), _fields(record))
        except RecursionError:
            raise
        except Exception:
            self.handleError(record)

    def _put(self, level: Level, text: str, fields: Dict[str, Any]) -> None:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = text.encode(errors="backslashreplace")
        try:
            self.log.line(level, data, **fields)
        except LogTooLong:
            # Text alone can be split.
            self.log.line(level, data)

    def flush(self) -> None:
        """Waits until all that was logged was delivered, for a second at most, if there is a drainer. It is safe in the store anyway."""
        try:
            if not self.log.closed and self.log.stats()["drainer"] is not None:
                self.log.flush(_PATIENCE)
        except Exception:
            # There is no record to tell `handleError` of, and what was logged is in the store.
            pass

    def close(self) -> None:
        """Lets go of the log, and of the store, if it opened them itself."""
        for opened in self._owned:
            opened.close()
        super().close()


# How long a flush waits for the drainer, in seconds: it may be stopped, or dead, and programs flush when they end.
_PATIENCE = 1.0


def _fields(record: logging.LogRecord) -> Dict[str, Any]:
    fields: Dict[str, Any] = {"logger": record.name}
    if record.levelno not in _NAMED:
        fields["level"] = record.levelname
    for key, value in record.__dict__.items():
        if key not in _USUAL:
            fields[key] = value
    return fields


__all__ = ["Log", "LogHandler", "level_of"]
