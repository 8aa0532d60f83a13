"""One reservation from `create` to `release`; `get`, `describe`, `extend` and `explain`."""

from __future__ import annotations

import json

import pytest

from tests.integration.cli.runs import FLAGS, Run, untimed, write
from tests.integration.world import World


async def test_what_is_created_can_be_seen_extended_and_released(run: Run, world: World) -> None:
    made = await run("create", "a", "--node", "worker-1", "--cpu", "1", "--ttl", "1h", *FLAGS)
    assert made.exit_code == 0
    assert untimed(made.stdout) == "a created: 1 CPU on worker-1 held for shop/pod/web-0, until T\n"
    assert world.running.assembly.ledger.held_on("worker-1")["cpu"] == 1000
    table = (await run("get")).stdout.splitlines()
    assert table[0].split() == ["NAME", "PHASE", "NODE", "SLOTS", "CLAIMED", "ENDS", "IN"]
    assert table[1].split()[:5] == ["a", "Active", "worker-1", "1", "0"]
    assert "for ever" in (await run("extend", "a", "--ttl", "0")).stdout
    assert "Ends:           never" in (await run("describe", "a")).stdout
    assert (await run("release", "a")).stdout == "a released\n"
    assert not world.running.assembly.ledger.held_on("worker-1")
    gone = await run("get", "a")
    assert gone.exit_code == 1
    words = "reserver: there is no reservation 'a' any more: it was removed unclaimed at "
    assert gone.output.startswith(words)
    nothing = await run("get")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert json.loads((await run("get", "-o", "json")).stdout) == {"reservations": []}


async def test_a_name_that_get_shows_is_enough(run: Run, world: World) -> None:
    spec = {"owners": [{"pod": {"name": "x", "namespace": "shop"}}], "resources": {"cpu": "1"}}
    for name, key, node in (("theirs", "seat", "worker-1"), ("others", "seat", "worker-2")):
        await write(world, name, {key: json.dumps(spec | {"node": node})})
    await write(world, "third", {"web-seat": json.dumps(spec | {"node": "worker-1"})})
    while len(json.loads((await run("get", "-o", "json")).stdout)["reservations"]) < 3:
        pass
    assert "Active" in (await run("describe", "web-seat")).stdout
    extended = await run("extend", "web-seat", "--ttl", "1d12h")
    assert untimed(extended.stdout) == (
        "web-seat extended: 1 CPU on worker-1 held for shop/pod/x, until T\n"
    )
    several = await run("get", "seat")
    assert several.exit_code == 1
    assert "2 reservations have that name; give an id: " in several.stderr
    similar = await run("release", "web-saet")
    assert similar.stderr == (
        "reserver: there is no reservation 'web-saet'; similar names: web-seat\n"
    )
    released = await run("release", "web-seat")
    assert released.stdout.endswith("/third/web-seat released\n")


