"""Sets of Reservation objects: their members, and which sets will never be complete.

The API server writes one object at a time. So the first member of a set says that the set is
unfinished until all are written, and the next Reserver to start deletes what belongs to such a set
(docs/adr/0012).
"""

from __future__ import annotations

from collections.abc import Callable

from reserver.reservations.reservation import Ref
from reserver.wire.spec.object import ObjectMetadata


class Sets:
    """The sets of the objects that are known, and those that are being taken back."""

    def __init__(self, touched: Callable[[Ref], None]) -> None:
        """Tell `touched` of members whose deletion may be due."""
        self._touched = touched
        self._of: dict[Ref, str] = {}
        self._members: dict[str, dict[Ref, None]] = {}
        self._abandoned: set[str] = set()

    def put(self, ref: Ref, metadata: ObjectMetadata) -> None:
        """Take an object as it is now."""
        if self._of.get(ref, "") != metadata.set_id:
            self.drop(ref)
            self._of[ref] = metadata.set_id
            self._members.setdefault(metadata.set_id, {})[ref] = None

    def drop(self, ref: Ref) -> None:
        """Forget an object that is gone."""
        set_id = self._of.pop(ref, "")
        members = self._members.get(set_id, {})
        members.pop(ref, None)
        if not members:
            self._members.pop(set_id, None)
        if set_id in self._abandoned:
            self._touch(set_id)

    def abandon(self, set_id: str) -> None:
        """Delete a set: its members that are known, and those that become known."""
        self._abandoned.add(set_id)
        self._touch(set_id)

    def forget(self, set_id: str) -> None:
        """Note that nothing is left of a set, and that no member will come."""
        self._abandoned.discard(set_id)

    def has(self, set_id: str) -> bool:
        """Return whether some member of a set is known."""
        return set_id in self._members

    def is_abandoned(self, set_id: str) -> bool:
        """Return whether a set is being taken back."""
        return set_id in self._abandoned

    def may_go(self, metadata: ObjectMetadata) -> bool:
        """Return whether a member of an abandoned set may be deleted now.

        The first goes last: it says that the set is unfinished, should this process end.
        """
        return not metadata.is_unfinished or len(self._members[metadata.set_id]) == 1

    def _touch(self, set_id: str) -> None:
        for ref in tuple(self._members.get(set_id, ())):
            self._touched(ref)
