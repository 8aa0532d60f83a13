"""`python -m hack.fuzz --inputs 1000000` feeds all decoders and says what that found and cost.

An input is at fault if it raises anything but InvalidInput, takes longer than the time bound, or
needs more memory than the bound; so is a decoder whose process keeps growing. libFuzzer watches
over time and memory from outside of Python, so nothing is stuck in a C function unnoticed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hack.fuzz.decoders import DECODERS
from hack.fuzz.giants import GIANTS

SLOWEST_S = 10
"""Seconds after which an input counts as a hang, on a busy machine as well."""

GIANT_S = 15
"""The same for a giant: it is as much as thousands of lines, some readers take it several times."""

MOST_MB = 1024
"""Most memory of a decoder's process, in MiB."""

GROWTH_MB = 64
"""Most growth of its memory after the start, in MiB; libFuzzer's own corpus grows, too."""

LARGEST = 8192
"""Largest drawn input, in bytes; the giants are up to a mebibyte."""

_MIB = 1 << 20


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of all decoders together")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 10_000))  # noqa: S311
    parser.add_argument("--decoders", default=",".join(DECODERS), help="(default: all of them)")
    options = parser.parse_args()
    names = options.decoders.split(",")
    if unknown := set(names) - set(DECODERS):
        known = ", ".join(DECODERS)
        parser.error(f"no such decoders: {', '.join(sorted(unknown))}; there are {known}")
    print(f"seed {options.seed}, load average {os.getloadavg()[0]:.1f}")
    folder = Path(tempfile.mkdtemp(prefix="reserver-fuzz-"))
    print("| decoder | inputs | a second | slowest | slowest giant | settled | end | peak |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    share = -(-options.inputs // len(names))
    faults = [name for name in names if not _feed(name, share, options.seed, folder / name)]
    if faults:
        sys.exit(f"at fault: {', '.join(faults)}; input and log: {folder}")
    shutil.rmtree(folder)


def _feed(name: str, inputs: int, seed: int, folder: Path) -> bool:
    """Feed one decoder and print what that cost; return whether all was well."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    for number, document in enumerate(DECODERS[name].seeds):
        (corpus / f"seed-{number}").write_bytes(document)
    bounds = [f"-timeout={SLOWEST_S}", f"-rss_limit_mb={MOST_MB}", f"-artifact_prefix={folder}/"]
    bounds += [f"-atheris_runs={inputs}", f"-max_len={LARGEST}"]
    began = time.monotonic()
    many = _work(name, folder / "many", str(seed), *bounds, corpus)
    seconds = time.monotonic() - began
    few = _work(name, folder / "giants", "giants", str(GIANT_S), str(MOST_MB))
    if not many or not few:
        print(f"| {name} | at fault |", flush=True)
        return False
    print(_row(name, many, few, seconds), flush=True)
    is_steady = many["end_bytes"] - many["settled_bytes"] <= GROWTH_MB * _MIB
    return is_steady and many["inputs"] >= inputs and few["inputs"] == len(GIANTS)


def _work(name: str, report: Path, *how: str | Path) -> dict[str, float]:
    """Feed a decoder in a process of its own; return its report, an empty one if it failed."""
    command = [sys.executable, "-m", "hack.fuzz.worker", name, report, *how]
    with report.with_suffix(".log").open("wb") as log:
        code = subprocess.call(command, stdout=log, stderr=log)
    said: dict[str, float] = json.loads(report.read_text()) if code == 0 else {}
    return said


def _row(name: str, many: dict[str, float], few: dict[str, float], seconds: float) -> str:
    numbers = [
        f"{many['inputs']:,.0f}",
        f"{many['inputs'] / seconds:,.0f}",
        f"{many['slowest_s'] * 1000:.0f} ms, {many['slowest_bytes']:,.0f} B",
        f"{few['slowest_s'] * 1000:.0f} ms, {few['slowest_bytes']:,.0f} B",
        f"{many['settled_bytes'] / _MIB:.0f} MiB",
        f"{many['end_bytes'] / _MIB:.0f} MiB",
        f"{max(many['peak_bytes'], few['peak_bytes']) / _MIB:.0f} MiB",
    ]
    return f"| {name} | {' | '.join(numbers)} |"


if __name__ == "__main__":
    main()
