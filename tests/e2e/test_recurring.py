"""Recurring reservations: claims survive a crash, and skipped occurrences hold nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECT, SPEC, Form
from tests.e2e.test_status import status

pytestmark = pytest.mark.controlplane


@pytest.mark.parametrize("form", [SPEC, OBJECT], ids=lambda form: form.name)
def test_an_occurrence_keeps_its_claims_through_a_crash_and_ends_when_it_is_left_out(
    corner: Corner, reserver: ReserverProcess, form: Form
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    owners = [{"pod": {"name": name, "namespace": corner.name}} for name in ("first", "second")]
    spec: dict[str, Any] = {"owners": owners, "slots": 2, "node": node}
    spec["resources"] = {"cpu": "1500m"}
    start = datetime.now(UTC) - timedelta(hours=12)  # None ends or begins during the test.
    start = start.replace(minute=0, second=0, microsecond=0)
    spec["schedule"] = {"cron": f"0 {start.hour} * * *", "duration": "24h"}
    key = f"{corner.name}.daily"
    write(corner, form, key, spec)
    corner.wait_held(node, "2")
    corner.create_pod("first", {"cpu": "1500m"})
    assert corner.wait_bound("first") == node
    uid = corner.pod("first").metadata.uid
    wait_for(lambda: uid in json.dumps(told(corner, form, key)), "the claim is recorded")
    corner.delete_pod("first")
    reserver.restart()
    corner.wait_held(node, "3")  # 4 CPUs, 1.5 of them held for the second.
    corner.create_pod("small", {"cpu": "2"})
    assert corner.wait_bound("small") == node
    corner.create_pod("large", {"cpu": "2"})
    spec["schedule"]["skip"] = [start.isoformat()]
    write(corner, form, key, spec)
    assert corner.wait_bound("large") == node
    wait_for(lambda: told(corner, form, key).get("phase") == "Pending", "it waits")
    starts = [each["startsAt"] for each in told(corner, form, key)["occurrences"]]
    assert starts == [(start + timedelta(days=n)).isoformat() for n in (1, 2, 3)]


def told(corner: Corner, form: Form, key: str) -> Any:
    """Return the whole status of a reservation."""
    if form.is_object:
        return (corner.object(key) or {}).get("status", {})
    return status(corner, form, key) or {}


def write(corner: Corner, form: Form, key: str, spec: dict[str, Any]) -> None:
    """Write a reservation as a manager does."""
    if form.is_object:
        corner.write_object(key, spec)
    else:
        corner.patch_store(form.store, {key: json.dumps(spec | {"ttl": 0})})
