"""The held slots, and the slots that are held again once pods go or bindings fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial

from reserver.cluster.pod import Pod
from reserver.cluster.quantity import times, total
from reserver.reservations.account import Account
from reserver.reservations.binding_outcomes import BindingOutcome, slots_to_hold
from reserver.reservations.enums import Phase
from reserver.reservations.leaving import still_held, unwritten
from reserver.reservations.node_holds import NOTHING, Hold
from reserver.reservations.reservation import Ref, Reservation
from reserver.reservations.view import LedgerView


class HeldSlots(LedgerView):
    """A ledger that holds the slots of its reservations."""

    def _hold_unclaimed(self, account: Account) -> None:
        """Hold the unclaimed slots of a reservation, for each outcome of its bindings in flight."""
        left = account.left() if self._is_active(account) else ({}, 0)
        unsure = self._claims.in_flight(account.claimants)
        outcomes = self._outcomes(account, unsure) if unsure or account.leaving else []
        free = slots_to_hold(account.reservation, outcomes) if unsure else left
        account.holds_more = free != left
        hold_slots = partial(self._hold_slots, account, unsure)
        comes_back = self._comes_back(account)
        for hold in account.holds:
            hold_slots(hold, free[0].get(hold.reservation.node, 0), comes_back=comes_back)
        if account.leaving:
            written = unwritten(account.entries)
            for hold, slots in still_held(account.leaving, written, outcomes, free):
                hold_slots(hold, slots, comes_back=False)
            account.leaving = account.leaving if written else ()

    def _outcomes(self, account: Account, in_flight: Counter[str]) -> list[BindingOutcome]:
        """Return the outcomes of the bindings in flight in which a reservation holds."""
        if not (self._is_admitted(account) and self._now < account.idle_until):
            return []
        return [
            each
            for each in self._claims.outcomes(account.claimants, in_flight)
            if account.reservation.phase(len(each.claimed_on), self._now) is Phase.ACTIVE
        ]

    def _hold_slots(
        self, account: Account, unsure: Counter[str], hold: Hold, slots: int, *, comes_back: bool
    ) -> None:
        """Hold slots; the others hold again once their pods go, or their bindings fail."""
        reservation, number = hold.reservation, hold.reservation.slots - slots
        number = number if comes_back else min(number, unsure[reservation.node])
        number += slots if reservation.lends_below is not None else 0
        returning = times(reservation.resources, number) if number else NOTHING
        if slots != hold.slots or returning != hold.returning:
            amounts = times(reservation.resources, slots) if slots else NOTHING
            self._holdings.hold(hold, account.claimants.keys(), amounts, returning)
            hold.slots = slots

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


def _coming_back(account: Account, hold: Hold, gone: Collection[str]) -> int:
    """Return the number of slots that a reservation may regain on a node once pods are gone.

    With refill it may have them elsewhere by then, so that evictions may free no room.
    """
    claims, node = account.claimants, hold.reservation.node
    there = sum(uid in claims and claims[uid].node == node for uid in set(gone))
    return min(there, hold.reservation.slots - hold.slots)
