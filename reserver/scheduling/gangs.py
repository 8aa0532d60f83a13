"""PodGroups: the answers of Filter for unbound members.

kube-scheduler calls for the pods of a group one after the other, and binds them together once all
have a node (schedule_one_podgroup.go). It counts earlier pods on their nodes, but does not see
holds. So where capacity is held, Filter returns one node only, remembers it, and counts the pod
there against the later pods of its group (docs/adr/0053-gangs-counted.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import total
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import Slot

ATTEMPT_S = 5.0
"""Seconds after an answer from which the group's next call belongs to another attempt: the calls
of one attempt follow each other."""


PAUSE_S = 0.5
"""Least seconds between two attempts of a group, unless kube-scheduler is idle: then it retries at
once."""


class _Place(NamedTuple):
    """The node of a pod, its slots there, and the amounts that it takes beyond them."""

    node: str
    slots: tuple[Slot, ...]
    extra: Mapping[str, int]


class Attempt:
    """The pods of a group that Filter has answered in one attempt.

    Attributes:
        spent: the number of slots that they take, by reservation and node.
        taken: the amounts that they take beyond their slots, by node and resource.
    """

    def __init__(self) -> None:
        """Begin without pods."""
        self.spent: Counter[Slot] = Counter()
        self.taken: dict[str, Counter[str]] = {}
        self._places: dict[str, _Place | None] = {}
        self._answered_at: dict[str, float] = {}
        self._last = 0.0

    def is_before(self, now: float) -> bool:
        """Return whether the attempt is over at `now` (unix seconds)."""
        return abs(now - self._last) >= ATTEMPT_S

    def has(self, pod_uid: str) -> bool:
        """Return whether a pod was answered; each pod is answered once in an attempt."""
        return pod_uid in self._places

    def put(self, pod: Pod, node: str, seats: Iterable[Reservation], now: float) -> None:
        """Count a pod that was answered at `now`; `node` is empty if it has no holds."""
        place = None
        if node:
            seats = tuple(seats)
            slot = total(seat.resources for seat in seats)
            extra = {name: n - slot.get(name, 0) for name, n in pod.requests.items()}
            more = {name: n for name, n in extra.items() if n > 0}
            place = _Place(node, tuple((seat.identity, node) for seat in seats), more)
        self._put(pod.uid, place, now)

    def _put(self, pod_uid: str, place: _Place | None, at: float) -> None:
        self._last = self._answered_at[pod_uid] = at
        self._places[pod_uid] = place
        if place is not None:
            self.spent.update(place.slots)
            self.taken.setdefault(place.node, Counter()).update(place.extra)

    def next(self, pod_uid: str, now: float) -> Attempt:
        """Return the attempt of a repeated call for a pod at `now` (unix seconds).

        If kube-scheduler has paused since the pod was answered, the attempt began after the pause,
        with the pods that were answered since.
        """
        uids = list(self._places)
        since = uids[uids.index(pod_uid) :]
        moments = [*(self._answered_at[uid] for uid in since), now]
        pauses = (after - before for before, after in pairwise(moments))
        began = [index for index, pause in enumerate(pauses, start=1) if abs(pause) >= PAUSE_S]
        attempt = Attempt()
        for uid in since[began[-1] :] if began else ():
            attempt._put(uid, self._places[uid], self._answered_at[uid])
        return attempt

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield UID and node of the pods on nodes with holds, last first."""
        for uid, place in reversed(self._places.items()):
            if place is not None:
                yield uid, place.node

    def drop(self, pod_uid: str) -> None:
        """Stop counting a pod."""
        place = self._places.pop(pod_uid, None)
        self._answered_at.pop(pod_uid, None)
        if place is not None:
            self.spent.subtract(place.slots)
            self.taken[place.node].subtract(place.extra)


NOBODY = Attempt()
"""The attempt of a pod without a group; always empty."""


class Gangs:
    """The unbound pods of each PodGroup, and the last attempt to place them."""

    def __init__(self) -> None:
        """Begin without groups."""
        self._waiting: dict[tuple[str, str], dict[str, Pod]] = {}
        self._attempts: dict[tuple[str, str], Attempt] = {}

    def waiting(self, pod: Pod) -> Mapping[str, Pod]:
        """Return the watched unbound pods of a pod's group, by UID."""
        return self._waiting.get(_group(pod), {})

    def seen(self, pod: Pod) -> None:
        """Store an unbound pod from the watch."""
        if pod.group:
            self._waiting.setdefault(_group(pod), {})[pod.uid] = pod

    def attempt(self, pod: Pod, now: float) -> Attempt:
        """Return the attempt that a Filter call for a pod belongs to.

        A pod that was already answered in the last attempt begins another one (`Attempt.next`).

        Args:
            pod: a pod of a group.
            now: unix seconds.
        """
        last = self._attempts.get(_group(pod))
        if last is None or last.is_before(now):
            return Attempt()
        return last.next(pod.uid, now) if last.has(pod.uid) else last

    def answered(self, pod: Pod, node: str, seats: Iterable[Reservation], now: float) -> None:
        """Count a pod of a group as going to a node.

        Args:
            node: the only node in its answer; empty if no node in its answer is guarded.
            seats: its seats there.
            now: unix seconds.
        """
        attempt = self.attempt(pod, now)
        self._attempts.pop(_group(pod), None)
        self._attempts[_group(pod)] = attempt
        attempt.put(pod, node, seats, now)
        while self._attempts[oldest := next(iter(self._attempts))].is_before(now):
            del self._attempts[oldest]

    def drop(self, pod: Pod) -> None:
        """Stop counting a pod that is being bound, or is gone."""
        if not pod.group:
            return
        if attempt := self._attempts.get(_group(pod)):
            attempt.drop(pod.uid)
        if waiting := self._waiting.get(_group(pod)):
            waiting.pop(pod.uid, None)
            if not waiting:
                del self._waiting[_group(pod)]


def _group(pod: Pod) -> tuple[str, str]:
    return pod.name.namespace, pod.group
