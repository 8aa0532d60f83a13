"""Caches the PodMoveGroups, and deletes finished ones."""

from __future__ import annotations

from collections.abc import Callable

from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import ResourceMetadata
from reserver.k8s.objects.times import parse_moment
from reserver.k8s.watch.object_view import Key, ObjectView
from reserver.k8s.work_queue import WorkQueue
from reserver.moves.groups import key_of
from reserver.moves.index import MoveIndex
from reserver.moves.model import GroupMember, Move
from reserver.moves.podmove_group import PodMoveGroupObject, path

KEPT_S = 3600.0
"""Seconds for which a PodMoveGroup with missing members is kept: its author writes the members
soon, or never."""


class DeclaredGroups:
    """The PodMoveGroups.

    Attributes:
        members: the members of each PodMoveGroup, by its name.
        queue: the PodMoveGroups that may have to be deleted.
    """

    def __init__(
        self,
        client: ApiClient,
        clock: Callable[[], float],
        moves: MoveIndex,
        changed: Callable[[], None],
    ) -> None:
        """Begin without groups.

        Args:
            clock: unix seconds.
            changed: called when a group has changed.
        """
        self._client = client
        self._clock = clock
        self._moves = moves
        self._changed = changed
        self._known: dict[str, ResourceMetadata] = {}
        self.members: dict[str, frozenset[GroupMember]] = {}
        self.queue = WorkQueue[str]("move groups")

    def view(self) -> ObjectView[PodMoveGroupObject]:
        """Return the view that updates the groups from the watch."""
        return ObjectView(
            PodMoveGroupObject,
            seen=lambda item, _: self._seen(item),
            gone=lambda key: self._gone(key[1]),
            known=lambda: [("", name) for name in self._known],
            broken=self._broken,
        )

    def _seen(self, item: PodMoveGroupObject) -> None:
        name = item.metadata.name
        self._known[name] = item.metadata
        self.queue.add(name)
        self.members[name] = item.members()
        self._changed()

    def _gone(self, name: str) -> None:
        self._known.pop(name, None)
        self.members.pop(name, None)
        self._changed()

    def _broken(self, key: Key, _: object) -> None:
        """Treat an invalid PodMoveGroup as one without members, so that its members wait."""
        self.members.pop(key[1], None)
        self._changed()

    async def run(self) -> None:
        """Delete finished PodMoveGroups until cancelled."""
        await self.queue.run(self.work)

    async def work(self, names: list[str]) -> None:
        """Delete finished PodMoveGroups; queue the others again."""
        for name in names:
            known = self._known.get(name)
            if known is None:
                self.queue.discard(name)
            elif (left_s := self._left(known)) > 0:
                self.queue.add(name, left_s)
            else:
                await self._delete(known)

    def on_move_changed(self, move: Move) -> None:
        """Queue the PodMoveGroup of an ended PodMove; returns at once."""
        if move.is_over and move.spec.group.across:
            self.queue.add(move.spec.group.name)

    def _left(self, known: ResourceMetadata) -> float:
        """Return the seconds until the next look at a PodMoveGroup; 0 to delete it now."""
        name = known.name
        members = [self._moves.get(each.move) for each in self.members.get(name, ())]
        moves = [each.move for each in members if each is not None and each.move is not None]
        own = [move for move in moves if key_of(move, self.members) == ("", name)]
        if any(not move.is_over for move in own):
            return KEPT_S  # The end of the last one queues it.
        if 0 < len(own) == len(members):
            return 0.0
        return max(0.0, parse_moment(known.creation_timestamp) + KEPT_S - self._clock())

    async def _delete(self, known: ResourceMetadata) -> None:
        name = known.name
        try:
            await self._client.delete(path(name), {"preconditions": {"uid": known.uid}})
        except ApiError as exc:
            if not exc.is_absent:
                self.queue.failed(name, exc)
                return
        self.queue.succeeded(name)
