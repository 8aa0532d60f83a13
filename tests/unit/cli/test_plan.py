"""`reserver rebalance plan` from a dump."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from hack.programs import started
from reserver.cli.main import app

POLICY = """apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: RemovePodsViolatingNodeTaints
  plugins:
    deschedule:
      enabled: [RemovePodsViolatingNodeTaints]
"""
TAINT = {"key": "old", "effect": "NoSchedule"}


def _node(name: str, *taints: dict[str, str], cpu: str = "4") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def _pod(name: str, node: str = "", cpu: str = "1") -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-uid"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "uid": f"uid-{name}",
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def _dump(*objects: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


TAINTED = _dump(_node("a", TAINT), _node("b", cpu="2"), *(_pod(f"p{n}", "a") for n in range(3)))
FULL = _dump(_node("a"), _pod("p", "a"), _node("b"), _pod("q", "b", "3"), _pod("big", cpu="4"))


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return f"--policy-config-file={path}"


def _run(*arguments: str, dump: str = TAINTED) -> Result:
    return CliRunner().invoke(app, ["rebalance", "plan", "-f", "-", *arguments], input=dump)


def test_a_program_reads_the_moves_and_why_others_stay(policy: str) -> None:
    result = _run(policy, "-o", "json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    reason = "it does not tolerate the taint old:NoSchedule of a"
    assert told["moves"] == [
        {
            "namespace": "shop",
            "pod": name,
            "from": "a",
            "to": "b",
            "strategy": "RemovePodsViolatingNodeTaints",
            "profile": "default",
            "reason": reason,
            "gain": None,
            "cost": 1.0,
        }
        for name in ("p0", "p1")
    ]
    assert [(each["pod"], each["why"]) for each in told["kept"]] == [
        ("p2", "no node that would be better has room for it")
    ]
    after = {each["node"]: each["after"] for each in told["nodes"]}
    assert after["b"]["cpu"] == "2"
    assert told["notes"] == ["the plan ignores reservations, which a dump does not have"]
    assert yaml.safe_load(_run(policy, "-o", "yaml").stdout) == told


def test_pods_of_a_dump_without_uids_are_told_from_each_other(policy: str) -> None:
    nameless = json.loads(TAINTED)
    for item in nameless["items"]:
        item["metadata"].pop("uid", None)
    told = json.loads(_run(policy, "-o", "json", dump=json.dumps(nameless)).stdout)
    assert [move["pod"] for move in told["moves"]] == ["p0", "p1"]


def test_upstreams_way_names_no_target(policy: str) -> None:
    told = json.loads(_run(policy, "--compat", "upstream", "-o", "json").stdout)
    assert [(move["pod"], move["to"]) for move in told["moves"]] == [
        ("p0", None),
        ("p1", None),
        ("p2", None),
    ]


def test_people_read_moves_nodes_and_what_stays(policy: str) -> None:
    output = _run(policy).stdout
    assert "shop        p0    a      b    RemovePodsViolatingNodeTaints" in output
    assert "2 moves: RemovePodsViolatingNodeTaints 2" in output
    assert "shop/p2 stays on a (RemovePodsViolatingNodeTaints): no node" in output


@pytest.mark.parametrize(
    ("arguments", "dump", "status"),
    [
        ((), TAINTED, 2),
        ((), _dump(_node("a"), _node("b"), _pod("p", "a")), 0),
        ((), "[", 1),
        (("--picture=plan.png",), TAINTED, 1),
    ],
    ids=["moves", "nothing to do", "a broken dump", "a picture that cannot be drawn"],
)
def test_the_detailed_exit_status_is_terraforms(
    policy: str, arguments: tuple[str, ...], dump: str, status: int
) -> None:
    result = _run(policy, "--detailed-exitcode", *arguments, dump=dump)
    assert result.exit_code == status, result.output


def test_room_is_made_for_pending_pods() -> None:
    told = json.loads(_run("--make-room", "-o", "json", dump=FULL).stdout)
    assert [(move["pod"], move["from"], move["to"]) for move in told["moves"]] == [("p", "a", "b")]
    assert told["landings"] == [{"namespace": "shop", "pod": "big", "node": "a"}]
    assert (told["cost"], told["gainPerMove"]) == (1, 1)
    assert told["bound"] == {
        "fewestMoves": 1,
        "mostNodes": None,
        "by": "counting what pods request",
    }


def test_room_is_made_for_pods_that_may_be_one_by_one_or_together(tmp_path: Path) -> None:
    dump = _dump(_node("a"), _pod("p", "a"), _node("b"), _pod("q", "b", "3"))
    file = tmp_path / "pods.yaml"
    file.write_text(f"{json.dumps(_pod('big', cpu='4'))}\n---\n{json.dumps(_pod('small'))}\n")
    wanted = ("--make-room", f"--pods={file}", "-o", "json")
    told = json.loads(_run(*wanted, dump=dump).stdout)
    assert [(move["pod"], move["to"]) for move in told["moves"]] == [("p", "b")]
    assert [(each["pod"], each["node"]) for each in told["landings"]] == [("big", "a")]
    told = json.loads(_run(*wanted, "--together", dump=dump).stdout)
    assert (told["moves"], told["landings"]) == ([], [])
    file.write_text("kind: Pod\nmetadata: {}\n")
    assert "metadata.name: is empty" in _run(*wanted, dump=dump).stderr


@pytest.mark.parametrize(
    ("pod", "arguments", "status"),
    [
        (_pod("big", cpu="4"), (), 0),
        (_pod("huge", cpu="5"), (), 5),
        (_pod("huge", cpu="5"), ("-o", "json"), 5),
        (_pod("huge", cpu="5"), ("--detailed-exitcode",), 0),
        (_pod("big", cpu="4"), ("--detailed-exitcode",), 2),
    ],
)
def test_a_plan_says_by_its_status_that_a_pod_stays_without_room(
    pod: dict[str, Any], arguments: tuple[str, ...], status: int
) -> None:
    dump = _dump(_node("a"), _pod("p", "a"), _node("b"), _pod("q", "b", "3"), pod)
    result = _run("--make-room", *arguments, dump=dump)
    assert result.exit_code == status, result.output


def test_no_more_pods_move_than_are_allowed() -> None:
    dump = _dump(*(each for n in "abcd" for each in (_node(n), _pod(f"p-{n}", n))))
    emptied = [
        json.loads(_run("--defragment", *most, "-o", "json", dump=dump).stdout)["emptied"]
        for most in (("--most-moves=0",), ("--most-moves=1",), ("--most-moves=2",), ())
    ]
    assert list(map(len, emptied)) == [0, 1, 2, 3]


def _reservation(name: str, **spec: Any) -> dict[str, Any]:
    owners = [{"selector": {"matchLabels": {"app": "web"}}}]
    return {
        "apiVersion": "reserver.io/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"owners": owners, "expiresAt": "2999-01-01T00:00:00Z", **spec},
    }


@pytest.mark.parametrize(
    ("spec", "lands"),
    [
        ({"resources": {"cpu": "4"}}, {"seat": "a"}),
        ({"resources": {"cpu": "4"}, "node": "b"}, {}),
        ({"resources": {"cpu": "3"}, "node": "b"}, {"seat": "b"}),
        ({"resources": {"cpu": "2"}, "slots": 2}, {"seat#0": "a", "seat#1": "b"}),
        (
            {
                "resources": {"cpu": "4"},
                "placement": {"nodeSelector": {"kubernetes.io/hostname": "b"}},
            },
            {},
        ),
    ],
    ids=["anywhere", "no room there", "on its node", "in slots", "where it may not be"],
)
def test_room_is_made_for_reservations_that_may_be(
    tmp_path: Path, spec: dict[str, Any], lands: dict[str, str]
) -> None:
    dump = _dump(_node("a"), _pod("p", "a"), _node("b"), _pod("q", "b"))
    kept = json.loads(dump)
    kept["items"][3]["metadata"]["ownerReferences"] = []  # It stays: nobody makes it again.
    file = tmp_path / "set.yaml"
    file.write_text(json.dumps(_reservation("seat", **spec)))
    arguments = ("--make-room", "--together", f"--pods={file}", "-o", "json")
    told = json.loads(_run(*arguments, dump=json.dumps(kept)).stdout)
    assert {each["pod"]: each["node"] for each in told["landings"]} == lands


def test_what_is_neither_a_pod_nor_a_reservation_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(f"{json.dumps(_pod('big'))}\n---\nkind: Deployment\napiVersion: apps/v1\n")
    result = _run("--make-room", f"--pods={file}", dump=FULL)
    assert result.exit_code == 1
    assert f"{file}:2: kind: apps/v1 Deployment is not a reservation" in result.stderr
    file.write_text(json.dumps(_reservation("seat", resources={"cpu": "many"})))
    assert "spec.resources.cpu" in _run("--make-room", f"--pods={file}", dump=FULL).stderr


def test_nodes_are_emptied() -> None:
    output = _run(
        "--defragment", dump=_dump(_node("a"), _pod("p", "a"), _node("b"), _pod("q", "b"))
    )
    assert "empty afterwards: a" in output.stdout
    assert "nodes emptied per move: 1" in output.stdout
    assert "at most 1 node can be emptied" in output.stdout


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_a_picture_has_the_nodes_and_names_no_other_host(
    policy: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"plan{suffix}"
    assert _run(policy, f"--picture={path}").exit_code == 0
    text = path.read_text()
    assert "RemovePodsViolatingNodeTaints" in text
    assert "@font-face" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--policy-config-file: is missing; give a policy's file, --make-room or --defragment"),
        (("--make-room", "--defragment"), "--defragment: excludes --make-room"),
        (("--defragment", "--together"), "--pods, --together: need --make-room"),
        (("--policy-config-file=-",), "standard input is the dump already"),
        (("--policy-config-file=/nowhere",), "/nowhere: cannot be read: No such file"),
        (("--defragment", "--picture=x.png"), "x.png is neither .svg nor .html"),
    ],
)
def test_wrong_usage_is_told_with_the_flag_and_the_remedy(
    arguments: tuple[str, ...], message: str
) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_ctrl_c_ends_a_plan_that_waits_for_its_dump() -> None:
    command = (sys.executable, "-m", "reserver", "rebalance", "plan", "--defragment", "-f", "-")
    with started(*command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stderr
        written = process.stdin.write(b"{" + b" " * 2**20)  # More than a pipe holds: it reads.
        process.send_signal(signal.SIGINT)
        assert (written > 2**20, process.wait(20), process.stderr.read()) == (True, 130, b"")


def test_broken_policies_and_dumps_say_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.replace("v1alpha2", "v9"))
    result = _run(f"--policy-config-file={path}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"reserver: {path}: apiVersion" in result.stderr
    result = _run("--defragment", dump="{}]")
    assert result.exit_code == 1
    assert result.stderr.startswith("reserver: -: ")
    result = _run("--defragment", dump="name: web\nspec: {}\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "reserver: -: the dump has no nodes; write what `kubectl get nodes," in result.stderr
    broken = _node("c") | {"status": {"allocatable": {"cpu": "many"}}}
    result = _run("--defragment", dump=_dump(_node("a"), broken))
    assert result.exit_code == 0
    assert "Node c" in result.stdout
    assert "is skipped" in result.stdout
