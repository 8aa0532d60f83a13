"""`create`: flags and files, placement, sets, and refusals."""

from __future__ import annotations

import json

import pytest

from tests.integration.cli.runs import FLAGS, Run, untimed
from tests.integration.world import World


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
