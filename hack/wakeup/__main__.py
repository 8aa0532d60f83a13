"""Measures the wake-up of waiting pods on the real kube-scheduler, with its default back-off.

    python -m hack.wakeup --trials 200
        from a release to the binding, with the wake-up and without
    python -m hack.wakeup [--waiting N ...] [--way nomination|change]
        how pods are best woken

The numbers are in docs/adr/0004.
"""

import argparse
import os

from hack.wakeup import latency, ways
from hack.wakeup.scene import scene


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.wakeup",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=int, metavar="N", help="releases with one pod waiting")
    parser.add_argument("--waiting", type=int, nargs="+", choices=ways.TRIALS, default=ways.TRIALS)
    parser.add_argument("--way", nargs="+", choices=ways.WAYS, default=ways.WAYS)
    options = parser.parse_args()
    if options.trials is not None and options.trials < latency.ROUNDS:
        parser.error(f"--trials: {options.trials} are too few, there are {latency.ROUNDS} rounds")
    before = os.getloadavg()[0]
    with scene() as stage:
        if options.trials is None:
            ways.measure(stage, options.waiting, options.way)
        else:
            latency.measure(stage, options.trials)
    print(f"\nLoad average: {before:.1f} before, {os.getloadavg()[0]:.1f} after.")


if __name__ == "__main__":
    main()
