"""Structured logs on standard error: JSON for machines, a coloured line for a terminal."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from reserver.printable import printable
from reserver.settings.serve import LogFormat, LogLevel


def is_json(form: LogFormat | None) -> bool:
    """Return whether logs are JSON: as set, or by default unless standard error is a terminal."""
    return form is LogFormat.JSON if form else not sys.stderr.isatty()


def configure(level: LogLevel, form: LogFormat | None = None) -> None:
    """Write logs from `level` on, including logs of libraries and of Python itself.

    With JSON, nothing else goes to standard error. May be called again.
    """
    with _without("rich"):  # structlog would import its 73 modules for coloured tracebacks.
        import structlog  # noqa: PLC0415 - see above

    number = logging.getLevelNamesMapping()[level.upper()]
    as_json = is_json(form)
    to_json = structlog.processors.JSONRenderer()  # Escapes all that is not ASCII.
    console = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *([to_json] if as_json else [_printable, console]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(format="%(message)s")
    logging.getLogger().setLevel(max(number, logging.WARNING))
    if as_json:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(_JsonLines())
        logging.captureWarnings(capture=True)
        sys.excepthook = _fault
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's core writes lines of another form.


class _JsonLines(logging.Formatter):
    """Formats log lines of libraries as Reserver's own."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "event": record.getMessage(),
            "logger": record.name,
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _fault(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Log the exception that ends the process."""
    logging.getLogger("reserver").critical("ended by a fault", exc_info=(kind, error, where))


@contextmanager
def _without(name: str) -> Iterator[None]:
    """Hide a package from imports in this block, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # Python then finds no such module.
    try:
        yield
    finally:
        del sys.modules[name]


def _printable(_: object, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape control characters; tracebacks keep their lines."""
    for name, value in line.items():
        if isinstance(value, str):
            line[name] = printable(value, "\n\t")
    return line
