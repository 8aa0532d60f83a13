"""The findings of `doctor`, and their remedies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reserver.cli import doctor

NOW = datetime(2030, 1, 31, 10, tzinfo=UTC)
DUMP = {
    "writtenAt": "2030-01-31T10:00:00Z",
    "versions": {"kube-reserver": "1.2.0", "python": "3.11"},
    "obstacles": [],
    "nodes": 3,
    "pods": 7,
    "reservations": 2,
}


def found(now: datetime = NOW, took_s: float = 0.1, **changes: Any) -> dict[str, doctor.Finding]:
    findings = doctor.of_dump({**DUMP, **changes}, "1.2.0", now, took_s)
    return {each.check: each for each in findings}


def test_where_all_is_well_nothing_is_to_be_done() -> None:
    findings = found()
    assert list(findings) == ["version", "ready", "clock"]
    assert all(each.is_ok and not each.remedy for each in findings.values())
    assert findings["ready"].said == "it sees 3 nodes, 7 pods, 2 reservations"
    assert found(nodes=1, reservations=1)["ready"].said == "it sees 1 node, 7 pods, 1 reservation"


def test_another_version_and_what_keeps_it_from_being_ready_are_named() -> None:
    findings = found(versions={}, obstacles=["pods are not synced", "no lease"])
    assert not findings["version"].is_ok
    assert findings["version"].said == "1.2.0 here, unknown in the cluster"
    assert findings["ready"].said == "not ready: pods are not synced; no lease"
    assert str(findings["ready"]).endswith("; look at the log of its pod")


@pytest.mark.parametrize(
    ("ahead_s", "took_s", "said"),
    [
        (2, 0.0, ""),
        (-2, 0.0, ""),
        (9, 8.0, ""),
        (9, 1.0, "9s ahead"),
        (-3600, 8.0, "3600s behind"),
    ],
)
def test_clocks_that_are_apart_are_told(ahead_s: int, took_s: float, said: str) -> None:
    clock = found(NOW + timedelta(seconds=ahead_s), took_s)["clock"]
    assert clock.is_ok is not bool(said)
    assert said in clock.said


def test_what_is_not_installed_is_named_with_its_command() -> None:
    findings = {each.check: each for each in doctor.of_resources({"reservations"})}
    assert findings["reservations.reserver.io"].is_ok
    assert str(findings["podmoves.reserver.io"]) == (
        "not installed; run `kubectl apply -k scheduler-config/components/moves`"
    )


@pytest.mark.parametrize(
    ("names", "wanted", "is_ok"),
    [({"reserver"}, True, True), ({"kyverno"}, False, True), ({"kyverno"}, True, False)],
)
def test_the_webhook_is_missed_where_something_needs_it(
    names: set[str],
    wanted: bool,  # noqa: FBT001 - a parameter of the test
    is_ok: bool,  # noqa: FBT001 - as above
) -> None:
    assert doctor.of_webhooks(names, wanted=wanted).is_ok is is_ok


def test_missing_rights_are_named_with_the_role_that_grants_them() -> None:
    assert doctor.of_rights({"get pods": True}, "r").said == "get pods in r"
    missing = doctor.of_rights({"get pods": True, "list pods": False}, "r")
    assert str(missing) == (
        "no right to list pods in r; ask for a RoleBinding to the Role reserver-cli in r"
    )
