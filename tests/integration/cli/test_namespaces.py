"""Commands write to and read from the namespace of `-n`, within its quota."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs

from reserver.reservations.enums import StoreKind
from tests.integration.cli.runs import Run, runs_beside
from tests.integration.world import SYSTEM, World, serving

QUOTAS = "/apis/reserver.io/v1alpha1/namespaces/shop/reservationquotas"
FLAGS = ("--node", "worker-1", "--owner", "pod/web-0", "--cpu", "1")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    with capture_logs():
        async with serving(tmp_path, "worker-1", "worker-2", store=StoreKind.OBJECT) as world:
            yield world


@pytest.fixture
def run(world: World) -> Run:
    return runs_beside(world)


async def ids(run: Run) -> list[str]:
    return (await run("get", "-o", "name")).stdout.split()


async def test_a_reservation_is_written_where_its_owners_are(run: Run) -> None:
    assert (await run("create", "web", "-n", "shop", *FLAGS)).exit_code == 0
    assert (await run("create", "web", *FLAGS)).exit_code == 0
    assert await ids(run) == ["default/web", "shop/web"]
    twice = await run("create", "web", "-n", "shop", *FLAGS)
    assert (twice.exit_code, "is taken" in twice.stderr) == (1, True)


async def test_every_command_finds_it_there(run: Run) -> None:
    for namespace in ("shop", "default"):
        assert (await run("create", "web", "-n", namespace, *FLAGS)).exit_code == 0
    for command in (
        ("get", "web"),
        ("describe", "web"),
        ("wait", "web"),
        ("extend", "web", "--ttl", "2h"),
        ("update", "web", "--cpu", "500m"),
        ("edit", "web"),
        ("release", "web"),
    ):
        done = await run(*command, "-n", "shop", EDITOR="true")
        assert done.exit_code == 0, (command, done.stderr)
    assert await ids(run) == ["default/web"]
    assert (await run("create", "web", "-n", "shop", *FLAGS)).exit_code == 0
    assert (await run("release", "web")).exit_code == 0  # Of the context's namespace.
    assert await ids(run) == ["shop/web"]
    assert (await run("release", "web")).exit_code == 0  # The only one of that name.


async def test_a_quota_counts_what_the_command_line_holds(run: Run, world: World) -> None:
    body = {"metadata": {"name": "team"}, "spec": {"hard": {"held.cpu": "2"}}}
    await world.cluster.client.send("POST", QUOTAS, body)
    assert (await run("create", "a", "-n", "shop", *FLAGS)).exit_code == 0
    quotas = await run("top", "quotas", "-n", "shop", "-o", "json")
    assert json.loads(quotas.stdout)["quotas"][0]["used"]["held.cpu"] == "1"
    more = ("create", "b", "-n", "shop", *FLAGS[:-1], "2")
    over = await run(*more)
    assert over.exit_code == 5
    assert "b created: Pending, over quota" in over.stdout
    later = await run("create", "f", *more[2:], "--starts-at", "2040-01-01T00:00:00Z")
    assert later.exit_code == 5
    assert "f: holds nothing at its start, either, unless the quota admits it" in later.stderr
    refused = await run(*(more[0], "c", *more[2:]), "--no-wait")
    assert refused.exit_code == 4
    asked = await run(*(more[0], "d", *more[2:]), "--dry-run=server")
    assert (asked.exit_code, "held.cpu" in asked.stdout) == (4, True)
    ours = ("create", "e", "-n", SYSTEM, *FLAGS[:-1], "2")
    assert (await run(*ours)).exit_code == 0


async def test_files_are_applied_where_their_owners_are(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    owners = [{"pod": {"name": "web-0", "namespace": "shop"}}]
    spec = {"owners": owners, "node": "worker-1", "resources": {"cpu": "1"}}
    both = [*owners, {"pod": {"name": "web-0", "namespace": "default"}}]
    written = [{"name": "one", "spec": spec}, {"name": "two", "spec": {**spec, "owners": both}}]
    file.write_text(yaml.safe_dump_all(written))
    applied = await run("apply", "-f", str(file))
    assert applied.exit_code == 0, applied.stderr
    assert await ids(run) == [f"{SYSTEM}/two", "shop/one"]
    assert (await run("apply", "-f", str(file))).stdout == "one unchanged\ntwo unchanged\n"
    assert (await run("create", "-f", str(file), "--set")).exit_code == 2
    printed = await run("get", "one", "-n", "shop", "-o", "yaml")
    changed = printed.stdout.replace("cpu: '1'", "cpu: 500m")
    assert (await run("apply", "-f", "-", text=changed)).stdout.startswith("one configured")


async def test_an_unknown_namespace_is_refused(run: Run) -> None:
    refused = await run("create", "web", "-n", "shpo", *FLAGS)
    assert refused.exit_code == 1
    assert "there is no namespace 'shpo'" in refused.stderr
    assert await ids(run) == []


async def test_names_that_are_not_unique_are_shown_with_their_namespace(run: Run) -> None:
    for namespace in ("shop", "default"):
        await run("create", "web", "-n", namespace, *FLAGS)
    assert [line.split()[0] for line in (await run("get")).stdout.splitlines()] == [
        "NAME",
        "default/web",
        "shop/web",
    ]
    assert (await run("get", "shop/web")).exit_code == 0
