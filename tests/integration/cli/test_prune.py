"""`reserver apply --prune`: deletes selected reservations that the files no longer have."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reserver.reservations.enums import StoreKind
from tests.integration.cli.runs import Run, runs_beside
from tests.integration.world import World, serving


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    with capture_logs():
        async with serving(tmp_path, "worker-1", "worker-2", store=StoreKind.OBJECT) as world:
            yield world


@pytest.fixture
def run(world: World) -> Run:
    return runs_beside(world)


def documents(*names: str, namespace: str = "shop", team: str = "web") -> str:
    spec = {
        "owners": [{"pod": {"name": "web-0", "namespace": namespace}}],
        "node": "worker-1",
        "resources": {"cpu": "100m"},
    }
    each = [{"name": name, "labels": {"team": team}, "spec": spec} for name in names]
    return json.dumps(each)


async def ids(run: Run) -> list[str]:
    return (await run("get", "-o", "name")).stdout.split()


async def test_what_no_file_has_is_released(run: Run) -> None:
    for text in (
        documents("a", "b", "c"),
        documents("others", team="db"),
        documents("a", namespace="default"),
    ):
        assert (await run("apply", "-f", "-", text=text)).exit_code == 0
    before = await ids(run)
    flags = ("apply", "-f", "-", "--prune", "-l", "team=web")
    dry = await run(*flags, "--dry-run", text=documents("a", "d"))
    assert dry.exit_code == 0
    assert dry.stdout.splitlines()[-2:] == ["shop/b pruned (dry run)", "shop/c pruned (dry run)"]
    assert await ids(run) == before
    unasked = await run(*flags, text=documents("a"))
    assert (unasked.exit_code, "pass --yes or --dry-run" in unasked.stderr) == (2, True)
    pruned = await run(*flags, "--yes", text=documents("a", "d"))
    assert pruned.exit_code == 0, pruned.stderr
    assert pruned.stdout.splitlines()[-2:] == ["shop/b pruned", "shop/c pruned"]
    assert await ids(run) == ["default/a", "shop/a", "shop/d", "shop/others"]


async def test_a_refused_file_prunes_nothing(run: Run) -> None:
    assert (await run("apply", "-f", "-", text=documents("a", "b"))).exit_code == 0
    text = documents("c").replace("worker-1", "worker-9")
    refused = await run("apply", "-f", "-", "--prune", "-l", "team=web", "--yes", text=text)
    assert refused.exit_code == 4
    assert await ids(run) == ["shop/a", "shop/b"]


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("--prune --yes", "--prune: --selector is missing; write for example -l team=shop"),
        ("--prune -l ,, --yes", "--selector: "),
        ("-l team=web", "--selector: is for --prune; add it, or leave this out"),
        ("--yes", "--yes: is for --prune"),
    ],
)
async def test_what_goes_together_is_said(run: Run, flags: str, line: str) -> None:
    refused = await run("apply", "-f", "-", *flags.split(), text=documents("a"))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"reserver: {line}" in refused.stderr
