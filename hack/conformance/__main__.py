"""`python -m hack.conformance` runs upstream's scheduling specs, and says what Reserver breaks.

On $KUBERNETES or the newest version, with kube-scheduler alone, with Reserver, and with Reserver
while each node has room held. What passes alone has to pass in all ways: else the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hack.bench.report import progress
from hack.conformance.record import RECORD
from hack.conformance.specs import PASSED, SuiteFault, share, worse
from hack.conformance.suite import Suite, build, suites
from hack.conformance.ways import ALONE, WAYS, Way, run
from hack.controlplane.build import BuildError, chosen
from hack.controlplane.process import StartError
from hack.programs import heed_signals
from hack.release.record import Run
from hack.release.version import commit, kubernetes


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.conformance", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write docs/compatibility.md")
    options = parser.parse_args()
    heed_signals()
    folder = Path(tempfile.mkdtemp(prefix="reserver-conformance-"))
    progress(f"logs: {folder}")
    try:
        program = build(chosen())
        faults = []
        for suite in suites(chosen()):
            found, lost = judged(program, suite, folder)
            faults += lost
            if options.record:
                RECORD.add(found)
    except (BuildError, StartError, SuiteFault) as error:
        sys.exit(f"{error}\nlogs: {folder}")
    for fault in faults:
        print(f"FAILED {fault}")
    sys.exit(1 if faults else 0)


def judged(program: Path, suite: Suite, folder: Path) -> tuple[Run, list[str]]:
    """Run a suite in all ways; return what passed, and what passes alone and not otherwise.

    Raises:
        SuiteFault: a way could not be run.
    """
    # At once: specs mostly wait, and each way has a control plane of its own.
    with ThreadPoolExecutor(len(WAYS)) as pool:
        found = pool.map(lambda way: _run(program, suite, way, folder), WAYS)
        outcomes = dict(zip(WAYS, found, strict=True))
    counts = {way.name: share(found) for way, found in outcomes.items()}
    faults = [
        f"{suite.name}, {way.name}: {name}: {state}"
        for way, found in outcomes.items()
        for name, state in worse(outcomes[ALONE], found).items()
    ]
    today = time.strftime("%Y-%m-%d", time.gmtime())
    return Run(kubernetes(), commit(), today, counts, suite.name), faults


def _run(program: Path, suite: Suite, way: Way, folder: Path) -> dict[str, str]:
    """Run a suite in one way, and say how that went."""
    began = time.monotonic()
    title = f"{suite.name}, {way.name}"
    logs = folder / title.replace(", ", "-").replace(" ", "-")  # kubectl parts files at commas.
    logs.mkdir()
    found = run(program, suite, way, logs)
    passed, tried = share(found)
    failed = [f"  {state}: {name}" for name, state in sorted(found.items()) if state != PASSED]
    seconds = time.monotonic() - began
    print("\n".join([f"{title}: {passed} of {tried} in {seconds:.0f} s", *failed]), flush=True)
    return found


if __name__ == "__main__":
    main()
