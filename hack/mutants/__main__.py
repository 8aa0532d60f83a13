"""`python -m hack.mutants` puts faults into copies of the checkout and says which no test notices.

Without arguments all mutants that were picked by hand are tried. `--drawn 200` draws 200 others by
`--seed` from the deciding modules. The exit status is 1 if a mutant lives that equivalent.json does
not list.

mutmut could draw mutants as well. It changes single expressions within functions, so mutants picked
by hand (several lines, a constant, a deleted line) would still need this program. It would save the
70 lines of `mutant.possible`, for one more dependency.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from hack.mutants.mutant import ROOT, Mutant, equivalent, picked, possible

_MOST_S = 900.0
"""A test run that takes longer has noticed: something goes on for ever."""

_PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.mutants", description=__doc__)
    parser.add_argument("--drawn", type=int, default=0, help="how many to draw (default: none)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--minutes", type=float, default=600.0, help="begin none after that")
    parser.add_argument("--only", default="", help="the names of some that were picked: B5,K3")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.drawn:
        choice = random.Random(options.seed)  # noqa: S311 - which are tried
        mutants = choice.sample(list(possible()), options.drawn)
        print(f"--drawn {options.drawn} --seed {options.seed}")
    else:
        only = set(filter(None, options.only.split(",")))
        mutants = [each for each in picked() if not only or each.name in only]
    sys.exit(_try_all(mutants, options.jobs, time.monotonic() + 60 * options.minutes))


def _try_all(mutants: list[Mutant], jobs: int, until: float) -> int:
    """Try mutants, some at a time; return 1 if any lives that is not known to be equivalent."""
    known, alive, tried = equivalent(), 0, 0
    sound: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="reserver-mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copies.put(_copy(Path(folder) / str(number)))

        def judged(mutant: Mutant) -> str | None:
            if time.monotonic() > until:
                return None
            copied = copies.get()
            try:
                return _try(mutant, copied, sound)
            finally:
                copies.put(copied)

        with ThreadPoolExecutor(jobs) as pool:
            for mutant, by in zip(mutants, pool.map(judged, mutants), strict=True):
                if by is None:
                    continue
                tried += 1
                is_new = not by and mutant.name not in known
                alive += is_new
                print(f"{by or ('LIVES' if is_new else 'equivalent')}: {mutant.name}", flush=True)
    print(f"{tried} of {len(mutants)} tried, {alive} alive that are not known to be equivalent")
    return int(alive > 0)


def _copy(folder: Path) -> Path:
    """Copy what tests need; the copy's own `reserver` is imported (pythonpath in pyproject)."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
        elif not path.name.startswith(".") and path.name != "dist":
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, folder / path.name, symlinks=True, ignore=ignored)
    return folder


def _try(mutant: Mutant, folder: Path, sound: dict[str, bool]) -> str:
    """Return the tests that notice a mutant; empty if no test does.

    Args:
        mutant: the fault.
        folder: a copy of the checkout without faults.
        sound: whether each test passes there; a failing test counts for no mutant.
    """
    path = folder / mutant.path
    text = path.read_text()
    for tests in mutant.tests:
        if tests not in sound:
            sound[tests] = _pass(tests, folder)
        if not sound[tests]:
            sys.exit(f"{tests} fail without any fault; mend that first (make venv, make test)")
        path.write_text(mutant.applied(text))
        try:
            if not _pass(tests, folder):
                return tests
        finally:
            path.write_text(text)
    return ""


def _pass(tests: str, folder: Path) -> bool:
    """Return whether tests pass in a copy, in time."""
    command = (sys.executable, *_PYTEST, *tests.split())
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            command,
            check=False,
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=_MOST_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


if __name__ == "__main__":
    main()
