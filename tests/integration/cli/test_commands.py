"""The command line on the embedded cluster: what it prints, refuses and ends with."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys

import pytest

from reserver.cli.terminal import progress
from tests.integration.cli.runs import Run, untimed, write
from tests.integration.world import World
from tests.terminal import terminal

FLAGS = ("--owner", "pod/web-0", "-n", "shop")


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


async def test_what_can_never_fit_is_created_by_force_only(run: Run, world: World) -> None:
    huge = ("create", "huge", "--node", "worker-1", "--cpu", "64", *FLAGS)
    refused = await run(*huge)
    assert refused.exit_code == 4
    assert refused.stderr == (
        "reserver: huge: worker-1 offers too little cpu (4 of 64); it would never fit; ask for "
        "less or for another node, or pass --force\n"
    )
    assert not world.running.assembly.ledger.held_on("worker-1")
    elsewhere = await run("create", "lost", "--node", "worker-99", "--cpu", "1", *FLAGS)
    problem = "node 'worker-99' does not exist; it would never fit; did you mean --node worker-"
    assert problem in elsewhere.stderr
    assert (await run(*huge, "--force")).exit_code == 0
    assert world.running.assembly.ledger.held_on("worker-1")["cpu"] == 64_000


async def test_every_flag_reaches_the_spec(run: Run) -> None:
    flags = (
        "--node=worker-1 --owner=replicaset/web-5d8f --owner=app=web,tier=front --owner=pod/x "
        "--owner=Workflow/w --namespace=shop --cpu=500m --memory=1Gi --resource=pods=2 --slots=3 "
        "--starts-at=2030-01-31T09:00:00Z --expires-at=2030-01-31T10:00:00Z --policy=require "
        "--reusable --preemptible --priority=-7"
    )
    made = await run("create", "a", *flags.split(), "-o", "json")
    assert made.exit_code == 0, made.stderr
    assert json.loads(made.stdout)["spec"] == {
        "owners": [
            {"controller": {"kind": "ReplicaSet", "name": "web-5d8f", "namespace": "shop"}},
            {"selector": {"matchLabels": {"app": "web", "tier": "front"}, "namespace": "shop"}},
            {"pod": {"name": "x", "namespace": "shop"}},
            {"controller": {"kind": "Workflow", "name": "w", "namespace": "shop"}},
        ],
        "node": "worker-1",
        "resources": {"cpu": "500m", "memory": "1Gi", "pods": "2"},
        "slots": 3,
        "startsAt": "2030-01-31T09:00:00Z",
        "expiresAt": "2030-01-31T10:00:00Z",
        "policy": "Require",
        "reusable": True,
        "preemptible": True,
        "priority": -7,
    }


async def test_with_no_wait_what_cannot_hold_at_once_is_not_created(run: Run) -> None:
    big = ("--node", "worker-1", "--cpu", "64", *FLAGS)
    refused = await run("create", "big", *big, "--no-wait")
    assert (refused.exit_code, refused.stdout) == (4, "")
    assert refused.stderr == "reserver: big: spec: worker-1 offers too little cpu (4 of 64)\n"
    assert (await run("get", "big")).exit_code == 1
    assert (await run("create", "big", *big, "--force")).exit_code == 0
    small = await run("create", "a", "--node", "worker-2", "--cpu", "1", *FLAGS, "--no-wait")
    assert (small.exit_code, untimed(small.stdout)) == (
        0,
        "a created: 1 CPU on worker-2 held for shop/pod/web-0, until T\n",
    )
    text = "---\n" + "\n---\n".join(
        document(name, "worker-2", cpu) for name, cpu in (("b", "64"), ("c", "1"))
    )
    several = await run("create", "-f", "-", "-n", "shop", "--no-wait", text=text)
    assert (several.exit_code, untimed(several.stdout)) == (
        4,
        "c created: 1 CPU on worker-2 held for shop/pod/web-0, until T\n",
    )


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("", "NAME: is missing; write for example `reserver create web --owner pod/web-0 --cpu 2`"),
        ("a --cpu 1 --node worker-1", "--owner: is missing"),
        ("a --owner pod/x --node worker-1 --cpu lots", "--cpu: 'lots' is not a quantity"),
        ("a --owner pod/x --node worker-1 --memory -1", "--memory: -1 is negative"),
        (
            "a --owner pod/x --node worker-1",
            "--cpu, --memory, --resource: the reservation holds nothing",
        ),
        ("a --owner pod/x --node worker-1 --resource gpu", "--resource: 'gpu' is not of the form"),
        ("a --owner pod/x --node worker-1 --resource gpu=1", "--resource: 'gpu' is not a resource"),
        ("a --owner pod/x --node W --cpu 1", "--node: 'W' is not a node's name"),
        (
            "a --owner pod/x --node w --cpu 1 --strategy pack",
            "--strategy: excludes --node; give one of them",
        ),
        (
            "a --owner pod/x --node w --cpu 1 --node-selector a=b",
            "--node-selector: excludes --node; give one of them",
        ),
        (
            "a --owner pod/x --node w --cpu 1 --ttl 1h --expires-at 2030-01-31T10:00:00Z",
            "--expires-at: excludes --ttl; give one of them",
        ),
        ("a --owner pod/x --cpu 1 --node-selector x", "--node-selector: 'x' is not of the form"),
        ("a --owner pod/x --cpu 1 --node-selector /=b", "--node-selector: "),
        ("a --owner web-0 --node w --cpu 1", "--owner: 'web-0' is not an owner"),
        ("a --owner pod/X_ --node w --cpu 1", "--owner: 'X_' is not a pod's name"),
        ("a --owner app= --node w --cpu 1", "--owner: 'app=' is not of the form"),
        ("a --owner pod/x --node w --cpu 1 --ttl 1w", "--ttl: '1w' is not a duration"),
        ("a --owner pod/x --node w --cpu 1 --expires-at now", "--expires-at: 'now' is not a time"),
        (
            "a --owner pod/x --node w --cpu 1 --expires-at 9999-12-31T23:00:00-10:00",
            "--expires-at: '9999-12-31T23:00:00-10:00' is out of range",
        ),
        ("a --owner pod/x --node w --cpu 1 --slots 0", "--slots: 0 is out of range"),
        ("a --owner pod/x --node w --cpu 1 --priority 1", "--priority: has no effect without"),
        ("A_ --owner pod/x --node w --cpu 1", "NAME: 'A_' is not a reservation's name"),
        ("a -f x.yaml --cpu 1", "--filename: excludes flags that describe a reservation"),
        ("-f /no/such/file", "--filename: /no/such/file cannot be read: No such file"),
    ],
)
async def test_a_flag_that_is_wrong_is_named(run: Run, flags: str, line: str) -> None:
    result = await run("create", *flags.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"reserver: {line}" in result.stderr


def document(name: str, node: str, cpu: str) -> str:
    owners = [{"pod": {"name": "web-0"}}]
    spec = {"owners": owners, "node": node, "resources": {"cpu": cpu}}
    return json.dumps({"name": name, "spec": spec})


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


async def test_of_several_one_that_is_refused_costs_no_other(run: Run) -> None:
    await run("create", "a", "--node", "worker-1", "--cpu", "1", *FLAGS)
    text = f"[{document('a', 'worker-1', '2')}, {document('b', 'worker-2', '1')}]"
    result = await run("create", "-f", "-", "-n", "shop", text=text)
    assert result.exit_code == 1
    assert (
        untimed(result.stdout) == "b created: 1 CPU on worker-2 held for shop/pod/web-0, until T\n"
    )
    taken = "is taken; choose another one, or change that reservation (`reserver update`)"
    assert result.stderr == f"reserver: a: name: {taken}\n"
    owner = json.loads((await run("get", "b", "-o", "json")).stdout)["spec"]["owners"][0]
    assert owner == {"pod": {"name": "web-0", "namespace": "shop"}}


async def test_a_file_that_is_broken_creates_nothing(run: Run) -> None:
    text = f"[{document('a', 'worker-1', '1')}, {document('b', 'worker-2', '-1')}]"
    result = await run("create", "-f", "-", text=text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "reserver: -[1]: spec.resources.cpu: -1 is negative; write the amount to hold\n"
    )
    twice = f"[{document('a', 'worker-1', '1')}, {document('a', 'worker-1', '1')}]"
    assert "is given twice" in (await run("create", "-f", "-", text=twice)).stderr
    assert (await run("get", "-o", "name")).stdout == ""


async def test_a_set_is_created_whole_or_not_at_all(run: Run) -> None:
    text = f"[{document('a', 'worker-1', '3')}, {document('b', 'worker-1', '3')}]"
    for dry in ("--dry-run=server", "--set"):
        result = await run("create", "-f", "-", dry, text=text)
        assert result.exit_code == 4
        assert "worker-1" in result.output
    assert (await run("create", "--dry-run=server", "-f", "-", text=text)).exit_code == 4
    assert (await run("get", "-o", "name")).stdout == ""
    text = text.replace("worker-1", "worker-2", 1)
    told = (await run("create", "--dry-run=server", "-f", "-", "-o", "json", text=text)).stdout
    assert json.loads(told)["fits"] is True
    once = await run("create", "-f", "-", "--set", "--request-id", "r", text=text)
    assert once.exit_code == 0
    again = await run("create", "-f", "-", "--set", "--request-id", "r", text=text)
    assert (again.exit_code, untimed(again.stdout)) == (0, untimed(once.stdout))


async def test_what_is_wrong_with_one_of_a_set_is_told_by_its_name(run: Run) -> None:
    huge = ("create", "huge", "--node", "worker-1", "--cpu", "64", *FLAGS)
    told = await run(*huge, "--set")
    words = "reserver: huge: worker-1 offers too little cpu (4 of 64)\n"
    assert (told.exit_code, told.stderr) == (4, words)


async def test_without_a_node_it_is_placed_and_says_where(run: Run) -> None:
    flags = "--owner app=web -n shop --cpu 3 --slots 2 --strategy spread"
    dry = await run("create", "a", *flags.split(), "--dry-run=server")
    assert dry.exit_code == 0
    assert "worker-1 ×1, worker-2 ×1" in dry.stdout
    made = await run("create", "a", *flags.split(), "-o", "json")
    told = json.loads(made.stdout)
    assert told["spec"]["placement"] == {"strategy": "spread"}
    places = [{"node": node, "slots": 1} for node in ("worker-1", "worker-2")]
    assert told["status"]["placements"] == places
    again = await run("create", "-f", "-", text=made.stdout.replace('"a"', '"b"'))
    assert again.exit_code == 5
    assert (
        untimed(again.stdout) == "b created: Pending: 2 slots of 3 CPUs for shop/app=web, until T\n"
    )
    assert "0/2 nodes are available: 2 capacity held by reservations" in again.stderr
    rows = [line.split() for line in (await run("get")).stdout.splitlines()]
    assert rows[1][:6] == ["a", "Active", "worker-1", "×1,", "worker-2", "×1"]
    assert rows[2][:3] == ["b", "Pending", "-"]
    wide = (await run("get", "-o", "wide")).stdout
    assert " cpu 3 " in wide
    nowhere = "c --owner app=web --cpu 1 --node-selector disk=ssd --dry-run=server"
    refused = await run("create", *nowhere.split())
    assert refused.exit_code == 4
    assert "didn't match Pod's node affinity/selector" in refused.stdout
    both = await run("create", *nowhere.split(), "--node", "worker-1")
    assert both.exit_code == 2


async def test_what_options_mean_is_released_after_a_yes(run: Run) -> None:
    for name, node in (("a", "worker-1"), ("b", "worker-2"), ("c", "worker-2")):
        await run("create", name, "--node", node, "--cpu", "1", *FLAGS)
    asked = await run("release", "--all", "--node", "worker-2")
    assert asked.exit_code == 2
    assert "pass --yes" in asked.stderr
    done = await run("release", "--all", "--node", "worker-2", "--yes")
    assert done.exit_code == 0
    names = (await run("get", "-o", "name")).stdout.split()
    assert names == ["reserver-system/reservations/a"]
    nothing = await run("release", "--all", "--node", "worker-2", "--yes", "-o", "json")
    assert json.loads(nothing.stdout) == {"reservations": []}
    assert (await run("release", "a", "--all")).exit_code == 2
    assert (await run("release")).exit_code == 2


async def test_ctrl_c_releases_nothing(run: Run, world: World) -> None:
    await run("create", "a", "--node", "worker-1", "--cpu", "1", *FLAGS)
    command = (sys.executable, "-m", "reserver", "release", "--all")
    environment = {"RESERVER_ADDRESS": str(world.running.grpc_address)}

    def press() -> int:
        with terminal(*command, environment=environment) as screen:
            screen.read_until("[y/N]")
            screen.press("\x03")
            return screen.end()

    assert await asyncio.to_thread(press) == 130
    assert (await run("get", "-o", "name")).stdout == "reserver-system/reservations/a\n"


async def test_nobody_is_asked_about_a_list_that_goes_into_a_pipe(run: Run, world: World) -> None:
    await run("create", "a", "--node", "worker-1", "--cpu", "1", *FLAGS)
    piped = f"{shlex.quote(sys.executable)} -m reserver release --all | cat"
    environment = {"RESERVER_ADDRESS": str(world.running.grpc_address)}

    def look() -> str:
        with terminal("sh", "-c", piped, environment=environment) as screen:
            screen.end()
            return screen.written

    assert await asyncio.to_thread(look) == (
        "reserver: --all: input or output is not a terminal; pass --yes\r\n"
    )


async def test_of_what_is_released_a_program_gets_what_it_was(run: Run) -> None:
    for name in ("a", "b", "c", "d"):
        await run("create", name, "--node", "worker-1", "--cpu", "100m", *FLAGS)
    a, b, c, _ = json.loads((await run("get", "-o", "json")).stdout)["reservations"]
    assert json.loads((await run("release", "a", "-o", "json")).stdout) == a
    several = await run("release", "b", "ghost", "c", "-o", "json")
    assert (several.exit_code, json.loads(several.stdout)) == (1, {"reservations": [b, c]})
    assert several.stderr == "reserver: there is no reservation 'ghost'\n"
    left = await run("release", "--all", "--yes", "-o", "name")
    assert left.stdout == "reserver-system/reservations/d\n"


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


async def test_top_shows_used_held_and_free(run: Run) -> None:
    await run("create", "a", "--node", "worker-1", "--cpu", "3", *FLAGS)
    lines = (await run("top", "nodes", "--slot", "cpu=1")).stdout.splitlines()
    assert [line.split() for line in lines if "cpu" in line] == [
        ["worker-1", "cpu", "4", "0", "3", "1", "1"],
        ["worker-2", "cpu", "4", "0", "0", "4", "4"],
    ]
    ghost = await run("top", "nodes", "worker-2", "ghost")
    assert (ghost.exit_code, ghost.stderr) == (1, "reserver: there is no node ghost\n")
    wrong = await run("top", "nodes", "--slot", "cpu=lots")
    assert wrong.exit_code == 2
    assert "--slot: cpu: 'lots' is not a quantity" in wrong.stderr


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
    """Its pod is one of Reserver's own namespace; who is meant finds the seat held for others."""
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


async def test_patience_says_nothing_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    async with progress("Waiting"):
        pass
    assert capsys.readouterr() == ("", "")


async def test_top_shows_the_nodes_again(world: World) -> None:
    environment = {"RESERVER_ADDRESS": str(world.running.grpc_address)}
    command = (sys.executable, "-m", "reserver", "top", "nodes", "-w")

    def look_twice() -> int:
        with terminal(*command, environment=environment) as screen:
            screen.read_until("worker-1")
            screen.read_until("worker-1")
            screen.press("\x03")
            return screen.end()

    assert await asyncio.to_thread(look_twice) == 130