async def test_what_is_written_and_cannot_be_read_is_shown_with_what_towrite(
    run: Run, world: World
) -> None:
    owners = [{"pod": {"name": "x", "namespace": "shop"}}]
    broken = {"owners": owners, "node": "worker-1", "resources": {"cpu": "two"}}
    whole = {"pod": "web-0", "namespace": "shop", "cpu": 1, "mem": 0, "expire": 4000000000}
    items = json.dumps([whole, whole | {"cpu": -1}])
    await write(world, "theirs", {"seat": json.dumps(broken), "worker-2": items})
    while len((await run("get", "-o", "name")).stdout.split()) < 3:
        pass
    rows = [line.split() for line in (await run("get")).stdout.splitlines()]
    assert ["seat", "Invalid", "-", "-", "-", "-"] in rows
    assert ["worker-2[1]", "Invalid", "-", "-", "-", "-"] in rows
    ids = (await run("get", "--phase", "invalid", "-o", "name")).stdout.split()
    assert ids == ["reserver-system/theirs/seat", "reserver-system/theirs/worker-2[1]"]
    told = await run("describe", "seat")
    assert "Phase:          Invalid" in told.stdout
    assert "Because:        resources.cpu: 'two' is not a quantity; write a Kub" in told.stdout
    refused = await run("extend", "seat", "--ttl", "1h")
    assert refused.exit_code == 1
    assert "cannot be read: resources.cpu: 'two' is not a quantity" in refused.stderr
    item = await run("release", "worker-2[1]")
    assert "cannot be read: [1].cpu: -1 is negative" in item.stderr
    assert (await run("get", "worker-2[shop/web-0]")).exit_code == 0
    assert (await run("release", "seat")).exit_code == 0
    ids = (await run("get", "--phase", "Invalid", "-o", "name")).stdout.split()
    assert ids == ["reserver-system/theirs/worker-2[1]"]


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("", "--ttl, --expires-at: give one of them"),
        ("--ttl 1h --expires-at 2030-01-31T10:00:00Z", "--ttl, --expires-at: give one of them"),
        ("--ttl 1w", "--ttl: '1w' is not a duration"),
        ("--expires-at now", "--expires-at: 'now' is not a time"),
        (
            "--expires-at 0001-01-01T00:00:00+10:00",
            "--expires-at: '0001-01-01T00:00:00+10:00' is out",
        ),
    ],
)
async def test_a_time_that_is_wrong_is_named(run: Run, flags: str, line: str) -> None:
    result = await run("extend", "a", *flags.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"reserver: {line}" in result.stderr


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("", ["by-labels", "by-name", "by-set"]),
        ("--owner pod/web-0 -n shop", ["by-name"]),
        ("--owner pod/web-0", []),
        ("--owner replicaset/web-5d8f -n shop", ["by-set"]),
        ("--owner app=web -n shop", ["by-labels"]),
        ("--owner app=api -n shop", []),
        ("-n shop", ["by-labels", "by-name", "by-set"]),
        ("-n other", []),
        ("--node worker-2", ["by-set"]),
        ("--phase claimed", []),
        ("--phase active --phase pending", ["by-labels", "by-name", "by-set"]),
    ],
)
async def test_options_say_which_reservations_are_meant(
    run: Run, options: str, names: list[str]
) -> None:
    for name, node, owner in (
        ("by-name", "worker-1", "pod/web-0"),
        ("by-set", "worker-2", "replicaset/web-5d8f"),
        ("by-labels", "worker-1", "app=web"),
    ):
        await run("create", name, "--node", node, "--owner", owner, "-n", "shop", "--cpu", "1")
    found = json.loads((await run("get", *options.split(), "-o", "json")).stdout)
    assert [each["name"] for each in found["reservations"]] == names


async def test_a_pod_is_explained(run: Run, world: World) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "9"}}}
    body = {"metadata": {"name": "web-0"}, "spec": {"containers": [container]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", body)
    told = await run("explain", "pod", "web-0", "-n", "shop")
    while told.exit_code:  # It has not been seen yet.
        told = await run("explain", "pod", "shop/web-0")
    assert "0/2 nodes are available: 2 Insufficient cpu." in told.stdout
    await run("create", "a", "--node", "worker-1", "--cpu", "1", "--owner", "pod/x", "-n", "shop")
    whole = json.loads((await run("explain", "pod", "shop/web-0", "-o", "json")).stdout)
    assert (whole["nodes"], whole["pod"]) == (2, "shop/web-0")
    (node,) = whole["nodesWithHolds"]
    assert (node["fits"], node["resources"]["cpu"]["free"]) == (False, 3000)
    assert node["resources"]["cpu"]["requestedByPod"] == 9000
    ghost = await run("explain", "pod", "shop/ghost")
    assert (ghost.exit_code, ghost.stderr) == (1, "reserver: there is no pod shop/ghost\n")


async def test_an_owner_without_a_namespace_is_shown_wherever_one_looks(
    run: Run, world: World
) -> None:
    """Only pods of Reserver's own namespace may claim it; `explain` shows so to other pods."""
    spec = {"owners": [{"pod": {"name": "web-0"}}], "node": "worker-1", "resources": {"cpu": "4"}}
    await write(world, "seats", {"lost": json.dumps(spec)})
    told = await run("get", "lost")
    while told.exit_code:  # It has not been seen yet.
        told = await run("get", "lost")
    assert "Active, no namespace" in told.stdout
    whole = json.loads((await run("get", "lost", "-o", "json")).stdout)
    assert whole["status"]["assumesNamespace"]
    described = (await run("describe", "lost")).stdout
    assert "only pods of reserver-system may claim it; write the namespace of its" in described
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    body = {"metadata": {"name": "web-0"}, "spec": {"containers": [container]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", body)
    explained = await run("explain", "pod", "shop/web-0")
    while explained.exit_code:
        explained = await run("explain", "pod", "shop/web-0")
    hint = "reserver-system/seats/lost: only such pods of reserver-system may claim it."
    assert f"{hint}\nIf shop/web-0 should, write its namespace" in explained.stdout
    await run("create", "found", "--node", "worker-2", "--owner", "pod/web-0", "--cpu", "1")
    assert "Active  " in (await run("get", "found")).stdout
