"""Markdown on standard output, progress on standard error."""

import os
import platform
import sys
import time
from collections.abc import Sequence

from hack.bed.install import ROOT
from hack.release.record import replaced

PAGE = ROOT / "docs/performance.md"

_LARGE = 10


class TooSlow(Exception):
    """A measurement exceeds its promised bound."""


def progress(text: str) -> None:
    """Show the current measurement on standard error."""
    print(f"… {text}", file=sys.stderr, flush=True)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a titled Markdown table; the first column is text, all others are numbers."""
    rule = ["---", *("---:" for _ in header[1:])]
    lines = (f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))
    return "\n".join((f"### {title}", "", *lines, ""))


def machine(kubernetes: str) -> str:
    """Return the machine, with its load of the last five minutes, and the versions."""
    return (
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.0f}, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}, Kubernetes {kubernetes}, "
        f"{time.strftime('%Y-%m-%d')}"
    )


def write(target: str, text: str) -> None:
    """Write the output of a Makefile target between its two lines of docs/performance.md."""
    begin = f"<!-- Written by `make {target} ARGS=--write`. -->\n"
    end = f"<!-- End of what `make {target}` writes. -->\n"
    PAGE.write_text(replaced(PAGE.read_text(), begin, end, text))


def milliseconds(seconds: float) -> str:
    """Return a duration in milliseconds."""
    return f"{_digits(seconds * 1e3)} ms"


def microseconds(seconds: float) -> str:
    """Return a duration in microseconds."""
    return f"{_digits(seconds * 1e6)} µs"


def times(ratio: float) -> str:
    """Return a ratio as text: ``0.04 ×``, ``1.3 ×``, ``42 ×``."""
    if ratio < 1:
        return f"{ratio:.2g} ×"
    return f"{ratio:.1f} ×" if ratio < _LARGE else f"{ratio:.0f} ×"


def kilobytes(size: float) -> str:
    """Return a number of bytes in kB."""
    return f"{_digits(size / 1e3)} kB"


def _digits(number: float) -> str:
    """Return a number without digits that noise would change."""
    return f"{number:.2f}" if number < _LARGE else f"{number:,.0f}"
