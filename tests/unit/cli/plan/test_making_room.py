"""`reserver rebalance plan` makes room for pending pods and reservations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.plan.dumps import dump_of, node_of, plan, pod_of

FULL = dump_of(
    node_of("a"), pod_of("p", "a"), node_of("b"), pod_of("q", "b", "3"), pod_of("big", cpu="4")
)


def test_room_is_made_for_pending_pods() -> None:
    printed = json.loads(plan("--make-room", "-o", "json", dump=FULL).stdout)
    assert [(move["pod"], move["from"], move["to"]) for move in printed["moves"]] == [
        ("p", "a", "b")
    ]
    assert printed["landings"] == [{"namespace": "shop", "pod": "big", "node": "a"}]
    assert (printed["cost"], printed["gainPerMove"]) == (1, 1)
    assert printed["bound"] == {
        "fewestMoves": 1,
        "mostNodes": None,
        "by": "counting what pods request",
    }


def test_room_is_made_for_pods_that_may_be_one_by_one_or_together(tmp_path: Path) -> None:
    dump = dump_of(node_of("a"), pod_of("p", "a"), node_of("b"), pod_of("q", "b", "3"))
    file = tmp_path / "pods.yaml"
    file.write_text(f"{json.dumps(pod_of('big', cpu='4'))}\n---\n{json.dumps(pod_of('small'))}\n")
    wanted = ("--make-room", f"--pods={file}", "-o", "json")
    printed = json.loads(plan(*wanted, dump=dump).stdout)
    assert [(move["pod"], move["to"]) for move in printed["moves"]] == [("p", "b")]
    assert [(each["pod"], each["node"]) for each in printed["landings"]] == [("big", "a")]
    printed = json.loads(plan(*wanted, "--together", dump=dump).stdout)
    assert (printed["moves"], printed["landings"]) == ([], [])
    file.write_text("kind: Pod\nmetadata: {}\n")
    assert "metadata.name: is empty" in plan(*wanted, dump=dump).stderr


@pytest.mark.parametrize(
    ("pod", "arguments", "status"),
    [
        (pod_of("big", cpu="4"), (), 0),
        (pod_of("huge", cpu="5"), (), 5),
        (pod_of("huge", cpu="5"), ("-o", "json"), 5),
        (pod_of("huge", cpu="5"), ("--detailed-exitcode",), 0),
        (pod_of("big", cpu="4"), ("--detailed-exitcode",), 2),
    ],
)
def test_a_plan_says_by_its_status_that_a_pod_stays_without_room(
    pod: dict[str, Any], arguments: tuple[str, ...], status: int
) -> None:
    dump = dump_of(node_of("a"), pod_of("p", "a"), node_of("b"), pod_of("q", "b", "3"), pod)
    result = plan("--make-room", *arguments, dump=dump)
    assert result.exit_code == status, result.output


def reservation_of(name: str, **spec: Any) -> dict[str, Any]:
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
    dump = dump_of(node_of("a"), pod_of("p", "a"), node_of("b"), pod_of("q", "b"))
    kept = json.loads(dump)
    kept["items"][3]["metadata"]["ownerReferences"] = []  # A pod without a controller stays.
    file = tmp_path / "set.yaml"
    file.write_text(json.dumps(reservation_of("seat", **spec)))
    arguments = ("--make-room", "--together", f"--pods={file}", "-o", "json")
    printed = json.loads(plan(*arguments, dump=json.dumps(kept)).stdout)
    assert {each["pod"]: each["node"] for each in printed["landings"]} == lands


def test_what_is_neither_a_pod_nor_a_reservation_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(f"{json.dumps(pod_of('big'))}\n---\nkind: Deployment\napiVersion: apps/v1\n")
    result = plan("--make-room", f"--pods={file}", dump=FULL)
    assert result.exit_code == 1
    assert f"{file}:2: kind: apps/v1 Deployment is not a reservation" in result.stderr
    file.write_text(json.dumps(reservation_of("seat", resources={"cpu": "many"})))
    assert "spec.resources.cpu" in plan("--make-room", f"--pods={file}", dump=FULL).stderr
