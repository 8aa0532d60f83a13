"""Nodes in hand are emptied by PodMoves, and what is left of these is deleted."""

from __future__ import annotations

from reserver.k8s.objects.objects import decode, encode
from reserver.maintenance.emptying import MOST_ENDED, NodeEmptying
from reserver.maintenance.moving import LABEL
from reserver.moves.index import MoveIndex
from reserver.moves.podmove import MoveObject
from tests.builders import NOW
from tests.unit.k8s.fakes import ScriptedClient


def labelled(namespace: str, name: str) -> MoveObject:
    metadata = {
        "namespace": namespace,
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "labels": {LABEL: "forged.1"},
    }
    return decode(MoveObject, encode({"metadata": metadata, "spec": {"pod": {"name": name}}}))


async def test_whoever_writes_moves_with_the_label_of_a_window_keeps_no_other_waiting() -> None:
    """A thousand that a finalizer keeps were deleted again in each pass, one after the other."""
    moves = MoveIndex(lambda _: None)
    for number in range(MOST_ENDED * 3):
        moves.put(labelled("greedy", f"m-{number}"))
    moves.put(labelled("shop", "web"))
    client = ScriptedClient(*[{}] * (MOST_ENDED * 4))
    await NodeEmptying(client, moves).move({}, NOW)
    assert len(client.requests) == MOST_ENDED
    assert any("/shop/" in each.path for each in client.requests[:2])
