"""Nodes that rounds empty: which, in which order, and how each ends."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.k8s.objects.nodes import EMPTIED_ANNOTATION, EMPTYING_ANNOTATION
from reserver.rebalance import emptying
from reserver.rebalance.capacity import Held
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.emptying import Settled, left_by, settled, whole_nodes
from reserver.rebalance.node_marks import NodeMarks
from reserver.rebalance.plan import Plan, PlannedMove
from reserver.rebalance.policy import DeschedulerPolicy
from reserver.rebalance.policy_reader import read
from reserver.rebalance.round_input import RoundInput
from tests.unit.k8s.fakes import ScriptedClient, refused
from tests.unit.rebalance.build import cluster_of, node, pod

MARK = {EMPTYING_ANNOTATION: "2030-01-31T10:00:00Z"}


def marked(name: str, *, cordoned: bool = True) -> dict[str, Any]:
    found = node(name, cordoned=cordoned)
    found["metadata"]["annotations"] = dict(MARK)
    return found


def cpu(name: str, on: str, cores: str, **parts: Any) -> dict[str, Any]:
    return pod(name, on, requests={"cpu": cores}, **parts)


def planned(cluster: ClusterState, policy: DeschedulerPolicy | None = None) -> Plan:
    policy = policy or DeschedulerPolicy()
    given = RoundInput(policy=policy, cluster=cluster, loads={}, rounds={}, now=0.0)
    return emptying.decide(given, {}).plan


def test_what_is_begun_is_finished_though_another_node_is_cheaper_to_empty() -> None:
    two = DeschedulerPolicy().with_most_moves(2)
    stays = cpu("r", "c", "1", metadata={"ownerReferences": []})
    things = [node("b"), node("c"), cpu("q", "b", "1"), stays]
    things += [cpu("p0", "a", "1"), cpu("p1", "a", "1")]
    assert planned(cluster_of(node("a"), *things), two).emptied == ("b",)
    assert planned(cluster_of(marked("a"), *things), two).emptied == ("a",)
    plan = planned(cluster_of(marked("a"), *things))
    assert plan.emptied == ("a", "b")
    assert sorted((move.pod.name, move.source, move.target) for move in plan.moves) == [
        ("p0", "a", "c"),
        ("p1", "a", "c"),
        ("q", "b", "c"),
    ]


@pytest.mark.parametrize("kept", ["cordoned", "uncordoned since", "outside of the policy"])
def test_nodes_that_are_somebody_elses_are_not_emptied(kept: str) -> None:
    others = {
        "cordoned": node("a", cordoned=True),
        "uncordoned since": marked("a", cordoned=False),
        "outside of the policy": node("a"),
    }
    text = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nnodeSelector: pool=x\n"
    is_outside = kept == "outside of the policy"
    policy = read(text.encode(), lambda _: None).policy if is_outside else None
    things = [others[kept], node("b", labels={"pool": "x"}), node("c", labels={"pool": "x"})]
    things += [cpu("p", "a", "1"), cpu("q", "b", "2"), cpu("r", "c", "3")]
    assert planned(cluster_of(*things), policy).emptied in {(), ("b",)}
    things[0] = node("a", labels={"pool": "x"})
    assert "a" in planned(cluster_of(*things), policy).emptied


def move(name: str, source: str, target: str) -> PlannedMove:
    return PlannedMove(
        pod=PodName("shop", name), uid=name, source=source, target=target, strategy="Defragment"
    )


MOVES = (
    move("a0", "a", "x"),
    move("b0", "b", "x"),
    move("x0", "x", "y"),  # Makes room for a1.
    move("a1", "a", "x"),
    move("c0", "c", "y"),
    move("b1", "b", "y"),
    move("b2", "b", "y"),
)
EMPTIED = Plan(moves=MOVES, emptied=("a", "b", "c"))


@pytest.mark.parametrize(
    ("most", "begun", "resting", "pods"),
    [
        (50, "", "", "a0 b0 x0 a1 c0 b1 b2"),
        (6, "", "", "a0 x0 a1 c0"),
        (3, "", "", "c0"),
        (3, "b", "", "b0 b1 b2"),
        (2, "b", "", "b0 b1 b2"),
        (50, "", "x0", "b0 c0 b1 b2"),
        (50, "", "a0 b0 c0", ""),
    ],
)
def test_whole_nodes_are_emptied_begun_ones_first_then_those_with_fewest_moves(
    most: int, begun: str, resting: str, pods: str
) -> None:
    rests = frozenset((PodName("shop", name), name) for name in resting.split())
    found = whole_nodes(EMPTIED, begun.split(), rests, most)
    assert [each.pod.name for each in found] == pods.split()


DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]}


@pytest.mark.parametrize(
    ("things", "held", "leaving", "ends"),
    [
        ([marked("a")], {}, set(), Settled(("a",))),
        ([marked("a"), cpu("d", "a", "1", metadata=DAEMON)], {}, set(), Settled(("a",))),
        ([marked("a")], {"a": {"cpu": 500}}, set(), Settled((), ("a",))),
        ([marked("a"), cpu("p", "a", "1")], {}, {"a"}, Settled()),
        ([marked("a"), cpu("p", "a", "1")], {}, {"b"}, Settled((), ("a",))),
        ([marked("a", cordoned=False), cpu("p", "a", "1")], {}, {"a"}, Settled((), ("a",))),
        (
            [
                marked("a"),
                cpu("p", "a", "1", metadata={"deletionTimestamp": "2030-01-31T10:00:00Z"}),
            ],
            {},
            set(),
            Settled(),
        ),
        ([node("a", cordoned=True)], {}, set(), Settled()),
    ],
    ids=[
        "empty",
        "daemons",
        "held",
        "leaving",
        "stuck",
        "uncordoned",
        "terminating",
        "not ours",
    ],
)
def test_a_node_is_emptied_given_back_or_still_under_way(
    things: list[dict[str, Any]], held: Held, leaving: set[str], ends: Settled
) -> None:
    assert settled(cluster_of(*things), held, leaving) == ends


def test_a_node_that_a_maintenance_window_has_keeps_its_cordon() -> None:
    found = marked("a")
    found["metadata"]["annotations"]["reserver.io/maintenance"] = "tonight"
    assert settled(cluster_of(found), {}, set()) == Settled()


def test_the_nodes_that_pods_leave_are_those_of_their_moves() -> None:
    cluster = cluster_of(node("a"), node("b"), cpu("p", "a", "1"), cpu("q", "b", "1"))
    assert left_by(cluster, {PodName("shop", "q")}) == {"b"}


def seen(*, cordoned: bool, **annotations: str) -> dict[str, Any]:
    metadata = {"name": "a", "resourceVersion": "7", "annotations": annotations}
    return {"metadata": metadata, "spec": {"unschedulable": cordoned}}


def marks(client: ScriptedClient, *, hands_over: bool = False) -> NodeMarks:
    return NodeMarks(client, lambda: 1_896_084_000.0, hands_over=hands_over)


async def test_cordon_and_annotation_are_one_write_on_the_node_that_was_seen() -> None:
    client = ScriptedClient(seen(cordoned=False), refused(409), seen(cordoned=False), {})
    await marks(client).begin("a")
    assert client.requests[-1].body == {
        "metadata": {
            "annotations": MARK | {EMPTIED_ANNOTATION: None},
            "resourceVersion": "7",
        },
        "spec": {"unschedulable": True},
    }


async def test_a_cordon_of_somebody_else_stays_theirs() -> None:
    client = ScriptedClient(seen(cordoned=True))
    await marks(client).begin("a")
    assert len(client.requests) == 1


@pytest.mark.parametrize("hands_over", [False, True])
async def test_an_emptied_node_is_opened_or_handed_over(hands_over: bool) -> None:  # noqa: FBT001
    client = ScriptedClient(seen(cordoned=True, **MARK), {})
    await marks(client, hands_over=hands_over).settle(Settled(("a",)))
    body = client.requests[-1].body
    annotations = body["metadata"]["annotations"]
    assert annotations[EMPTYING_ANNOTATION] is None
    assert (EMPTIED_ANNOTATION in annotations) is hands_over
    assert body.get("spec") == (None if hands_over else {"unschedulable": None})


async def test_a_node_that_is_given_back_is_open_whatever_becomes_of_emptied_ones() -> None:
    client = ScriptedClient(seen(cordoned=True, **MARK), {})
    await marks(client, hands_over=True).settle(Settled((), ("a",)))
    assert client.requests[-1].body["spec"] == {"unschedulable": None}


async def test_each_node_whose_emptying_has_ended_is_counted_once_it_is_written() -> None:
    counted: list[str] = []
    client = ScriptedClient(*[seen(cordoned=True, **MARK), {}] * 2, refused(403, "Forbidden"))
    reported = NodeMarks(client, lambda: 0.0, counted=counted.append)
    await reported.settle(Settled(("a",), ("b",)))
    with pytest.raises(ApiError):
        await reported.settle(Settled(("c",)))
    assert counted == ["emptied", "given back"]


async def test_a_node_that_is_gone_needs_nothing_and_a_refusal_is_told() -> None:
    await marks(ScriptedClient(refused(404, "NotFound"))).settle(Settled(("a",)))
    with pytest.raises(ApiError):
        await marks(ScriptedClient(refused(403, "Forbidden"))).begin("a")


async def test_nodes_are_closed_once_and_only_those_that_are_left_now() -> None:
    cluster = cluster_of(marked("a"), node("b"), node("c"), node("x"), cpu("a0", "a", "1"))
    client = ScriptedClient(seen(cordoned=False), {})
    plan = replace(EMPTIED, moves=MOVES[:2])
    assert await marks(client).prepare(plan, cluster, {}, set()) == Settled()
    assert [(each.verb.upper(), each.path) for each in client.requests] == [
        ("GET", "/api/v1/nodes/b"),
        ("PATCH", "/api/v1/nodes/b"),
    ]
    assert json.dumps(client.requests[-1].body)
