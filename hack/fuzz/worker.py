"""Feeds one decoder in a process of its own.

    python -m hack.fuzz.worker NAME REPORT SEED FLAG...    by libFuzzer, with its flags
    python -m hack.fuzz.worker NAME REPORT giants SECONDS MEBIBYTES    with the giants


libFuzzer ends its process, and the memory of one decoder is not counted for another.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import logging
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import atheris
import structlog

from hack.fuzz.giants import GIANTS
from hack.fuzz.mutation import mutate

IS_GIANTS = sys.argv[3:4] == ["giants"]

# Nobody looks at what a giant covers, and finding out makes all slower.
with nullcontext() if IS_GIANTS else atheris.instrument_imports(include=["reserver", "yaml"]):
    from hack.fuzz.checks import try_to
    from hack.fuzz.decoders import DECODERS

_STRUCTURAL = 0.75
"""Share of the inputs that come from a mutation of their structure; of the rest bytes change."""

_SETTLED = 20_000
"""After so many inputs all is imported and all memories are full: from then on none is to grow."""

_PAGE = 4096


class Meter:
    """The cost of feeding a decoder.

    Attributes:
        inputs: the number of inputs.
        slowest_s: seconds of the slowest input.
        slowest: the slowest input.
        settled_bytes: resident memory after the start, in bytes.
    """

    def __init__(self, read: Callable[[bytes], object]) -> None:
        self._read = read
        self.inputs = 0
        self.slowest_s = 0.0
        self.slowest = b""
        self.settled_bytes = 0

    def feed(self, raw: bytes) -> None:
        """Feed one input."""
        began = time.perf_counter()
        try_to(self._read, raw)
        seconds = time.perf_counter() - began
        self.inputs += 1
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest = seconds, raw
        if self.inputs == _SETTLED:
            self.settled_bytes = _resident()

    def write(self, report: Path) -> None:
        """Write the measurements."""
        report.with_suffix(".slowest").write_bytes(self.slowest)
        said = {"inputs": self.inputs, "slowest_s": self.slowest_s}
        said |= {"slowest_bytes": len(self.slowest)}
        said |= {"settled_bytes": self.settled_bytes or _resident(), "end_bytes": _resident()}
        said["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        report.write_text(json.dumps(said))


def main() -> None:
    """The command line."""
    name, report, how, *flags = sys.argv[1:]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    meter = Meter(DECODERS[name].read)
    atexit.register(meter.write, Path(report))
    # libFuzzer's alarm goes on while Python ends, when nobody handles it any more.
    atexit.register(signal.signal, signal.SIGALRM, signal.SIG_IGN)
    if IS_GIANTS:
        _feed_giants(meter, float(flags[0]), int(flags[1]) << 20)
    else:
        _fuzz(meter, [f"-seed={how}", *flags])


def _feed_giants(meter: Meter, seconds: float, most_bytes: int) -> None:
    """Feed them one by one; ends the process if one takes too long, even in a C function."""
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    for make in GIANTS.values():
        giant = make()
        faulthandler.dump_traceback_later(seconds, exit=True)
        meter.feed(giant)
        faulthandler.cancel_dump_traceback_later()


def _fuzz(meter: Meter, flags: list[str]) -> None:
    rng = random.Random()  # noqa: S311

    def mutated(raw: bytes, most: int, seed: int) -> bytes:
        rng.seed(seed)
        found = mutate(raw, rng, most) if rng.random() < _STRUCTURAL else None
        return atheris.Mutate(raw, len(raw) or 1) if found is None else found

    atheris.Setup([sys.argv[0], *flags], meter.feed, custom_mutator=mutated)
    atheris.Fuzz()


def _resident() -> int:
    """Return the memory that this process has now, in bytes (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


if __name__ == "__main__":
    main()
