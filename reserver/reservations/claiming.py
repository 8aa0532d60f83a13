"""Claiming: pods take slots when they are bound, and give some back when they are gone."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from reserver.cluster.pod import Pod
from reserver.reservations.account import Account
from reserver.reservations.entry import UNSEEN, Peak, ended_claim
from reserver.reservations.lifecycle import Lifecycle
from reserver.reservations.placement import claimed_slots
from reserver.reservations.reservation import ANY_TIME, Ref
from reserver.reservations.reservation_view import OVER

_MOST_KEPT = 10
"""So many pods that gave their slots back are named in the history."""


class Claiming(Lifecycle):
    """A ledger in which pods claim the slots of reservations."""

    def claim(self, identity: str, pod: Pod, *, written: bool = True) -> None:
        """Record that a pod claimed a slot, even of a reservation that is not known (yet).

        What a pod says it claimed counts as `Claims.takes_slot` has it. One that is not written yet
        may be taken back, and ends nothing that is held elsewhere.
        """
        identity = self._claims.meaning(identity, pod)
        self._claims.add(identity, pod, written=written)
        account = self._register.of(identity)
        if account is None:
            return
        if self._claims.takes_slot(pod, account):
            if account.take(pod, pod.revision if written else UNSEEN, written=written):
                self._settle_claim(account, pod.node)
        elif account.reservation.reusable and self._give_back(account, pod.uid):
            self._settle(account)

    def bound(self, pod: Pod, *, exact: bool) -> None:
        """Note that somebody just bound a pod: that ends what names it, if it was there before.

        A mirror pod is passed over: kubelets choose its name, and its node is theirs anyway.

        Args:
            pod: as it is shown bound; what may have been written after its revision may be for
                another pod of that name, or for a move.
            exact: that is the binding's own resourceVersion, not that of a later change of the pod.
        """
        if pod.is_mirror:
            return
        for account in self._register.naming(pod.name):
            written = min(entry.written for entry in account.entries)
            is_before = written == ANY_TIME or written.last <= pod.revision
            if account.reservation.recurrence is not None:  # Else it came for an earlier one.
                is_before = exact and account.reservation.is_for(self._now)
            if self._phase(account) not in OVER and is_before:
                self.claim(account.identity, pod)
        if exact:
            self._claims.bound(pod)

    def written(self, pod_uid: str) -> None:
        """Note that the API server has a pod's claims, which are now final."""
        if not self._claims.written(pod_uid):
            return
        for identity in self._claims.by(pod_uid):
            account, pod = self._register.of(identity), self._claims.of(identity)[pod_uid]
            if account is not None:
                if self._claims.takes_slot(pod, account):
                    account.take(pod, UNSEEN, written=True)
                self._settle_claim(account, pod.node)

    def unclaim(self, pod_uid: str) -> None:
        """Take back a pod's claims: its binding failed."""
        for account in self._accounts(self._claims.forget(pod_uid)):
            account.release(pod_uid)
            self._settle(account)

    def pod_over(self, pod: Pod) -> None:
        """Note that a pod has finished or is gone: its slots of what is reusable come back.

        What it took of others stays taken as long as they are written.
        """
        self._claims.over(pod)
        named, claimed = self._register.naming(pod.name), self._accounts(self._claims.by(pod.uid))
        is_guest = pod.node in self._snapshot.whole_nodes  # Perhaps an owner, also without a claim.
        holding = self.holding_on(pod.node) if is_guest else ()
        here = (self._register[each.ref] for each in holding)
        for account in dict.fromkeys((*named, *claimed, *here)):
            comes_back = account.reservation.reusable and self._give_back(account, pod.uid)
            if comes_back or account.reservation.release_if_idle:
                self._settle(account)

    def _give_back(self, account: Account, pod_uid: str) -> bool:
        """Take a slot back from a pod; return whether it had one. Else nobody would know later."""
        claimants = account.claimants
        if pod_uid in claimants and len(claimants) > account.peak.pods:
            pods, is_whole = self._claims.of(account.identity), account.reservation.is_whole
            slots = claimed_slots([each.node for each in claimants.values()], is_whole=is_whole)
            some = tuple(ended_claim(uid, pods.get(uid)) for uid in islice(claimants, _MOST_KEPT))
            account.peak = Peak(len(claimants), slots, some)
        return account.release(pod_uid)

    def pod_gone(self, pod: Pod) -> None:
        """Note that a pod is gone, and no longer evidence of its claims."""
        self.pod_over(pod)
        for account in self._accounts(self._claims.forget(pod.uid)):
            self._settle(account)

    def claims_lost_by_extension(self, ref: Ref) -> int:
        """Return how many claims end, though their pods go on, if it expires at another moment.

        Those are all, but of what is reusable: there an older version has written them.
        """
        account = self._register.get(ref)
        if account is None or account.reservation.is_whole:
            return 0
        by_edition = self._claims.by_edition(account)
        return len(by_edition) if account.reservation.lasting else self.claimed(ref)

    def _accounts(self, identities: Iterable[str]) -> list[Account]:
        return list(filter(None, map(self._register.of, identities)))
