"""Maintenance windows are read as far as they can be, and a cluster may have none."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from reserver.cli.podmoves import KubeClient
from reserver.cli.ui import listed_windows
from reserver.errors import ApiError

NOW = 1_893_000_000.0
SPEC = {"start": "2030-01-01T22:00:00Z", "end": "2030-01-02T00:00:00Z", "nodes": ["a"]}


class Api:
    def __init__(self, answer: list[Any] | ApiError) -> None:
        self.answer = answer

    async def get(self, path: str) -> bytes:
        assert path == "/apis/reserver.io/v1alpha1/maintenancewindows"
        if isinstance(self.answer, ApiError):
            raise self.answer
        return json.dumps({"items": self.answer}).encode()


async def read(answer: list[Any] | ApiError) -> list[tuple[str, str]]:
    return [
        (one.name, far) for one, far in await listed_windows(cast("KubeClient", Api(answer)), NOW)
    ]


async def test_what_cannot_be_read_hides_nothing_else() -> None:
    good = {"metadata": {"name": "disks"}, "spec": SPEC, "status": {"phase": "Planned"}}
    moving = {**good, "status": {"phase": "Draining", "message": "1 Draining"}}
    broken = {"metadata": {"name": "b"}, "spec": SPEC | {"end": "never"}}
    assert await read([broken, 7, good, moving]) == [("disks", ""), ("disks", "1 Draining")]


async def test_a_window_that_comes_again_is_shown_as_its_next_occurrence() -> None:
    schedule = {"cron": "0 22 * * *", "duration": "2h", "timeZone": "Europe/Berlin"}
    nightly = {"metadata": {"name": "n"}, "spec": {"schedule": schedule, "nodes": ["a"]}}
    ((found, _),) = await listed_windows(cast("KubeClient", Api([nightly])), NOW)
    start, end = found.period
    assert NOW < start < NOW + 86_400
    assert end == start + 7_200


async def test_a_cluster_may_have_no_such_crd() -> None:
    assert await read(ApiError(404, "NotFound", "no such resource")) == []


async def test_rights_that_are_missing_are_reported() -> None:
    with pytest.raises(ApiError, match="forbidden"):
        await read(ApiError(403, "Forbidden", "it is forbidden"))
