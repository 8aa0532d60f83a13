"""`python -m hack.bench` runs all benchmarks and prints Markdown; `--quick` is a smoke test.

`--write` also writes it to docs/performance-reference.md.

The exit status is 1 if a benchmark exceeds its promised time.
"""

import argparse
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

from hack.bench import (
    binding,
    calls,
    editing,
    emptying,
    fitting,
    page,
    placing,
    rebalancing,
    recurring,
    start,
)
from hack.bench.report import TooSlow, progress
from hack.bench.scale import FULL, QUICK
from reserver.process import logs
from reserver.settings.serve import LogLevel

PAGE = Path(__file__).parents[2] / "docs/performance-reference.md"
_HEAD = """\
# Performance: the tables of `make bench`

Written by `make bench ARGS=--write`. [Performance](performance.md)
explains the columns.
"""
_PACKAGES = ("httptools", "aiohttp", "uvloop", "msgspec", "numpy")


def main() -> None:
    """Run the benchmarks and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m hack.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} as well")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    logs.configure(LogLevel.WARNING)
    began, load = time.perf_counter(), os.getloadavg()[0]
    timed = (calls, binding, fitting, placing, emptying, rebalancing, start, editing)
    too_slow, printed = [], []
    for section in (*timed, recurring, page):
        try:
            for text in section.measure(scale):
                print(text, flush=True)
                printed.append(text)
        except TooSlow as exc:
            too_slow.append(str(exc))
    machine = f"{_machine()}\nLoad average: {load:.1f} before, {os.getloadavg()[0]:.1f} after.\n"
    print(machine, end="")
    if options.write:
        PAGE.write_text("\n".join([_HEAD, *printed, machine]).replace("\n### ", "\n## "))
    progress(f"done in {time.perf_counter() - began:.0f} s")
    sys.exit("\n".join(too_slow) or None)


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    system = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return f"{system}, Python {platform.python_version()}, {packages}."


if __name__ == "__main__":
    main()
