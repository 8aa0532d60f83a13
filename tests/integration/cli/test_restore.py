"""`reserver restore`: a released reservation holds again, in either store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reserver.reservations.enums import StoreKind
from tests.integration.cli.runs import Run, runs_beside
from tests.integration.world import World, serving

FLAGS = ("--node", "worker-1", "--owner", "pod/web-0", "-n", "shop", "--cpu", "1")


@pytest.fixture(params=[StoreKind.OBJECT, StoreKind.CONFIGMAP])
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    with capture_logs():
        async with serving(tmp_path, "worker-1", "worker-2", store=request.param) as world:
            yield world


@pytest.fixture
def run(world: World) -> Run:
    return runs_beside(world)


async def test_what_was_released_holds_again(run: Run, world: World) -> None:
    more = ("--slots", "2", "--policy", "Require", "--description", "for the move")
    assert (await run("create", "a", *FLAGS, *more)).exit_code == 0
    before = json.loads((await run("get", "a", "-o", "json")).stdout)
    assert (await run("release", "a")).exit_code == 0
    assert not world.running.assembly.ledger.held_on("worker-1")
    again = await run("restore", "a", "-n", "shop", "-o", "json")
    assert again.exit_code == 0, again.stderr
    after = json.loads(again.stdout)
    assert (after["id"], after["spec"]) == (before["id"], before["spec"])
    assert world.running.assembly.ledger.held_on("worker-1")["cpu"] == 2000
    twice = await run("restore", "a")
    assert (twice.exit_code, "is taken" in twice.stderr) == (1, True)


async def test_it_lives_as_long_as_is_said(run: Run) -> None:
    assert (await run("create", "a", *FLAGS, "--ttl", "1h")).exit_code == 0
    await run("release", "a")
    assert (await run("restore", "a", "--ttl", "soon")).exit_code == 2
    restored = await run("restore", "a", "--ttl", "2d")
    assert restored.exit_code == 0
    assert "2d" in (await run("get", "a")).stdout


async def test_what_is_not_remembered_is_said(run: Run) -> None:
    await run("create", "a", *FLAGS)
    await run("release", "a")
    some = await run("restore", "ghost", "a")
    assert some.exit_code == 1
    assert some.stdout.startswith("a created: 1 CPU on worker-1 held for shop/pod/web-0")
    assert "ghost: is not in the history: see `reserver history`" in some.stderr
    large = [flag for n in range(40) for flag in ("--owner", f"pod/{n:063d}")]
    assert (await run("create", "large", *FLAGS, *large)).exit_code == 0
    await run("release", "large")
    lost = await run("restore", "large")
    assert lost.exit_code == 1
    assert "its spec is not there any more, as it was too large to keep" in lost.stderr
