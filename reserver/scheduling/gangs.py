"""PodGroups: what Filter has answered for members that are not bound yet.

kube-scheduler asks for the pods of a group one after the other, and binds them together once all
have a node (schedule_one_podgroup.go). It counts those before on their nodes, but knows nothing of
holds. So where capacity is held Filter answers one node only, remembers it, and counts the pod
there against those of its group that come after it (docs/adr/0053-gangs-counted.md).
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
"""How long after an answer the next pod of its group may belong to another attempt, in seconds: all
calls of one attempt follow each other."""


PAUSE_S = 0.5
"""So long nobody of a group is answered between two attempts, in seconds, unless kube-scheduler has
nothing else to do: then it tries again at once."""


class _Place(NamedTuple):
    """Where a pod goes: its slots there, and what it takes beside them."""

    node: str
    slots: tuple[Slot, ...]
    beside: Mapping[str, int]


class Attempt:
    """The pods of a group that kube-scheduler has chosen nodes for in one attempt.

    Attributes:
        spent: how many slots they take, by reservation and node.
        taken: what they take beside their slots, by node and resource.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.spent: Counter[Slot] = Counter()
        self.taken: dict[str, Counter[str]] = {}
        self._places: dict[str, _Place | None] = {}
        self._answered_at: dict[str, float] = {}
        self._last = 0.0

    def is_before(self, now: float) -> bool:
        """Return whether its last call is too long ago for another one at `now` (unix seconds)."""
        return abs(now - self._last) >= ATTEMPT_S

    def has(self, pod_uid: str) -> bool:
        """Return whether a pod was answered; each is once."""
        return pod_uid in self._places

    def put(self, pod: Pod, node: str, seats: Iterable[Reservation], now: float) -> None:
        """Count a pod that was answered at `now`; `node` is empty where nothing is held."""
        place = None
        if node:
            seats = tuple(seats)
            slot = total(seat.resources for seat in seats)
            beside = {name: n - slot.get(name, 0) for name, n in pod.requests.items()}
            more = {name: n for name, n in beside.items() if n > 0}
            place = _Place(node, tuple((seat.identity, node) for seat in seats), more)
        self._put(pod.uid, place, now)

    def _put(self, pod_uid: str, place: _Place | None, at: float) -> None:
        self._last = self._answered_at[pod_uid] = at
        self._places[pod_uid] = place
        if place is not None:
            self.spent.update(place.slots)
            self.taken.setdefault(place.node, Counter()).update(place.beside)

    def next(self, pod_uid: str, now: float) -> Attempt:
        """Return the attempt that asks for a pod again at `now` (unix seconds).

        It may have begun with others: if kube-scheduler has paused since the pod was answered, with
        those that were answered after the pause.
        """
        uids = list(self._places)
        since = uids[uids.index(pod_uid) :]
        moments = [*(self._answered_at[uid] for uid in since), now]
        pauses = (after - before for before, after in pairwise(moments))
        began = [index for index, pause in enumerate(pauses, start=1) if pause >= PAUSE_S]
        attempt = Attempt()
        for uid in since[began[-1] :] if began else ():
            attempt._put(uid, self._places[uid], self._answered_at[uid])
        return attempt

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield the UIDs of the pods that go where something is held, and where; the last first."""
        for uid, place in reversed(self._places.items()):
            if place is not None:
                yield uid, place.node

    def drop(self, pod_uid: str) -> None:
        """Stop counting a pod."""
        place = self._places.pop(pod_uid, None)
        self._answered_at.pop(pod_uid, None)
        if place is not None:
            self.spent.subtract(place.slots)
            self.taken[place.node].subtract(place.beside)


NOBODY = Attempt()
"""That of a pod without a group; nobody is put into it."""


class Gangs:
    """The pods of each PodGroup that are not bound, and the last attempt to place them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: dict[tuple[str, str], dict[str, Pod]] = {}
        self._attempts: dict[tuple[str, str], Attempt] = {}

    def waiting(self, pod: Pod) -> Mapping[str, Pod]:
        """Return the pods of a pod's group that are not bound, by UID, as the watch shows them."""
        return self._waiting.get(_group(pod), {})

    def seen(self, pod: Pod) -> None:
        """Take a pod that is not bound, as the watch shows it."""
        if pod.group:
            self._waiting.setdefault(_group(pod), {})[pod.uid] = pod

    def attempt(self, pod: Pod, now: float) -> Attempt:
        """Return the attempt that a Filter call for a pod belongs to.

        It is another one if the pod was answered in the last one already (`Attempt.next`).

        Args:
            pod: of a group.
            now: unix seconds.
        """
        last = self._attempts.get(_group(pod))
        if last is None or last.is_before(now):
            return Attempt()
        return last.next(pod.uid, now) if last.has(pod.uid) else last

    def answered(self, pod: Pod, node: str, seats: Iterable[Reservation], now: float) -> None:
        """Count a pod of a group as going to a node.

        Args:
            node: the only node that it was answered; empty if none of those it was is guarded.
            seats: its own there.
            now: unix seconds.
        """
        attempt = self.attempt(pod, now)
        self._attempts.pop(_group(pod), None)
        self._attempts[_group(pod)] = attempt
        attempt.put(pod, node, seats, now)
        while self._attempts[oldest := next(iter(self._attempts))].is_before(now):
            del self._attempts[oldest]

    def drop(self, pod: Pod) -> None:
        """Stop counting a pod: it is being bound, or gone."""
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
