"""Many clients create sets on a cluster that is full: never too much held, no half set.

    python -m hack.sets --calls 10000 --clients 50 --store object --real

They release some of what they created, so that there is room now and then, and all at last. A third
party, which shares no decision with reserver, follows the stores and adds up what they hold after
each write. The cluster is the embedded one, or with `--real` the control plane that `make
controlplane` builds.
"""

from __future__ import annotations

import argparse
import sys

import uvloop

from hack.sets import clusters
from hack.sets.auditor import Auditor
from hack.sets.clients import Outcome
from hack.sets.race import race
from reserver.config import ReservationStore


async def run(calls: int, count: int, store: ReservationStore, *, is_real: bool) -> int:
    """Run and report; return an exit status."""
    async with (clusters.real if is_real else clusters.embedded)(store) as scene:
        outcome, auditor, took = await race(scene, calls, count)
    return report(outcome, auditor, took)


def report(outcome: Outcome, auditor: Auditor, took: float) -> int:
    """Print what came of it; return an exit status."""
    codes = ", ".join(f"{code} {count}" for code, count in outcome.codes.most_common())
    print(f"{codes} in {took:.1f} s; {auditor.writes} writes audited")
    for kind, values in outcome.seconds.items():
        ranked = sorted(values)
        if ranked:
            p50, p99 = (1000 * ranked[int(len(ranked) * q)] for q in (0.5, 0.99))
            print(f"{kind}: {len(ranked)}, p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    for wrong in auditor.wrong[:10]:
        print(f"WRONG: {wrong}")
    print(f"{len(auditor.wrong)} violations")
    return 1 if auditor.wrong or not auditor.writes else 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    stores = list(ReservationStore)
    parser.add_argument("--store", type=ReservationStore, choices=stores, default=stores[0])
    parser.add_argument("--real", action="store_true", help="on the real control plane")
    given = parser.parse_args()
    return uvloop.run(run(given.calls, given.clients, given.store, is_real=given.real))


if __name__ == "__main__":
    sys.exit(main())
