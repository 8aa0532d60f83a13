"""`create --wait` and `wait`: until a reservation is in force, claimed or over; the exit status."""

from __future__ import annotations

import asyncio
import json

from typer.testing import Result

from reserver.client import Client
from tests.integration.cli.runs import Run
from tests.integration.world import World

FLAGS = ("--owner", "pod/web-0", "-n", "shop", "--node", "worker-1")


async def test_the_status_says_that_nothing_is_held_yet(run: Run) -> None:
    assert (await run("create", "a", "--cpu", "3", *FLAGS)).exit_code == 0
    second = await run("create", "b", "--cpu", "3", *FLAGS)
    assert second.exit_code == 5
    assert second.stdout.startswith("b created: Waiting, no room on worker-1")
    assert "b: is first in line for worker-1" in second.stderr
    assert "b: is not in force yet; wait on with `reserver wait b`" in second.stderr
    shown = await run("create", "c", "--cpu", "3", *FLAGS, "-o", "json", "--wait=0")
    assert "c: is second in line for worker-1, after b" in shown.stderr
    assert "is second in line for worker-1, after b" in (await run("describe", "c")).stdout
    assert (shown.exit_code, json.loads(shown.stdout)["status"]["backed"]) == (5, False)
    big = ("big", "--owner", "pod/web-0", "-n", "shop", "--cpu", "3", "--slots", "2")
    placeless = await run("create", *big)
    waited = await run("wait", "big", "--timeout", "1s")
    assert (placeless.exit_code, waited.exit_code) == (5, 5)
    assert "nodes are available" in waited.stderr
    assert ".;" not in placeless.stderr + waited.stderr
    await run("release", "big")
    later = ("--starts-at", "2040-01-01T00:00:00Z", "--ttl", "0")
    assert (await run("create", "d", "--cpu", "3", *FLAGS, *later)).exit_code == 0
    assert (await run("create", "e", "--cpu", "9", *FLAGS, "--force")).exit_code == 0


async def waited(run: Run, world: World, *arguments: str) -> Result:
    """Run a command; release `a` once the command has had to wait for that."""
    waiting = asyncio.ensure_future(run(*arguments))
    feed = world.running.assembly.ledger
    async with Client(world.running.grpc_address or "") as client:
        if arguments[0] == "create":
            async for change in client.watch():
                if change.reservation.name == arguments[1]:
                    break
        assert feed.held_on("worker-1")
        await client.release("a")
    return await waiting


async def test_it_returns_once_the_hold_is_in_force(run: Run, world: World) -> None:
    await run("create", "a", "--cpu", "3", *FLAGS)
    told = await waited(run, world, "create", "b", "--cpu", "3", *FLAGS, "--wait", "-o", "json")
    assert (told.exit_code, json.loads(told.stdout)["status"]["backed"]) == (0, True)


async def test_wait_says_what_became_of_it(run: Run, world: World) -> None:
    await run("create", "a", "--cpu", "1", *FLAGS)
    assert (await run("wait", "a")).stdout.startswith("a is in force: 1 CPU on worker-1 held")
    not_yet = await run("wait", "a", "--for=claimed", "--timeout=0")
    assert not_yet.exit_code == 5
    assert not_yet.stderr == "reserver: a: is not claimed yet; wait on with `reserver wait a`\n"
    ended = await waited(run, world, "wait", "a", "--for=ended")
    assert ended.exit_code in {0, 1}  # It may have been gone before the first look.
    gone = await run("wait", "a", "--for=claimed")
    assert (gone.exit_code, "there is no reservation 'a' any more" in gone.stderr) == (1, True)
    wrong = await run("wait", "a", "--timeout", "soon")
    assert (wrong.exit_code, wrong.stderr[:22]) == (2, "reserver: --timeout: '")


async def test_a_copy_has_another_name_and_what_flags_change(run: Run) -> None:
    await run("create", "a", "--cpu", "1", *FLAGS, "--ttl", "5d", "--slots", "2", "--reusable")
    flags = ("--owner", "pod/web-1", "-n", "shop", "--memory", "1Gi")
    copy = json.loads((await run("create", "b", "--from", "a", *flags, "-o", "json")).stdout)
    spec = copy["spec"]
    assert (spec["node"], spec["slots"], spec["reusable"]) == ("worker-1", 2, True)
    assert spec["resources"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["owners"] == [{"pod": {"name": "web-1", "namespace": "shop"}}]
    first = json.loads((await run("get", "a", "-o", "json")).stdout)["spec"]
    assert spec["expiresAt"] < first["expiresAt"]
    wrong = await run("create", "c", "--from", "ghost")
    assert (wrong.exit_code, "there is no reservation 'ghost'" in wrong.stderr) == (1, True)
    both = await run("create", "c", "--from", "a", "--dry-run")
    assert both.stderr == "reserver: --from: excludes --dry-run=client; leave one of them out\n"


async def test_an_owner_that_runs_already_is_named(run: Run, world: World) -> None:
    container = {"name": "main", "image": "x"}
    spec = {"nodeName": "worker-2", "containers": [container]}
    body = {"metadata": {"name": "web-0", "namespace": "shop"}, "spec": spec}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", body)
    while "it is on worker-2" not in (await run("explain", "pod", "shop/web-0")).stdout:
        pass
    told = await run("create", "a", "--cpu", "1", *FLAGS)
    assert told.exit_code == 0
    assert told.stderr == (
        "reserver: a: owner shop/web-0: it is on worker-2 already; the next pod of that name may "
        "claim the reservation\n"
    )
