"""Claims as bound pods record them, and when the pods were bound.

It is kept apart from the reservations: either may become known first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from reserver.base.fairness import FairMemory
from reserver.cluster.pod import Pod, PodName
from reserver.reservations.account import Account
from reserver.reservations.digest import other_digests
from reserver.reservations.entry import UNSEEN, Entry
from reserver.reservations.index import ReservationIndex

_REMEMBERED = 20_000
"""How many bindings are remembered: those of the minutes by which two watches may differ."""


class _Binding(NamedTuple):
    """That a pod was bound.

    Attributes:
        uid: the pod's.
        at: the resourceVersion at which it was bound.
        is_over: it has finished or is gone since, or may be.
    """

    uid: str
    at: int
    is_over: bool


class Claims:
    """The claims of pods, by the identity of the reservation."""

    def __init__(self, register: ReservationIndex) -> None:
        """Begin without claims; `register` has the reservations."""
        self._register = register
        self._pods: dict[str, dict[str, Pod]] = {}
        self._identities: dict[str, set[str]] = {}
        self._records: Counter[str] = Counter()
        self._since: dict[str, int] = {}
        self._unwritten: set[str] = set()
        self._bindings = FairMemory[PodName, _Binding](_REMEMBERED)

    def add(self, identity: str, pod: Pod, *, written: bool) -> None:
        """Record that a pod claimed a slot; until that is written, it may be taken back."""
        if written:
            self._since.setdefault(pod.uid, pod.revision)
        else:
            self._unwritten.add(pod.uid)
        self._keep(identity, pod)

    def meaning(self, identity: str, pod: Pod) -> str:
        """Return the identity by which a claim is known here (`ReservationIndex.meant`).

        An entry that was written after the pod's claim is another reservation.
        """
        account = next(iter(self._register.meant(identity)), None)
        if account is None:
            return identity
        entry = account.entries[0]
        is_another = entry.written.first > self._since.get(pod.uid, pod.revision)
        return identity if is_another else account.identity

    def adopted(self, entry: Entry) -> dict[str, str]:
        """Return whose claims are of an entry that were written before it was known.

        By UID, with the identity by which they called it.
        """
        reservation, named = entry.reservation, {}
        may_be = reservation.record in self._records
        # By each name that claims may use: their writers decide how many one record has.
        for digest in other_digests(reservation) if may_be else ():
            other = f"{reservation.record}@{digest}"
            for uid in self._pods.get(other, ()):
                if self._since.get(uid, 0) >= entry.written.first:
                    named[uid] = other
        return named

    def adopt(self, named: Mapping[str, str], identity: str) -> None:
        """Record claims under another identity from now on."""
        for uid, other in named.items():
            self._rename(uid, other, identity, keeps=False)

    def rename(self, before: str, after: str) -> None:
        """Record all claims of one identity under another: it is the same reservation."""
        if before == after:
            return
        keeps = self._register.of(before) is not None  # It is still written elsewhere.
        for uid in tuple(self._pods.get(before, ())):
            self._rename(uid, before, after, keeps=keeps)

    def by_edition(self, account: Account) -> Mapping[str, frozenset[str]]:
        """Return the claims that call a reservation by its expiry alone, by UID, and how.

        An older version wrote them. They count as long as it expires at that moment.
        """
        called: dict[str, frozenset[str]] = {}
        for uid, pod in self.of(account.identity).items() if account.reservation.lasting else ():
            record = f"{account.reservation.record}@"
            names = frozenset(each for each in pod.claims if each.startswith(record))
            if names and account.identity not in names:
                called[uid] = names
        return called

    def let_go(self, account: Account) -> list[str]:
        """Let go of claims that call it by an expiry which it has no more, as a start would."""
        gone: list[str] = []
        for uid, names in self.by_edition(account).items():
            if not any(account in self._register.meant(each) for each in names):
                for each in names:
                    self._rename(uid, account.identity, each, keeps=True)
                self._identities[uid].discard(account.identity)
                self._drop(uid, account.identity)
                gone.append(uid)
        return gone

    def _rename(self, uid: str, before: str, after: str, *, keeps: bool) -> None:
        self._keep(after, self._pods[before][uid])
        if not keeps:
            self._identities[uid].discard(before)
            self._drop(uid, before)

    def _keep(self, identity: str, pod: Pod) -> None:
        if identity not in self._pods:
            self._records[identity.rpartition("@")[0]] += 1
        self._pods.setdefault(identity, {})[pod.uid] = pod
        self._identities.setdefault(pod.uid, set()).add(identity)

    def _drop(self, uid: str, identity: str) -> None:
        pods = self._pods[identity]
        del pods[uid]
        if not pods:
            del self._pods[identity]
            record = identity.rpartition("@")[0]
            self._records[record] -= 1
            if not self._records[record]:
                del self._records[record]

    def of(self, identity: str) -> Mapping[str, Pod]:
        """Return the pods that claimed a slot of a reservation, by UID."""
        return self._pods.get(identity, {})

    def is_used(self, account: Account) -> bool:
        """Return whether a pod that has a slot is there, and not over."""
        pods = self.of(account.identity)
        found = (pods[uid] for uid in account.claimants if uid in pods)
        return any(not pod.finished for pod in found)

    def give_slots(
        self, account: Account, entry: Entry, adopted: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Give slots to the owners that are known to have taken some, or to have been bound since.

        What is to be given may change with when an entry was written, and with where it is placed.
        """
        pods = self.of(account.identity)
        if adopted:
            pods = {**pods, **{uid: self._pods[other][uid] for uid, other in adopted.items()}}
        for uid, pod in pods.items():
            if account.has_seen(uid):
                continue
            if self.takes_slot(pod, account):
                written = self.are_written({uid})
                account.take(pod, pod.revision if written else UNSEEN, written=written)
        # What recurs has the pods that were bound while it held: these say so, or their record.
        for name in () if account.reservation.recurrence else account.reservation.owners:
            binding = self._bindings.get(name)
            if binding is None or binding.at <= entry.written.last:
                continue
            if account.reservation.reusable and binding.is_over:
                continue  # Its slot has come back.
            node = pods[binding.uid].node if binding.uid in pods else ""
            account.give(binding.uid, binding.at, node)

    def takes_slot(self, pod: Pod, account: Account) -> bool:
        """Return whether a pod that says it claimed a reservation has a slot of it.

        Whoever creates a pod can write on it what they like. So it has to be an owner; and unless
        it is named, which ends a reservation wherever it lands, it has one slot, where it is.
        """
        reservation = account.reservation
        if (reservation.reusable and pod.finished) or not self._register.owns(pod, account):
            return False
        if pod.name in reservation.owners or not pod.node:
            return True
        others = (pod.claims | self.by(pod.uid)) - {account.identity}
        return account.may_be_on(pod.node) and not any(
            other.claimant(pod.uid) in other.claimants and pod.name not in other.reservation.owners
            for other in map(self._register.of, others)
            if other is not None
        )

    def by(self, pod_uid: str) -> frozenset[str]:
        """Return the identities of what a pod claimed."""
        return frozenset(self._identities.get(pod_uid, ()))

    def are_written(self, pod_uids: Iterable[str]) -> bool:
        """Return whether the API server has the claims of each of the pods."""
        return self._unwritten.isdisjoint(pod_uids)

    def count_written(self, pod_uids: Mapping[str, object]) -> int:
        """Return how many of the pods have their claims in the API server."""
        return len(pod_uids) - sum(uid in pod_uids for uid in self._unwritten)

    def written(self, pod_uid: str) -> bool:
        """Note that the API server has a pod's claims; return whether that is new."""
        is_news = pod_uid in self._unwritten
        self._unwritten.discard(pod_uid)
        return is_news

    def forget(self, pod_uid: str) -> frozenset[str]:
        """Drop the evidence that a pod gives; return what it claimed."""
        self._unwritten.discard(pod_uid)
        self._since.pop(pod_uid, None)
        identities = self._identities.pop(pod_uid, set())
        for identity in identities:
            self._drop(pod_uid, identity)
        return frozenset(identities)

    def bound(self, pod: Pod, *, is_over: bool = False) -> None:
        """Remember at which resourceVersion a pod was bound, also when it is over."""
        before = self._bindings.get(pod.name)
        if not pod.is_mirror and (before is None or before.at < pod.revision):
            self._bindings.put(
                pod.name.namespace, pod.name, _Binding(pod.uid, pod.revision, is_over)
            )

    def over(self, pod: Pod) -> None:
        """Note that a pod has finished or is gone."""
        binding = self._bindings.get(pod.name)
        if binding is not None and binding.uid == pod.uid:
            self._bindings.put(pod.name.namespace, pod.name, binding._replace(is_over=True))
