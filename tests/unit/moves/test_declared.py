"""PodMoveGroups as a watch shows them: their members and their deletion."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from reserver.base.pacer import outcome
from reserver.cluster.pod import PodName
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.times import show_moment
from reserver.moves.declared_groups import KEPT_S, DeclaredGroups
from reserver.moves.index import MoveIndex
from reserver.moves.model import GroupMember
from reserver.moves.podmove import MoveObject
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused
from tests.unit.moves.api_server import NOW

MEMBERS = [{"namespace": space, "name": "m", "uid": f"uid-{space}"} for space in ("a", "b")]


class World:
    """PodMoveGroups, the PodMoves that they list, and an API server."""

    def __init__(self, *answers: Any) -> None:
        self.now = NOW
        self.client = ScriptedClient(*answers)
        self.changes = 0
        self.moves = MoveIndex(self._touched)
        self.groups = DeclaredGroups(self.client, lambda: self.now, self.moves, self._changed)
        self.view = self.groups.view()

    def _touched(self, name: PodName) -> None:
        known = self.moves.get(name)
        if known is not None and known.move is not None:
            self.groups.on_move_changed(known.move)

    def _changed(self) -> None:
        self.changes += 1

    def group(self, spec: Any, name: str = "g") -> None:
        metadata = {"name": name, "uid": "u", "creationTimestamp": show_moment(NOW)}
        outcome(self.view.changed(Raw(encode({"metadata": metadata, "spec": spec}))))

    def move(self, space: str, phase: str, uid: str = "", *, across: bool = True) -> None:
        metadata = {
            "name": "m",
            "namespace": space,
            "uid": f"m-{space}",
            "creationTimestamp": show_moment(NOW),
        }
        spec = {
            "pod": {"name": "web", "uid": uid or f"uid-{space}"},
            "group": {"name": "g", "size": 2, "acrossNamespaces": across},
        }
        status = {"phase": phase, "reason": "WaitsForTurn", "message": "m"}
        item = {"metadata": metadata, "spec": spec, "status": status}
        self.moves.put(decode(MoveObject, encode(item)))

    async def work(self) -> list[str]:
        """Work once; return the deleted paths."""
        await self.groups.work(["g"])
        return [request.path for request in self.client.requests]


def test_a_group_has_the_members_that_it_lists() -> None:
    world = World()
    world.group({"members": MEMBERS})
    assert world.groups.members == {
        "g": frozenset(GroupMember(PodName(space, "m"), f"uid-{space}") for space in ("a", "b"))
    }
    assert world.changes == 1


@pytest.mark.parametrize(
    "spec",
    [
        {"members": [{"namespace": "a"}]},
        {"members": MEMBERS * 251},
        {"members": MEMBERS, "more": 1},
        {"members": [{"namespace": "a", "name": "m" * 600_000}]},
        {},
    ],
    ids=["no name", "too many", "unknown field", "too long", "none"],
)
def test_one_that_cannot_be_read_lists_nobody(spec: Any) -> None:
    world = World()
    world.group({"members": MEMBERS})
    world.group(spec)
    assert world.groups.members == {}
    assert world.changes == 2


def test_one_that_is_gone_lists_nobody() -> None:
    world = World()
    world.group({"members": MEMBERS})
    outcome(world.view.deleted(Raw(encode({"metadata": {"name": "g", "uid": "u"}}))))
    assert world.groups.members == {}


async def test_it_is_deleted_once_all_its_members_have_ended_and_not_before() -> None:
    world = World({})
    world.group({"members": MEMBERS})
    assert await world.work() == []
    world.move("a", "Succeeded")
    assert await world.work() == []
    world.move("b", "Landing")
    assert await world.work() == []
    world.move("b", "Failed")
    assert await world.work() == ["/apis/reserver.io/v1alpha1/podmovegroups/g"]
    assert world.client.requests[0].body == {"preconditions": {"uid": "u"}}


async def test_it_is_deleted_after_an_hour_if_some_members_were_never_written() -> None:
    world = World({})
    world.group({"members": MEMBERS})
    world.move("a", "Pending")
    world.now += KEPT_S
    assert await world.work() == []  # One is under way.
    world.move("a", "Failed")
    world.now = NOW + KEPT_S - 1
    assert await world.work() == []
    world.now += 1
    assert len(await world.work()) == 1


async def test_moves_that_are_no_members_neither_keep_it_nor_have_it_deleted() -> None:
    world = World({})
    world.group({"members": MEMBERS})
    world.move("a", "Succeeded", uid="another")
    world.move("b", "Succeeded", across=False)
    assert await world.work() == []
    world.move("c", "Pending")
    world.now += KEPT_S
    assert len(await world.work()) == 1


@pytest.mark.parametrize("answer", [refused(404, "NotFound"), refused(403, "Forbidden"), NO_ANSWER])
async def test_a_deletion_that_fails_is_tried_again_unless_it_is_gone(answer: Any) -> None:
    world = World(answer)
    world.group({"members": MEMBERS})
    world.now += KEPT_S
    queue = world.groups.queue
    assert queue.take_all() == ["g"]
    await world.work()
    is_gone = getattr(answer, "status", 0) == 404
    assert (queue.is_delayed("g") or queue.depth > 0) is not is_gone
