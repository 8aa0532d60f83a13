"""Claims from before the start of the process, of pods that may be gone.

A recorded claim certainly belongs to the present entry only if the entry was written before the
claim (docs/adr/0011). Until that is known, the claim is unsure, and its slot is still held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from reserver.cluster.pod import Pod
from reserver.reservations.account import Account
from reserver.reservations.claims import Claims
from reserver.reservations.digest import is_called
from reserver.reservations.entry import NO_UNSURE, Entry, Recorded
from reserver.reservations.index import ReservationIndex
from reserver.reservations.reservation import Ref, Written


class RecoveredClaims:
    """The recorded claims and bindings from before this process started.

    Attributes:
        from_history: refs of the entries with claims that only the watch history shows.
    """

    def __init__(
        self,
        register: ReservationIndex,
        claims: Claims,
        settle: Callable[[Account], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin without recorded claims.

        Args:
            register: the reservations.
            claims: the claims of existing pods.
            settle: called with each changed account.
            ended: called once all facts from before the start are known.
        """
        self._register = register
        self._claims = claims
        self._settle = settle
        self._ended = ended
        self._unsure: set[Ref] = set()
        self._is_over = False
        self.from_history: list[Ref] = []

    def recall(
        self,
        ref: Ref,
        digest: str,
        claims: Mapping[str, int],
        landed: Mapping[str, str] = MappingProxyType({}),
        seen: int = 0,
    ) -> None:
        """Restore the recorded claims of a reservation; their pods may be gone by now.

        Claims that may belong to an earlier entry of the ref wait for `narrow`.

        Args:
            digest: the digest of the reservation at the record's time.
            claims: the pods' UIDs, each with a resourceVersion at which the pod had a slot. An
                entry that was written after it is another reservation, even with the same content.
            landed: the nodes of the claims, by UID, where known.
            seen: a resourceVersion at which all claims belonged to the entry at that time.
        """
        account = self._register.get(ref)
        if account is None or account.reservation.reusable:
            return
        entry = account.entry(ref)
        if not is_called(entry.reservation, digest):
            return
        recorded = {
            uid: Recorded(at, max(at, seen), landed.get(uid, "")) for uid, at in claims.items()
        }
        if recorded:
            entry.unsure = {**entry.unsure, **recorded}
        self._recall(account, entry)

    def _recall(self, account: Account, entry: Entry) -> None:
        """Take the claims of an entry that are sure by now."""
        if account.recall(entry):
            self._settle(account)
        if self._is_over:
            entry.unsure = NO_UNSURE
        elif entry.unsure:
            self._unsure.add(entry.reservation.ref)

    def recall_binding(self, pod: Pod, *, exact: bool) -> bool:
        """Restore a binding from before the watch of pods began; the pod may be gone by now.

        Return whether it is certain which of its possible entries are older than the binding.

        Args:
            pod: the bound pod.
            exact: its resourceVersion is the binding's own, not a later change's.
        """
        named = self._register.naming(pod.name) if exact else ()
        once = (each for each in named if each.reservation.recurrence is None)
        claimed = (each for identity in pod.claims for each in self._register.meant(identity))
        is_sure = True
        for account in dict.fromkeys((*claimed, *once)):
            recorded = Recorded(pod.revision, pod.revision, pod.node, is_written=False)
            for entry in account.entries:
                is_known = account.claimant(pod.uid) in account.claimants
                if not is_known and self._claims.takes_slot(pod, account):
                    if not account.reservation.reusable:
                        entry.unsure = {pod.uid: recorded, **entry.unsure}
                        self._recall(account, entry)
                        self.from_history.append(entry.reservation.ref)
                    is_sure &= not entry.written.first <= pod.revision < entry.written.last
        if exact:
            self._claims.bound(pod, is_over=True)  # The pod may be gone by now.
        return is_sure

    def narrow(self, ref: Ref, identity: str, written: Written) -> None:
        """Narrow the resourceVersions between which a reservation was written."""
        account = self._register.get(ref)
        if account is None or account.reservation.written_as != identity:
            return
        entry = account.entry(ref)
        before = entry.written
        after = Written(max(before.first, written.first), min(before.last, written.last))
        if before.first == before.last or after.first > after.last:
            return  # It has been written again since.
        # Only a hold on a named node has the write's turn; a placed hold has its own.
        hold = account.hold_on(account.reservation.node)
        if hold is not None and hold.since == before and account.reservation.ref == ref:
            hold.since = after
        entry.written = after
        self._claims.give_slots(account, entry)
        account.recall(entry)
        self._settle(account)

    def unsure_since(self) -> int | None:
        """Return the least resourceVersion of all unsure claims; None if all claims are sure.

        From it on the time of an entry's write decides whether the claim belongs to the entry.
        """
        claims = (claim for _, entry in self._unsure_entries() for claim in entry.unsure.values())
        return min((claim.known_at for claim in claims), default=None)

    def end(self) -> None:
        """Drop the recorded claims that may belong to an earlier reservation.

        Later unsure claims are dropped too: no more facts from before the start will arrive.
        """
        self._is_over = True
        for account, entry in self._unsure_entries():
            entry.unsure = NO_UNSURE
            self._settle(account)
        self._unsure.clear()
        self._ended()

    def _unsure_entries(self) -> list[tuple[Account, Entry]]:
        accounts = ((ref, self._register.get(ref)) for ref in self._unsure)
        found = [(account, account.entry(ref)) for ref, account in accounts if account]
        return [(account, entry) for account, entry in found if entry.unsure]
