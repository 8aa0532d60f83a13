"""`python -m hack.descheduler` compares Reserver with upstream's own code; names what differs."""

from __future__ import annotations

import argparse
import random
import sys
import time

from hack.controlplane.build import BuildError
from hack.descheduler import evictions, files
from hack.descheduler.evictions import Pairs
from hack.descheduler.files import Files
from hack.descheduler.oracle import oracle


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.descheduler", description=__doc__)
    parser.add_argument("--pairs", type=int, default=500, help="of a cluster and a policy")
    parser.add_argument("--files", type=int, default=2000, help="policy files, some of them broken")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))  # noqa: S311
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    began, pairs = time.monotonic(), Pairs()
    draw = random.Random(options.seed)  # noqa: S311 (not a secret)
    try:
        with oracle() as upstream:
            read = files.compare(upstream, draw, options.files)
            for _ in range(options.pairs):
                evictions.compare(upstream, draw, pairs)
                print(f"\r{pairs.compared} pairs", end="", file=sys.stderr, flush=True)
    except BuildError as exc:
        sys.exit(str(exc))
    print(file=sys.stderr)
    _report(read, pairs, time.monotonic() - began)
    sys.exit(1 if read.differences or pairs.differences else 0)


def _report(read: Files, pairs: Pairs, seconds: float) -> None:
    for difference in read.differences + pairs.differences:
        print(difference, end="\n\n")
    print("Pairs in which upstream evicts, by the strategies that are enabled:")
    for strategy, count in pairs.strategies.most_common():
        print(f"{count:6} {strategy}")
    agreed = pairs.compared - len(pairs.differences)
    print(
        f"{agreed} of {pairs.compared} pairs agree: upstream evicts in {pairs.evicting}, with ties"
        f" in {pairs.tied}; {read.asked - len(read.differences)} of {read.asked} policy files, both"
        f" refuse {read.refused}, Reserver alone {read.quirks} for a quirk; {seconds:.0f} s."
    )


if __name__ == "__main__":
    main()
