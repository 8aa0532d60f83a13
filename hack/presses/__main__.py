"""`python -m hack.presses` presses at random moments; its exit status is 1 if one did not end.

Each press is drawn from the seed and its number, so that `--only` repeats one.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from hack.presses.busy import busy
from hack.presses.invocations import each_command, live
from hack.presses.press import Outcome, pressed
from hack.presses.stage import staged
from hack.programs import heed_signals

_FORCED_S = 4.5
"""Seconds after which a command was ended by force."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.presses", description=__doc__)
    parser.add_argument("--presses", type=int, default=300, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of some presses")
    parser.add_argument("--busy", type=int, default=2, help="processes that compute beside")
    parser.add_argument("--at-once", type=int, default=4, help="(default: %(default)s)")
    options = parser.parse_args()
    heed_signals()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"seed {options.seed}")
    numbers = options.only or range(options.presses)
    with (
        TemporaryDirectory(prefix="presses-") as folder,
        staged(Path(folder)) as stage,
        busy(options.busy),
    ):
        among = [*each_command(stage), *live(stage)]
        outcomes = pressed(among, options.seed, numbers, options.at_once)
    for number, each in outcomes.items():
        if each.problem:
            print(f"\n{number}: {each.invocation}, {each.press}\n{each.problem}")
    _tell(list(outcomes.values()))
    sys.exit(any(each.problem for each in outcomes.values()))


def _tell(outcomes: list[Outcome]) -> None:
    took = sorted(each.took_s for each in outcomes if each.took_s is not None)
    forced = [each for each in outcomes if (each.took_s or 0) > _FORCED_S and not each.problem]
    problems = sum(bool(each.problem) for each in outcomes)
    print(f"{len(outcomes)} commands, {len(took)} pressed while they ran, {problems} problems")
    if took:
        print(f"they took {statistics.median(took):.2f} s to end, {took[-1]:.2f} s at most")
    for each in forced:
        print(f"slow: {each.took_s:.1f} s: {each.invocation}, {each.press}")


if __name__ == "__main__":
    main()
