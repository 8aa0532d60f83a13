"""Structured logs on standard error: JSON for machines, one coloured line for a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from reserver.printable import printable
from reserver.settings.serve import LogLevel


def configure(level: LogLevel) -> None:
    """Write logs from `level` on, those of libraries included."""
    with _without("rich"):  # With which structlog would show tracebacks in colour: 73 modules.
        import structlog  # noqa: PLC0415 - see above

    number = logging.getLevelNamesMapping()[level.upper()]
    terminal = sys.stderr.isatty()
    json = structlog.processors.JSONRenderer()  # It escapes by itself all that is not ASCII.
    renderers = [_printable, structlog.dev.ConsoleRenderer()] if terminal else [json]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=max(number, logging.WARNING), format="%(message)s")


@contextmanager
def _without(name: str) -> Iterator[None]:
    """Let imports find no package of this name, unless it is there already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # which Python takes for: there is none
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
