"""Structured logs on standard error: JSON for machines, one coloured line for a terminal."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum


class Level(StrEnum):
    """From which level on log lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure(level: Level) -> None:
    """Write logs from `level` on, those of libraries included."""
    import structlog

    number = logging.getLevelNamesMapping()[level.upper()]
    terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=max(number, logging.WARNING), format="%(message)s")
