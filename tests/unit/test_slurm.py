"""Each row of the page about Slurm is accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from reserver.cli.main import app
from reserver.settings import configuration

ROOT = Path(__file__).parents[2]
ROWS = {
    re.findall(r"`(\w+)`", row)[0]: here
    for row, here in re.findall(
        r"^\| (`.*?) \| (.*) \|$", (ROOT / "docs/slurm.md").read_text(), re.MULTILINE
    )
}
"""The text to write, by the first field or flag of a row."""

POOL = {"pool": "spot"}
PLAIN: dict[str, Any] = {"owners": [{"pod": {"name": "web-0"}}], "resources": {"cpu": "2"}}
WHOLE = {
    "owners": [{"selector": {"matchLabels": {"app": "train"}}}],
    "nodes": {"count": 2, "selector": POOL},
}
NIGHTS = {"cron": "0 22 * * MON-FRI", "duration": "8h", "timeZone": "Europe/Berlin"}
NOBODY = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blog"]}]}
NAMED = [{"controller": {"kind": "Job", "name": "train"}}, {"selector": NOBODY}]
SPECS: Mapping[str, list[dict[str, Any]]] = {
    "ReservationName": [
        PLAIN | {"startsAt": "2030-01-31T10:00:00Z", "expiresAt": "2030-01-31T12:00:00Z"},
        PLAIN | {"ttl": "2h"},
    ],
    "Users": [PLAIN | {"owners": PLAIN["owners"] + NAMED}],
    "Nodes": [
        PLAIN | {"node": "worker-1"},
        WHOLE | {"nodes": {"count": 1, "selector": {"kubernetes.io/hostname": "worker-1"}}},
    ],
    "NodeCnt": [WHOLE, PLAIN | {"slots": 3, "placement": {"nodeSelector": POOL}}],
    "PART_NODES": [WHOLE],
    "CoreCnt": [PLAIN | {"resources": {"cpu": "2", "nvidia.com/gpu": "1"}}],
    "HOURLY": [PLAIN | {"schedule": NIGHTS | {"skip": ["2030-01-31T22:00:00+01:00"]}}],
    "IGNORE_JOBS": [PLAIN | {"node": "worker-1"}],
    "FLEX": [PLAIN | {"policy": "Prefer"}],
    "MAGNETIC": [PLAIN],
    "OVERLAP": [
        PLAIN | {"lend": {"belowPriority": 100}},
        PLAIN | {"preemptible": True, "priority": 100},
    ],
    "PURGE_COMP": [PLAIN | {"releaseIfIdle": "5m"}],
    "REPLACE": [PLAIN | {"slots": 2, "refill": True}],
}
ELSEWHERE = {"MAINT", "REPLACE_DOWN", "USER_DELETE"}
"""Rows that are no fields of a Reservation."""

STARTS = {
    "HOURLY": "0 * * * *",
    "DAILY": "22:00 daily",
    "WEEKLY": "22:00 mon",
    "WEEKDAY": "22:00 weekdays",
    "WEEKEND": "22:00 weekends",
}


def valid(*documents: dict[str, Any]) -> str:
    """Return documents as YAML, which `reserver validate` accepts."""
    text = yaml.safe_dump_all(documents)
    done = CliRunner().invoke(app, ["validate", "-f", "-"], input=text)
    assert done.exit_code == 0, done.output
    return text


@pytest.mark.parametrize("row", sorted(ROWS.keys() - ELSEWHERE))
def test_each_row_says_what_to_write_and_that_is_accepted_or_why_there_is_none(row: str) -> None:
    here = ROWS[row]
    if row not in SPECS:
        assert here.startswith("none: ")
        return
    text = valid(
        *(
            {
                "apiVersion": "reserver.io/v1alpha1",
                "kind": "Reservation",
                "metadata": {"name": f"r-{number}", "namespace": "shop"},
                "spec": spec,
            }
            for number, spec in enumerate(SPECS[row])
        )
    )
    named = set(re.findall(r"`([^`]+)`", here)) - {"Backed", "reserver skip"}
    for path in named:
        words = re.findall(r"[\w./]+", path)
        assert all(part in text for word in words for part in re.split(r"\.(?!io)", word)), path


@pytest.mark.parametrize("flag", STARTS)
def test_how_often_it_comes_again_is_said_in_a_word(flag: str) -> None:
    words = "create night -n shop --owner pod/a --cpu 1 --for 30m --dry-run -o json"
    done = CliRunner().invoke(app, [*words.split(), "--every", STARTS[flag]])
    assert done.exit_code == 0, done.output
    valid(json.loads(done.stdout))


def test_what_is_no_field_of_a_reservation_is_accepted_where_it_belongs() -> None:
    window = {"apiVersion": "reserver.io/v1alpha1", "kind": "MaintenanceWindow"}
    schedule = {"nodeSelector": {"matchLabels": POOL}, "schedule": NIGHTS}
    valid(window | {"metadata": {"name": "kernel"}, "spec": schedule})
    assert "`maintenance.replaceNotReadyAfter`" in ROWS["REPLACE_DOWN"]
    settings = window | {"kind": "ReserverConfiguration"}
    later = {"maintenance": {"replaceNotReadyAfter": "10m"}}
    assert configuration.parse(json.dumps(settings | later).encode())
    roles = (ROOT / "scheduler-config/core/rbac-users.yaml").read_text()
    (edit,) = [r for r in yaml.safe_load_all(roles) if r["metadata"]["name"] == "reserver-edit"]
    rights = {(res, verb) for r in edit["rules"] for res in r["resources"] for verb in r["verbs"]}
    assert ("reservations", "delete") in rights
