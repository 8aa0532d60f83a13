"""The evidence of claims: what bound pods say they took, and when pods were bound.

It is kept apart from the reservations, because either may become known first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachetools import LRUCache

from reserver.cluster.pod import Pod, PodName
from reserver.reservations.entry import UNSEEN
from reserver.reservations.reservation import Reservation, Written

_REMEMBERED = 20_000
"""So many bindings are remembered: those of the minutes that a watch may be behind another one."""


class Claims:
    """Who took slots of which reservation, by the identity under which that is recorded."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, Pod]] = {}
        self._identities: dict[str, set[str]] = {}
        self._unwritten: set[str] = set()
        self._bindings: LRUCache[PodName, tuple[str, int]] = LRUCache(_REMEMBERED)

    def add(self, identity: str, pod: Pod, *, written: bool) -> None:
        """Record that a pod took a slot; one that is not written yet may be taken back."""
        if not written:
            self._unwritten.add(pod.uid)
        self._pods.setdefault(identity, {})[pod.uid] = pod
        self._identities.setdefault(pod.uid, set()).add(identity)

    def of(self, identity: str) -> Mapping[str, Pod]:
        """Return the pods that took a slot of a reservation, by UID."""
        return self._pods.get(identity, {})

    def claimants(self, reservation: Reservation, written: Written) -> dict[str, int]:
        """Return the owners that are known to have taken a slot, as an `Entry` has them."""
        claimants = {
            pod.uid: pod.revision if self.are_written({pod.uid}) else UNSEEN
            for pod in self.of(reservation.identity).values()
            if takes_slot(pod, reservation)
        }
        bound = (self.bound_after(pod, written.last) for pod in reservation.owners)
        return claimants | dict(filter(None, bound))

    def by(self, pod_uid: str) -> frozenset[str]:
        """Return the identities of what a pod took."""
        return frozenset(self._identities.get(pod_uid, ()))

    def are_written(self, pod_uids: Iterable[str]) -> bool:
        """Return whether the API server has what each of the pods took."""
        return self._unwritten.isdisjoint(pod_uids)

    def count_written(self, pod_uids: Mapping[str, object]) -> int:
        """Return of how many of the pods the API server has what they took."""
        return len(pod_uids) - sum(uid in pod_uids for uid in self._unwritten)

    def written(self, pod_uid: str) -> bool:
        """Take note that the API server has what a pod took; return whether that is news."""
        is_news = pod_uid in self._unwritten
        self._unwritten.discard(pod_uid)
        return is_news

    def forget(self, pod_uid: str) -> frozenset[str]:
        """Drop the evidence that a pod gives; return what it took."""
        self._unwritten.discard(pod_uid)
        identities = self._identities.pop(pod_uid, set())
        for identity in identities:
            pods = self._pods[identity]
            del pods[pod_uid]
            if not pods:
                del self._pods[identity]
        return frozenset(identities)

    def bound(self, pod: Pod) -> None:
        """Remember at which resourceVersion a pod was bound, also when it is gone."""
        if self._bindings.get(pod.name, ("", 0))[1] < pod.revision:
            self._bindings[pod.name] = (pod.uid, pod.revision)

    def bound_after(self, pod: PodName, revision: float) -> tuple[str, int] | None:
        """Return UID and resourceVersion of the binding of a pod, if it is a later one."""
        uid, at = self._bindings.get(pod, ("", 0))
        return (uid, at) if at > revision else None


def takes_slot(pod: Pod, reservation: Reservation) -> bool:
    """Return whether a pod that says it claimed a reservation has a slot of it."""
    return reservation.is_owned_by(pod) and not (reservation.reusable and pod.finished)
