"""Reserver's rights: the needed rights, and no others.

The control planes of the tests write down what each service account requests and which rule allows
it. Which test makes use of a right does not matter, so all of them have run before.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rights.audit import (
    AUTOSCALERS,
    BUFFERS,
    CORE,
    HOOKS,
    LENDER,
    LENDING,
    MAINTENANCE,
    MOVER,
    MOVES,
    PROVISIONING,
    RESERVER,
    SURGE,
    WEBHOOKS,
    granted,
    requested,
)

COMPONENTS = {
    RESERVER: (),
    MOVER: (MOVES, SURGE, AUTOSCALERS, BUFFERS, MAINTENANCE, PROVISIONING),
    HOOKS: (WEBHOOKS,),
    LENDER: (LENDING,),
}
"""By service account: the manifests that grant it rights in addition to the core."""


@pytest.fixture(scope="session")
def audit_logs(request: pytest.FixtureRequest) -> list[Path]:
    folder: Path | None = request.config.getoption("--audit-logs")
    logs = sorted(folder.iterdir()) if folder is not None and folder.is_dir() else []
    if not logs:
        raise pytest.UsageError("these tests need the --audit-logs that those of tests/e2e left")
    return logs


@pytest.mark.parametrize("user", COMPONENTS)
def test_reserver_asks_for_what_the_manifests_grant(user: str, audit_logs: list[Path]) -> None:
    rights = granted(CORE).union(*map(granted, COMPONENTS[user]))
    # A refusal may be of these, too: a test takes rights away, an API server starts without. And
    # where `base` is applied, kube-scheduler's role grants its service account some of the same.
    anyhow = {right._replace(role="") for right in rights}
    beyond = requested(audit_logs, user) - rights
    assert {right for right in beyond if right._replace(role="") not in anyhow} == set()


@pytest.mark.parametrize("user", COMPONENTS)
def test_what_the_manifests_grant_is_used(user: str, audit_logs: list[Path]) -> None:
    rights = set().union(*map(granted, COMPONENTS[user])) or granted(CORE)
    # All accounts have those of the core, and share its Lease: the first of them creates it.
    users = (user,) if COMPONENTS[user] else tuple(COMPONENTS)
    used = set().union(*(requested(audit_logs, each) for each in users))
    # Where two roles grant the same right, the API server names either; a refusal has none.
    anyhow = {right._replace(role="") for right in used if right.role}
    assert {right for right in rights if right._replace(role="") not in anyhow} == set()
