"""`python -m hack.live WHAT` measures something on the real kube-scheduler and nodes of its own.

The numbers are in docs/performance.md, docs/preemption.md and docs/adr/0004. The exit status is 1
if something came of it that must not be.
"""

from __future__ import annotations

import argparse
import os
import sys

from hack.controlplane.process import StartError
from hack.live import preempt, seats, sets, wakeup, ways

_WHAT = {"wakeup": wakeup, "ways": ways, "seats": seats, "sets": sets, "preempt": preempt}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.live", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="WHAT")
    for name, module in _WHAT.items():
        summary = (module.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        module.arguments(command)
        command.set_defaults(measure=module.measure)
    options = parser.parse_args()
    before = os.getloadavg()[0]
    try:
        is_good = options.measure(options)
    except StartError as error:
        sys.exit(str(error))
    print(f"\nLoad average: {before:.1f} before, {os.getloadavg()[0]:.1f} after.")
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
