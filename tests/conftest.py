"""The environments of tests: Python alone, the built control plane, or an existing cluster."""

from __future__ import annotations

import gc
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.programs import heed_signals
from reserver.base import quarantine

AUDIT_POLICY = Path(__file__).parent / "e2e/audit-policy.yaml"


def pytest_configure() -> None:
    """Have signals end the processes that the tests start, by any way of starting pytest."""
    heed_signals()
    gc.disable()  # While tests are collected, of which nothing is garbage: a sixth of that time.


def pytest_collection_finish() -> None:
    """Collect no garbage among what stays to the end, a quarter of the unit tests' time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def faults() -> Iterator[Counter[quarantine.Component]]:
    """The quarantined faults: a test that expects faults clears them; any other test fails."""
    quarantine.counts.clear()
    yield quarantine.counts
    assert not quarantine.counts, "a fault was passed over; its traceback stands in the log"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--controlplane", action="store_true", help="start the control plane that hack/ builds"
    )
    parser.addoption("--kubeconfig", type=Path, help="test on this cluster")
    parser.addoption(
        "--scheduler-name",
        default="reserver-scheduler",
        help="with --kubeconfig: the scheduler there that has reserver as its extender",
    )
    parser.addoption(
        "--audit-logs", type=Path, help="folder that gathers what control planes write of requests"
    )
    parser.addoption("--runs", type=int, default=1, help="how often the main scenario is run")


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of our own, whose parts may be started, stopped and restarted."""
    if not request.config.getoption("--controlplane"):
        raise pytest.UsageError("this test needs --controlplane")
    logs: Path | None = request.config.getoption("--audit-logs")
    with ControlPlane(audit_policy=AUDIT_POLICY) as plane:
        yield plane
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
            shutil.copy(plane.audit_log, logs / plane.folder.name)


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """An administrator's kubeconfig for the cluster under test."""
    given: Path | None = request.config.getoption("--kubeconfig")
    if given is not None:
        return given
    plane: ControlPlane = request.getfixturevalue("control_plane")
    return plane.kubeconfig
