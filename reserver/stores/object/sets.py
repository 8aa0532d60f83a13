"""Sets of Reservation objects: their members, and which sets will never be complete.

The API server writes one object at a time. So the first member of a set says that the set is
unfinished until all are written. The next Reserver to start dooms such a set: it has the first
member say that it is abandoned, which excludes that it is finished, and then deletes all that
belongs to it (docs/adr/0012).
"""

from __future__ import annotations

from collections.abc import Callable

from reserver.reservations.reservation import Ref
from reserver.stores.object.codec import ObjectMetadata


class Sets:
    """The sets of the objects that are known, and those that are being taken back."""

    def __init__(self, changed: Callable[[Ref], None]) -> None:
        """Tell `changed` of members that may have to be written or deleted."""
        self._changed = changed
        self._of: dict[Ref, str] = {}
        self._members: dict[str, dict[Ref, None]] = {}
        self._first: dict[str, Ref] = {}
        self._doomed: set[str] = set()
        self._abandoned: set[str] = set()

    def put(self, ref: Ref, metadata: ObjectMetadata) -> None:
        """Take an object as it is now."""
        set_id = metadata.set_id
        if self._of.get(ref, "") != set_id:
            self.drop(ref)
            self._of[ref] = set_id
            self._members.setdefault(set_id, {})[ref] = None
            if set_id in self._abandoned:
                self._changed(ref)
        if metadata.is_unfinished:
            self._first[set_id] = ref
            if metadata.is_abandoned:
                self.abandon(set_id)
        elif self._first.get(set_id) == ref:  # That was the last write: the set stays.
            del self._first[set_id]
            self.forget(set_id)

    def drop(self, ref: Ref) -> None:
        """Forget an object that is gone."""
        set_id = self._of.pop(ref, "")
        members = self._members.get(set_id, {})
        members.pop(ref, None)
        if self._first.get(set_id) == ref:
            del self._first[set_id]
            if set_id in self._doomed:  # Nobody can finish it any more.
                self._abandoned.add(set_id)
        if not members:
            self._members.pop(set_id, None)
            if set_id not in self._doomed:
                self._abandoned.discard(set_id)
        if set_id in self._abandoned:
            self._touch(set_id)

    def doom(self, set_id: str) -> None:
        """Have a set abandoned, unless it is finished before."""
        self._doomed.add(set_id)
        if first := self._first.get(set_id):
            self._changed(first)

    def abandon(self, set_id: str) -> None:
        """Delete a set that nobody can finish: its members that are known, and that come."""
        if set_id not in self._abandoned:
            self._abandoned.add(set_id)
            self._touch(set_id)

    def forget(self, set_id: str) -> None:
        """Note that a set is finished; or nothing is left of it, and no member will come."""
        self._doomed.discard(set_id)
        self._abandoned.discard(set_id)

    def has(self, set_id: str) -> bool:
        """Return whether some member of a set is known."""
        return set_id in self._members

    def is_doomed(self, set_id: str) -> bool:
        """Return whether a set is to be taken back, or already is."""
        return set_id in self._doomed or set_id in self._abandoned

    def is_abandoned(self, set_id: str) -> bool:
        """Return whether a set can be finished no more, so that its members may be deleted."""
        return set_id in self._abandoned

    def may_go(self, metadata: ObjectMetadata) -> bool:
        """Return whether a member of an abandoned set may be deleted now.

        The first goes last: it says that the set is unfinished, should this process end.
        """
        return not metadata.is_unfinished or len(self._members[metadata.set_id]) == 1

    def _touch(self, set_id: str) -> None:
        for ref in tuple(self._members.get(set_id, ())):
            self._changed(ref)
