"""`reserver rebalance plan` from a dump: the moves, the output and the exit status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hack.programs import started
from tests.unit.cli.plan.dumps import TAINTED, dump_of, node_of, plan, pod_of

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


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return f"--policy-config-file={path}"


def test_a_program_reads_the_moves_and_why_others_stay(policy: str) -> None:
    result = plan(policy, "-o", "json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    reason = "it does not tolerate the taint old:NoSchedule of a"
    assert printed["moves"] == [
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
    assert [(each["pod"], each["why"]) for each in printed["kept"]] == [
        ("p2", "no node that would be better has room for it")
    ]
    after = {each["node"]: each["after"] for each in printed["nodes"]}
    assert after["b"]["cpu"] == "2"
    assert printed["notes"] == ["the plan ignores reservations, which a dump does not have"]
    assert yaml.safe_load(plan(policy, "-o", "yaml").stdout) == printed


def test_pods_of_a_dump_without_uids_are_told_from_each_other(policy: str) -> None:
    nameless = json.loads(TAINTED)
    for item in nameless["items"]:
        item["metadata"].pop("uid", None)
    printed = json.loads(plan(policy, "-o", "json", dump=json.dumps(nameless)).stdout)
    assert [move["pod"] for move in printed["moves"]] == ["p0", "p1"]


def test_upstreams_way_names_no_target(policy: str) -> None:
    printed = json.loads(plan(policy, "--compat", "upstream", "-o", "json").stdout)
    assert [(move["pod"], move["to"]) for move in printed["moves"]] == [
        ("p0", None),
        ("p1", None),
        ("p2", None),
    ]


def test_people_read_moves_nodes_and_what_stays(policy: str) -> None:
    output = plan(policy).stdout
    assert "shop        p0    a      b    RemovePodsViolatingNodeTaints" in output
    assert "2 moves: RemovePodsViolatingNodeTaints 2" in output
    assert "shop/p2 stays on a (RemovePodsViolatingNodeTaints): no node" in output


@pytest.mark.parametrize(
    ("arguments", "dump", "status"),
    [
        ((), TAINTED, 2),
        ((), dump_of(node_of("a"), node_of("b"), pod_of("p", "a")), 0),
        ((), "[", 1),
        (("--picture=plan.png",), TAINTED, 1),
    ],
    ids=["moves", "nothing to do", "a broken dump", "a picture that cannot be drawn"],
)
def test_the_detailed_exit_status_is_terraforms(
    policy: str, arguments: tuple[str, ...], dump: str, status: int
) -> None:
    result = plan(policy, "--detailed-exitcode", *arguments, dump=dump)
    assert result.exit_code == status, result.output


def test_no_more_pods_move_than_are_allowed() -> None:
    dump = dump_of(*(each for n in "abcd" for each in (node_of(n), pod_of(f"p-{n}", n))))
    emptied = [
        json.loads(plan("--defragment", *most, "-o", "json", dump=dump).stdout)["emptied"]
        for most in (("--most-moves=0",), ("--most-moves=1",), ("--most-moves=2",), ())
    ]
    assert list(map(len, emptied)) == [0, 1, 2, 3]


def test_nodes_are_emptied() -> None:
    output = plan(
        "--defragment", dump=dump_of(node_of("a"), pod_of("p", "a"), node_of("b"), pod_of("q", "b"))
    )
    assert "empty afterwards: a" in output.stdout
    assert "nodes emptied per move: 1" in output.stdout
    assert "at most 1 node can be emptied" in output.stdout


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_a_picture_has_the_nodes_and_names_no_other_host(
    policy: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"plan{suffix}"
    assert plan(policy, f"--picture={path}").exit_code == 0
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
    result = plan(*arguments)
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
    result = plan(f"--policy-config-file={path}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"reserver: {path}: apiVersion" in result.stderr
    result = plan("--defragment", dump="{}]")
    assert result.exit_code == 1
    assert result.stderr.startswith("reserver: -: ")
    result = plan("--defragment", dump="name: web\nspec: {}\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "reserver: -: the dump has no nodes; write what `kubectl get nodes," in result.stderr
    broken = node_of("c") | {"status": {"allocatable": {"cpu": "many"}}}
    result = plan("--defragment", dump=dump_of(node_of("a"), broken))
    assert result.exit_code == 0
    assert "Node c" in result.stdout
    assert "is skipped" in result.stdout
