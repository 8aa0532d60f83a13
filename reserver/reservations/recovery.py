"""Claims from before the start, of pods that may be gone.

A claim that was written down is certainly of what stands in the store only if that was written
before it (docs/adr/0011). Until that is known the claim is unsure, and its slot holds.
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
    """The facts known from before this process started."""

    def __init__(
        self,
        register: ReservationIndex,
        claims: Claims,
        settle: Callable[[Account], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin with nothing known.

        Args:
            register: of the reservations.
            claims: of pods that are there.
            settle: called with what has changed.
            ended: called once no more of the past will become known.
        """
        self._register = register
        self._claims = claims
        self._settle = settle
        self._ended = ended
        self._unsure: set[Ref] = set()
        self._is_over = False

    def recall(
        self,
        ref: Ref,
        digest: str,
        claims: Mapping[str, int],
        landed: Mapping[str, str] = MappingProxyType({}),
        seen: int = 0,
    ) -> None:
        """Take the recorded claims of a reservation; their pods may be gone by now.

        Where it is not certain that they are of what stands there, they count if `narrow` says so.

        Args:
            digest: of the reservation that stood there.
            claims: UIDs of pods, each with a resourceVersion at which it had a slot. What was
                written after that is another reservation, even if it says the same.
            landed: where they had it, as far as that is known.
            seen: a resourceVersion at which all of them were known to be of what stood there.
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
        """Take those unsure claims of an entry that have become sure."""
        if account.recall(entry):
            self._settle(account)
        if self._is_over:
            entry.unsure = NO_UNSURE
        elif entry.unsure:
            self._unsure.add(entry.reservation.ref)

    def recall_binding(self, pod: Pod, *, exact: bool) -> bool:
        """Take a binding from before the watch of pods began; the pod may be gone by now.

        Returns whether it is sure which of the entries that it may have claimed are older.

        Args:
            pod: as it was shown bound.
            exact: its resourceVersion is that of the binding, not that of a later change.
        """
        named = self._register.naming(pod.name) if exact else ()
        once = (each for each in named if each.reservation.recurrence is None)
        claimed = (each for identity in pod.claims for each in self._register.meant(identity))
        is_sure = True
        for account in dict.fromkeys((*claimed, *once)):
            told = Recorded(pod.revision, pod.revision, pod.node, is_written=False)
            for entry in account.entries:
                is_known = account.claimant(pod.uid) in account.claimants
                if not is_known and self._claims.takes_slot(pod, account):
                    if not account.reservation.reusable:
                        entry.unsure = {pod.uid: told, **entry.unsure}
                        self._recall(account, entry)
                    is_sure &= not entry.written.first <= pod.revision < entry.written.last
        if exact:
            self._claims.bound(pod, is_over=True)  # It may be, as this is the past.
        return is_sure

    def narrow(self, ref: Ref, identity: str, written: Written) -> None:
        """Note more exactly when a reservation was written."""
        account = self._register.get(ref)
        if account is None or account.reservation.written_as != identity:
            return
        entry = account.entry(ref)
        before = entry.written
        after = Written(max(before.first, written.first), min(before.last, written.last))
        if before.first == before.last or after.first > after.last:
            return  # It has been written again since.
        # When it was placed somewhere is another matter.
        hold = account.hold_on(account.reservation.node)
        if hold is not None and hold.since == before and account.reservation.ref == ref:
            hold.since = after
        entry.written = after
        self._claims.give_slots(account, entry)
        account.recall(entry)
        self._settle(account)

    def unsure_since(self) -> int | None:
        """Return the first resourceVersion at which it matters when reservations were written.

        None if all recorded claims are known to be of what stands there, or not to be.
        """
        claims = (claim for _, entry in self._unsure_entries() for claim in entry.unsure.values())
        return min((claim.known_at for claim in claims), default=None)

    def end(self) -> None:
        """Drop the recorded claims that may be of an earlier reservation.

        From now on such claims are not taken any more: no more of the past will become known.
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
