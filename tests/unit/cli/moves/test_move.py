"""`move`: its options, its seat and its result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from typer.testing import CliRunner

from reserver.cli import podmoves
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.main import app
from reserver.cli.output import Output
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.phases import MoveMode
from tests.unit.cli.moves.api import META, Api, drain, specs
from tests.unit.moves.test_drain import pod


@pytest.mark.parametrize("other", ["--evict-only", "--by-patch"])
def test_a_surge_takes_a_seat(other: str) -> None:
    done = CliRunner().invoke(app, ["move", "shop/web-0", "--surge", other])
    assert done.exit_code == ExitStatus.USAGE
    assert f"--surge: starts a copy on a held seat, and {other} holds none" in done.stderr


@pytest.mark.parametrize(("phase", "has_note"), [("Evicting", False), ("Succeeded", True)])
def test_once_a_move_has_ended_it_is_said_why_its_pod_did_not_surge(
    phase: str, *, has_note: bool
) -> None:
    move: dict[str, Any] = {"metadata": META | {"namespace": "shop"}}
    move |= {"spec": {"pod": {"name": "db-0"}}}
    move["status"] = {"phase": phase, "message": "said", "fallback": "only ReplicaSets' pods do"}
    note = "; it did not surge: only ReplicaSets' pods do" if has_note else ""
    assert podmoves.summary(move) == f"shop/db-0 {phase}: said{note}"


def test_a_move_says_where_to_and_how(capsys: pytest.CaptureFixture[str]) -> None:
    api = Api()
    terms = SharedFields(timeout="30m", grace_period_s=5)
    body = manifest(PodName("shop", "web-0"), terms, to="worker-2", mode=MoveMode.EVICT_ONLY)
    made = asyncio.run(podmoves.create(api, body))
    asyncio.run(podmoves.follow(api, [made], Output.TABLE, wait=False))
    assert specs(api) == [
        {
            "pod": {"name": "web-0"},
            "to": {"node": "worker-2"},
            "mode": "EvictOnly",
            "timeout": "30m",
            "deleteOptions": {"gracePeriodSeconds": 5},
        }
    ]
    assert capsys.readouterr().out == "shop/web-0 written as web-0-0\n"


def test_without_the_crd_it_is_told_what_to_apply() -> None:
    class Without(Api):
        async def create(self, path: str, body: object) -> bytes:
            raise ApiError(404, "NotFound", f"no {path} for {body}")

    with pytest.raises(Failed, match="apply scheduler-config/components/moves"):
        drain(Without(pod("a")))
