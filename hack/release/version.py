"""`KUBERNETES=1.36 python -m hack.release.version` runs and records the scenarios of a version.

The record is in docs/compatibility.md. The exit status is pytest's.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable

import pytest

from hack.controlplane.build import bin_dir
from hack.release.record import PAGE, RECORD, ROOT, Run

SCENARIOS = {
    "the main scenario": "test_scenario.py",
    "holds": "test_holds.py",
    "seats": "test_seats.py",
    "preemption": "test_preemption.py",
    "gRPC": "test_grpc.py",
    "devices": "test_devices.py",
    "a pod that is resized": (
        "apart/test_patches.py::test_a_pod_does_not_grow_into_room_that_is_held"
    ),
    "versions, gates and batching": "test_versions.py",
}
"""The scenarios of each version, below tests/e2e."""

_FOLDER = "tests/e2e/"
_WHOLE = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
"""The exit statuses of a complete run of pytest."""


class Outcomes:
    """A plugin of pytest that notes which scenarios passed."""

    def __init__(self) -> None:
        """Begin with none."""
        self._passed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how the preparation of a scenario, itself or its end went; pytest calls this."""
        self._passed[report.nodeid] = self._passed.get(report.nodeid, True) and report.passed

    def groups(self) -> dict[str, tuple[int, int]]:
        """Return how many of each group passed, and how many were run."""
        found = {}
        for name, path in SCENARIOS.items():
            of_it = [
                passed
                for scenario, passed in self._passed.items()
                if scenario.startswith(f"{_FOLDER}{path}")
            ]
            found[name] = (sum(of_it), len(of_it))
        return found


def main() -> None:
    """The command line."""
    outcomes = Outcomes()
    paths = [f"{_FOLDER}{path}" for path in SCENARIOS.values()]
    status = pytest.main(["-q", "--controlplane", *paths], plugins=[outcomes])
    if status not in _WHOLE:
        sys.exit(status)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    RECORD.add(Run(kubernetes(), commit(), today, outcomes.groups()))
    sys.exit(status)


def kubernetes() -> str:
    """Return the version that the API server says it has."""
    return _said([str(bin_dir() / "kube-apiserver"), "--version"]).removeprefix("Kubernetes v")


def commit() -> str:
    """Return the commit, with a mark for uncommitted changes."""
    ours = [":!hack/*/record.json", f":!{PAGE.relative_to(ROOT)}"]
    changes = _said(["git", "status", "--porcelain", "--", ".", *ours])
    return _said(["git", "rev-parse", "--short", "HEAD"]) + (" and changes" if changes else "")


def _said(command: Iterable[str]) -> str:
    run = subprocess.run([*command], check=True, capture_output=True, text=True, cwd=ROOT)
    return run.stdout.strip()


if __name__ == "__main__":
    main()
