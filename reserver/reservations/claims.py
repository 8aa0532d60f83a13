"""Claims as bound pods record them, and the pods' bindings.

Claims are kept apart from reservations, as either may be observed first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from reserver.base.fairness import FairMemory
from reserver.cluster.pod import Pod, PodName
from reserver.reservations.account import Account
from reserver.reservations.binding_outcomes import BindingOutcome
from reserver.reservations.digest import other_digests
from reserver.reservations.entry import UNSEEN, Claimed, Entry
from reserver.reservations.index import ReservationIndex

_REMEMBERED = 20_000
"""Most bindings that are remembered: a few minutes' worth, by which two watches may differ."""


class _Binding(NamedTuple):
    """The binding of a pod.

    Attributes:
        uid: the pod's UID.
        at: the resourceVersion at which it was bound.
        is_over: whether the pod has finished or is gone, or may be.
    """

    uid: str
    at: int
    is_over: bool


class Claims:
    """The claims of pods, by the identity of the reservation."""

    def __init__(self, register: ReservationIndex) -> None:
        """Begin without claims; `register` contains the reservations."""
        self._register = register
        self._pods: dict[str, dict[str, Pod]] = {}
        self._identities: dict[str, set[str]] = {}
        self._records: Counter[str] = Counter()
        self._since: dict[str, int] = {}
        self._unwritten: set[str] = set()
        self._bindings = FairMemory[PodName, _Binding](_REMEMBERED)

    def add(self, identity: str, pod: Pod, *, written: bool) -> None:
        """Record that a pod claimed a slot; a claim that is not `written` may be taken back."""
        if written:
            self._since.setdefault(pod.uid, pod.revision)
        else:
            self._unwritten.add(pod.uid)
        self._keep(identity, pod)

    def meaning(self, identity: str, pod: Pod) -> str:
        """Return the identity of the reservation that a claim means (`ReservationIndex.meant`).

        An entry that was written after the claim is another reservation.
        """
        account = next(iter(self._register.meant(identity)), None)
        if account is None:
            return identity
        entry = account.entries[0]
        is_another = entry.written.first > self._since.get(pod.uid, pod.revision)
        return identity if is_another else account.identity

    def adopted(self, entry: Entry) -> dict[str, str]:
        """Return the claims of a new entry that were observed under another identity.

        The result maps the pod's UID to that identity.
        """
        reservation, named = entry.reservation, {}
        may_be = reservation.record in self._records
        # Look up each name that claims may use: a record may have any number of names.
        for digest in other_digests(reservation) if may_be else ():
            other = f"{reservation.record}@{digest}"
            for uid in self._pods.get(other, ()):
                if self._since.get(uid, 0) >= entry.written.first:
                    named[uid] = other
        return named

    def adopt(self, named: Mapping[str, str], identity: str) -> None:
        """Move claims to another identity."""
        for uid, other in named.items():
            self._rename(uid, other, identity, keeps=False)

    def rename(self, before: str, after: str) -> None:
        """Move all claims of one identity to another identity of the same reservation."""
        if before == after:
            return
        keeps = self._register.of(before) is not None  # The reservation is still written elsewhere.
        for uid in tuple(self._pods.get(before, ())):
            self._rename(uid, before, after, keeps=keeps)

    def by_edition(self, account: Account) -> Mapping[str, frozenset[str]]:
        """Return the claims that name a reservation only by digests with its expiry, by UID.

        An older version wrote them. They count as long as the reservation has that expiry.
        """
        called: dict[str, frozenset[str]] = {}
        for uid, pod in self.of(account.identity).items() if account.reservation.lasting else ():
            record = f"{account.reservation.record}@"
            names = frozenset(each for each in pod.claims if each.startswith(record))
            if names and account.identity not in names:
                called[uid] = names
        return called

    def let_go(self, account: Account) -> list[str]:
        """Drop the claims that name a former expiry, as a restart would; return their UIDs."""
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
        """Return whether any pod with a slot exists and has not finished."""
        pods = self.of(account.identity)
        found = (pods[uid] for uid in account.claimants if uid in pods)
        return any(not pod.finished for pod in found)

    def give_slots(
        self, account: Account, entry: Entry, adopted: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Give slots to the owners that claimed one, or were bound after the entry was written.

        The result depends on the time of the entry's write, and on its place.
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
        # A recurring reservation takes only recorded claims: it is for pods bound while it held.
        for name in () if account.reservation.recurrence else account.reservation.owners:
            binding = self._bindings.get(name)
            if binding is None or binding.at <= entry.written.last:
                continue
            if account.reservation.reusable and binding.is_over:
                continue  # Its slot has come back.
            node = pods[binding.uid].node if binding.uid in pods else ""
            account.give(binding.uid, binding.at, node)

    def takes_slot(self, pod: Pod, account: Account) -> bool:
        """Return whether a pod that records a claim has a slot of the reservation.

        Any author of a pod can write its annotations. So the pod has to be an owner; a named pod
        ends the reservation wherever it lands, any other has one slot of one reservation, on its
        node.
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
        """Return the identities of the reservations that a pod claimed."""
        return frozenset(self._identities.get(pod_uid, ()))

    def are_written(self, pod_uids: Iterable[str]) -> bool:
        """Return whether the API server has the claims of each pod."""
        return self._unwritten.isdisjoint(pod_uids)

    def count_written(self, pod_uids: Mapping[str, object]) -> int:
        """Return the number of pods whose claims the API server has."""
        return len(pod_uids) - len(pod_uids.keys() & self._unwritten)

    def in_flight(self, claimants: Mapping[str, Claimed]) -> Counter[str]:
        """Return the number of claims, by node, whose binding may still fail."""
        return Counter(claimants[uid].node for uid in claimants.keys() & self._unwritten)

    def outcomes(
        self, claimants: Mapping[str, Claimed], in_flight: Counter[str]
    ) -> list[BindingOutcome]:
        """Return the outcomes of the bindings in flight (`in_flight`): one if there is none."""
        outcomes = [BindingOutcome([claim.node for claim in claimants.values()], Counter())]
        if in_flight:
            written = ((uid, claim.node) for uid, claim in claimants.items())
            left = [node for uid, node in written if uid not in self._unwritten]
            outcomes.append(BindingOutcome(left, in_flight))
        return outcomes

    def written(self, pod_uid: str) -> bool:
        """Mark a pod's claims as written; return whether they were not before."""
        is_new = pod_uid in self._unwritten
        self._unwritten.discard(pod_uid)
        return is_new

    def forget(self, pod_uid: str) -> frozenset[str]:
        """Drop a pod as evidence of claims; return the identities that it claimed."""
        self._unwritten.discard(pod_uid)
        self._since.pop(pod_uid, None)
        identities = self._identities.pop(pod_uid, set())
        for identity in identities:
            self._drop(pod_uid, identity)
        return frozenset(identities)

    def bound(self, pod: Pod, *, is_over: bool = False) -> None:
        """Remember the resourceVersion of a pod's binding."""
        before = self._bindings.get(pod.name)
        if not pod.is_mirror and (before is None or before.at < pod.revision):
            self._bindings.put(
                pod.name.namespace, pod.name, _Binding(pod.uid, pod.revision, is_over)
            )

    def over(self, pod: Pod) -> None:
        """Mark the binding and the claims of a pod that has finished or is gone."""
        for identity in self.by(pod.uid):
            known = self._pods[identity][pod.uid]
            self._pods[identity][pod.uid] = replace(pod, node=pod.node or known.node)
        binding = self._bindings.get(pod.name)
        if binding is not None and binding.uid == pod.uid:
            self._bindings.put(pod.name.namespace, pod.name, binding._replace(is_over=True))
