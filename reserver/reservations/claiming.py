"""Claiming: pods take slots when bound, and give reusable slots back when gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain, islice

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import times, total
from reserver.reservations.account import Account
from reserver.reservations.digest import is_called
from reserver.reservations.entry import UNSEEN, Peak, ended_claim
from reserver.reservations.lifecycle import Lifecycle
from reserver.reservations.node_holds import Hold
from reserver.reservations.placement import claimed_slots
from reserver.reservations.reservation import ANY_TIME, Ref, Reservation
from reserver.reservations.reservation_view import OVER

_MOST_KEPT = 10
"""Most pods of a peak that the history names."""

_MOST_OWN = 20_000
"""Most slots that count as the own ones of a node's borrowers; the other slots count as borrowed.
More are more pods than a node runs, each with many reservations, and would hold the event loop."""


class Claiming(Lifecycle):
    """A ledger in which pods claim the slots of reservations."""

    def claim(self, identity: str, pod: Pod, *, written: bool = True) -> None:
        """Record that a pod claimed a slot, even of a reservation that is not in the ledger yet.

        Whether the claim takes a slot, `Claims.takes_slot` decides. A claim that is not written may
        be taken back, and ends no hold elsewhere.
        """
        identity = self._claims.meaning(identity, pod)
        self._claims.add(identity, pod, written=written)
        account = self._register.of(identity)
        if account is None:
            return
        if self._claims.takes_slot(pod, account):
            if account.take(pod, pod.revision if written else UNSEEN, written=written):
                self._settle_claim(account, pod.node)
                if pod.constraints.tolerates_recall:
                    self._snapshot.recount_borrowed(pod.node)
        elif account.reservation.reusable and self._give_back(account, pod.uid):
            self._settle(account)

    def bound(self, pod: Pod, *, exact: bool, after: int = 0) -> None:
        """Handle a new binding: it ends the reservations that name the pod, if written before it.

        Mirror pods are skipped: kubelets choose their names, and their node is fixed anyway.

        Args:
            pod: the bound pod; a reservation that may be newer than its binding may be for another
                pod of that name, or for a move.
            exact: the revision is the binding's own resourceVersion, not a later change's.
            after: if not exact, a resourceVersion at which the pod was not bound yet.
        """
        if pod.is_mirror:
            return
        latest = pod.revision if exact else after
        for account in self._register.naming(pod.name):
            written = min(entry.written for entry in account.entries)
            is_before = written == ANY_TIME or written.last <= latest
            if account.reservation.recurrence is not None:  # It may be for an earlier one.
                is_before = exact and account.reservation.is_for(self._now)
            if self._phase(account) not in OVER and is_before:
                self.claim(account.identity, pod)
        if exact:
            self._claims.bound(pod)

    def written(self, pod_uid: str) -> None:
        """Make a pod's claims final: the API server has them."""
        if not self._claims.written(pod_uid):
            return
        with self._snapshot.borrowed_once():
            for identity in self._claims.by(pod_uid):
                account, pod = self._register.of(identity), self._claims.of(identity)[pod_uid]
                if account is not None:
                    if self._claims.takes_slot(pod, account):
                        account.take(pod, UNSEEN, written=True)
                    self._settle_claim(account, pod.node)

    def was_idle(self, ref: Ref, digest: str, since: float) -> None:
        """Restore the recorded start of a reservation's idle time, in unix seconds.

        The later moment counts: the process that wrote it saw the reservation in use last.
        """
        account = self._register.get(ref)
        if account is None or not is_called(account.entry(ref).reservation, digest):
            return
        if not self._knows_claims:
            self._recorded_idle[account.identity] = since
        elif 0 < account.idle_since < since:
            self._expect_idle(account, since)
            self._settle(account)

    def _know_claims(self) -> None:
        """Start idle times, as all claims from before the process's start are known."""
        self._knows_claims = True
        for account in self._register.accounts():
            if account.reservation.release_if_idle:
                account.idle_since = self._recorded_idle.get(account.identity, 0.0)
                self._anew.append(account)
        self._recorded_idle.clear()

    def unclaim(self, pod_uid: str) -> None:
        """Take back a pod's claims after its binding failed."""
        if not (claimed := self._claims.forget(pod_uid)):
            return
        with self._snapshot.borrowed_once():
            for account in self._accounts(claimed):
                claim = account.claimants.get(pod_uid)
                account.release(pod_uid)
                self._settle(account)
                if claim is not None:  # Its slot may be that of a borrower by now.
                    self._snapshot.recount_borrowed(claim.node)

    def pod_over(self, pod: Pod) -> None:
        """Take back the reusable slots of a pod that has finished or is gone.

        Other slots stay taken as long as their reservations are written.
        """
        self._claims.over(pod)
        named, claimed = self._register.naming(pod.name), self._accounts(self._claims.by(pod.uid))
        is_guest = pod.node in self._snapshot.whole_nodes  # The pod may own a node without a claim.
        holding = self.holding_on(pod.node) if is_guest else ()
        here = (self._register[each.ref] for each in holding)
        with self._snapshot.borrowed_once():
            for account in dict.fromkeys((*named, *claimed, *here)):
                comes_back = account.reservation.reusable and self._give_back(account, pod.uid)
                if comes_back or account.reservation.release_if_idle:
                    self._settle(account)
                if comes_back:
                    self._snapshot.recount_borrowed(pod.node)

    def _give_back(self, account: Account, pod_uid: str) -> bool:
        """Take a slot back from a pod, recording the peak; return whether the pod had one."""
        claimants = account.claimants
        if pod_uid in claimants and len(claimants) > account.peak.pods:
            pods, is_whole = self._claims.of(account.identity), account.reservation.is_whole
            slots = claimed_slots([each.node for each in claimants.values()], is_whole=is_whole)
            some = tuple(ended_claim(uid, pods.get(uid)) for uid in islice(claimants, _MOST_KEPT))
            account.peak = Peak(len(claimants), slots, some)
        return account.release(pod_uid)

    def pod_gone(self, pod: Pod) -> None:
        """Take back the reusable slots of a deleted pod, and drop it as evidence of its claims."""
        with self._snapshot.borrowed_once():
            self.pod_over(pod)
            for account in self._accounts(self._claims.forget(pod.uid)):
                self._settle(account)

    def regained(
        self, gone: Mapping[str, Collection[str]], pod: Pod
    ) -> dict[str, Mapping[str, int]]:
        """Return the amounts that others' reservations hold again once pods are gone, by node.

        Args:
            gone: the UIDs of the pods that are gone by then, by node.
            pod: the pod that comes there; its own reservations, and holds that it may take or
                borrow, are left out.
        """
        found = {node: self.coming_back(node, uids) for node, uids in gone.items()}
        own = self.owned_by(pod) if any(found.values()) else frozenset[Ref]()
        return {
            node: total(
                times(each.resources, slots)
                for each, slots in regained
                if not (each.ref in own or each.yields_to(pod.priority) or each.lends_to(pod))
            )
            for node, regained in found.items()
            if regained
        }

    def coming_back(self, node: str, gone: Collection[str]) -> list[tuple[Reservation, int]]:
        """Return the reservations that regain slots on a node once pods are gone, and how many.

        A slot that does not come back is regained as long as the pod's binding may fail.
        """
        claimed = (self._register.of(each) for uid in gone for each in self._claims.by(uid))
        accounts = dict.fromkeys(filter(None, claimed))
        holds = ((each, each.hold_on(node)) for each in accounts)
        unsure = [uid for uid in gone if not self._claims.are_written((uid,))]
        return [
            (hold.reservation, slots)
            for account, hold in holds
            if hold is not None
            and (uids := gone if self._comes_back(account) else unsure)
            and (slots := _coming_back(account, hold, uids))
        ]

    def claims_lost_by_extension(self, ref: Ref) -> int:
        """Return the number of claims that a change of the expiry ends although their pods go on.

        These are all claims; of a reusable reservation, only claims that an older version wrote.
        """
        account = self._register.get(ref)
        if account is None or account.reservation.is_whole:
            return 0
        by_edition = self._claims.by_edition(account)
        return len(by_edition) if account.reservation.lasting else self.claimed(ref)

    def _own_slots(self, node: str, pods: Mapping[str, Pod]) -> dict[str, dict[str, int]]:
        """Return by UID what pods on a node have in slots that are held again once they are gone.

        Of pods that say they claimed more slots than there are the first ones have them.
        """
        found: dict[str, dict[str, int]] = {}
        claims = frozenset().union(*(self._claims.by(uid) for uid in pods))
        named = chain.from_iterable(self._register.naming(pod.name) for pod in pods.values())
        accounts = dict.fromkeys((*self._accounts(sorted(claims)), *named))
        slots = ((uid, each) for each in accounts for uid in self._having(each, node, pods))
        for uid, account in islice(slots, _MOST_OWN):
            own = found.setdefault(uid, {})
            for name, amount in account.reservation.resources.items():
                own[name] = own.get(name, 0) + amount
        return found

    def _having(self, account: Account, node: str, pods: Mapping[str, Pod]) -> Iterable[str]:
        """Return the UIDs of the pods with a slot on a node that is held again once they go."""
        hold, claimants = account.hold_on(node), account.claimants
        # A reservation that is being removed returns nothing any more.
        if hold is None or not (hold.returning and self._comes_back(account)):
            return ()
        slots = hold.reservation.slots
        if len(claimants) <= slots:
            return pods.keys() & claimants.keys()
        there = (uid for uid, claim in claimants.items() if uid in pods or claim.node == node)
        return pods.keys() & islice(there, slots)

    def _accounts(self, identities: Iterable[str]) -> list[Account]:
        return list(filter(None, map(self._register.of, identities)))


def _coming_back(account: Account, hold: Hold, gone: Collection[str]) -> int:
    """Return the number of slots that a reservation may regain on a node once pods are gone.

    With refill it may have them elsewhere by then, so that evictions may free no room.
    """
    claims, node = account.claimants, hold.reservation.node
    there = sum(uid in claims and claims[uid].node == node for uid in set(gone))
    return min(there, hold.reservation.slots - hold.slots)
