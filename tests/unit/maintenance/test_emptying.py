"""Nodes in maintenance are emptied by PodMoves, and left-over PodMoves are deleted."""

from __future__ import annotations

from typing import Any

from reserver.cluster.snapshot import Snapshot
from reserver.errors import ApiError
from reserver.k8s.objects.objects import decode, encode
from reserver.maintenance.emptying import LOOK_AGAIN_S, MOST_BYTES, MOST_ENDED, NodeEmptying
from reserver.maintenance.model import MaintenancePeriod, Window
from reserver.maintenance.moving import LABEL
from reserver.moves.index import MOST_MOVES, MoveIndex
from reserver.moves.podmove import MoveObject
from tests.builders import NOW, pod
from tests.unit.k8s.fakes import ScriptedClient, refused


def fail(error: ApiError) -> None:
    raise error


def labelled(namespace: str, name: str, key: str = "forged.1") -> MoveObject:
    metadata = {
        "namespace": namespace,
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "labels": {LABEL: key},
    }
    return decode(MoveObject, encode({"metadata": metadata, "spec": {"pod": {"name": name}}}))


async def test_whoever_writes_moves_with_the_label_of_a_window_keeps_no_other_waiting() -> None:
    """A thousand PodMoves with finalizers were once deleted again in each pass, one by one."""
    moves = MoveIndex(lambda _: None)
    for number in range(MOST_ENDED * 3):
        moves.put(labelled("greedy", f"m-{number}"))
    moves.put(labelled("shop", "web"))
    client = ScriptedClient(*[{}] * (MOST_ENDED * 4))
    await NodeEmptying(client, moves, Snapshot(), fail).move({}, NOW)
    assert len(client.requests) == MOST_ENDED
    as_seen = {"uid": "uid-web", "resourceVersion": "1"}  # It may evict until then.
    assert {"preconditions": as_seen} in [each.body for each in client.requests]
    assert any("/shop/" in each.path for each in client.requests[:2])


W = Window(name="w", uid="uid-w", period=MaintenancePeriod(NOW, NOW + 3600))
TOO_LONG = b" " * (MOST_BYTES + 1)


def listed(*names: str) -> dict[str, Any]:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    metadata = [{"namespace": "shop", "name": n, "ownerReferences": [owner]} for n in names]
    return {"items": [{"metadata": each} for each in metadata]}


def leaving(emptying: NodeEmptying, node: str) -> set[str]:
    drain = emptying.drain(node)
    assert drain is not None
    return {each.name for each in drain.leaving}


async def test_pods_of_any_size_keep_neither_their_node_nor_others_from_being_emptied() -> None:
    """Fifty pods of 1.4 MB, which any tenant may create, once stopped all maintenance."""
    snapshot = Snapshot()
    for name in ("a", "b", "gone"):
        snapshot.count(pod(name), "large")
    script = (TOO_LONG, listed("a"), listed("b"), listed(), listed("c"))
    client = ScriptedClient(*script)
    emptying = NodeEmptying(client, MoveIndex(lambda _: None), snapshot, fail)
    await emptying.look({"large": W, "next": W}, NOW)
    assert (leaving(emptying, "large"), leaving(emptying, "next")) == ({"a", "b"}, {"c"})
    selectors = [each.params["fieldSelector"] for each in client.requests if each.params]
    assert selectors[1] == "metadata.name=a,spec.nodeName=large"


async def test_a_node_whose_pods_are_refused_is_named_and_asked_about_later() -> None:
    faults: list[ApiError] = []
    client = ScriptedClient(refused(403), listed("c"), listed("a"))
    emptying = NodeEmptying(client, MoveIndex(lambda _: None), Snapshot(), faults.append)
    await emptying.look({"first": W, "next": W}, NOW)
    assert (emptying.drain("first"), leaving(emptying, "next")) == (None, {"c"})
    assert [each.message for each in faults] == ["pods of node first: the API server said 403"]
    await emptying.look({"first": W}, NOW + LOOK_AGAIN_S - 1)
    assert emptying.drain("first") is None
    await emptying.look({"first": W}, NOW + LOOK_AGAIN_S)
    assert leaving(emptying, "first") == {"a"}


async def test_a_pod_whose_move_is_written_gets_no_other() -> None:
    moves = MoveIndex(lambda _: None)
    client = ScriptedClient(listed("web"), {})
    emptying = NodeEmptying(client, moves, Snapshot(), fail)
    await emptying.look({"n": W}, NOW)
    await emptying.move({"n": W}, NOW)
    written = client.requests[-1].body
    shown = {"namespace": "shop", "uid": "uid-m", "resourceVersion": "1"}
    shown["creationTimestamp"] = "2030-01-01T00:00:00Z"
    moves.put(decode(MoveObject, encode(written | {"metadata": written["metadata"] | shown})))
    await emptying.move({"n": W}, NOW)
    assert [each.verb for each in client.requests] == ["get", "create"]


async def test_pods_wait_while_their_namespace_has_as_many_moves_as_are_read() -> None:
    """A thousand were once created, refused and deleted again every ten seconds."""
    moves = MoveIndex(lambda _: None)
    for number in range(MOST_MOVES - 2):
        moves.put(labelled("shop", f"m-{number}", W.key))
    client = ScriptedClient(listed("a", "b"), listed("c", "d"), {}, {})
    emptying = NodeEmptying(client, moves, Snapshot(), fail)
    nodes = {"n1": W, "n2": W}
    await emptying.look(nodes, NOW)
    await emptying.move(nodes, NOW)
    assert [each.verb for each in client.requests[2:]] == ["create", "create"]
    for name in ("e", "f"):
        moves.put(labelled("shop", name, W.key))
    await emptying.move(nodes, NOW)
    assert len(client.requests) == 4
