"""Queries of the ledger about one reservation: its entry, phase, place and claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping

from reserver.base.clock import Moment
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.account import Account
from reserver.reservations.claims import Claims
from reserver.reservations.entry import NO_PEAK, UNSEEN, Peak
from reserver.reservations.enums import Phase
from reserver.reservations.index import ReservationIndex, raising
from reserver.reservations.listener import Listener
from reserver.reservations.node_holds import NodeHolds
from reserver.reservations.owner import Succession
from reserver.reservations.placement import Parts, claimed_slots
from reserver.reservations.quotas import Quotas
from reserver.reservations.reservation import Ref, Reservation

OVER = (Phase.CLAIMED, Phase.EXPIRED)


class ReservationView:
    """The read-only view of each reservation in the ledger."""

    def __init__(
        self,
        snapshot: Snapshot,
        listener: Listener,
        quotas: Quotas | None = None,
        failed: Callable[[Ref, Exception], None] = raising,
    ) -> None:
        """Begin without reservations; for the arguments see `ledger.Ledger`."""
        self.quotas = quotas or Quotas()
        self._snapshot = snapshot
        self._holdings = NodeHolds(snapshot, listener, self.quotas)
        self.succession = Succession(snapshot)
        self._register = ReservationIndex(self.succession, failed)
        self._claims = Claims(self._register)
        self._now = Moment(0.0)

    def __iter__(self) -> Iterator[tuple[Reservation, Phase]]:
        """Yield every reservation with its phase, in the order of their arrival."""
        for ref, account in self._register:
            yield account.entry(ref).reservation, self._phase(account)

    def __len__(self) -> int:
        """Return the number of entries, ended ones included."""
        return len(self._register)

    def refs(self) -> tuple[Ref, ...]:
        """Return the current refs."""
        return self._register.refs()

    def get(self, ref: Ref) -> Reservation | None:
        """Return the reservation at a ref; None without one."""
        account = self._register.get(ref)
        return account.entry(ref).reservation if account else None

    def current(self, written: Reservation) -> Reservation:
        """Return a reservation with its current occurrence, if recurring."""
        return written if written.recurrence is None else written.about(self.held_as(written))

    def held_as(self, written: Reservation) -> Reservation:
        """Return the ledger's version of a reservation; its description may be out of date."""
        known = self.get(written.ref)
        is_known = known is not None and known.written_as == written.written_as
        return known if known is not None and is_known else written.at(self._now)

    def since(self, ref: Ref) -> float:
        """Return the first observation of an entry at a ref, in unix seconds; 0 without one."""
        account = self._register.get(ref)
        return account.entry(ref).since if account else 0.0

    def phase(self, ref: Ref) -> Phase | None:
        """Return the phase of a reservation; None without one at the ref."""
        account = self._register.get(ref)
        return self._phase(account) if account else None

    def unwritten(self, ref: Ref) -> str:
        """Return why a reservation's expiry or place cannot be written; empty if it can."""
        account = self._register.get(ref)
        return account.entry(ref).unwritten if account else ""

    def obstacle(self, ref: Ref) -> str:
        """Return why a reservation has no place; empty if unknown."""
        account = self._register.get(ref)
        return account.obstacle if account else ""

    def is_coming(self, reservation: Reservation) -> bool:
        """Return whether a reservation is unchanged, and will hold once it starts."""
        account = self._register.get(reservation.ref)
        if account is None or account.reservation is not reservation:
            return False
        recurrence = reservation.recurrence
        is_suspended = recurrence is not None and recurrence.is_suspended
        is_pending = self._phase_by_time(account) is Phase.PENDING
        return is_pending and not is_suspended and self._is_admitted(account)

    def excess(self, ref: Ref) -> str:
        """Return why quotas do not admit a pending reservation; empty if not so."""
        account = self._register.get(ref)
        if account is None or self._is_admitted(account):
            return ""
        is_pending = self._phase(account) is Phase.PENDING
        return self.quotas.why(account.entry(ref).reservation) if is_pending else ""

    def exceeds(self, ref: Ref) -> str:
        """Return the limit that an admitted reservation exceeds; empty if none."""
        account = self._register.get(ref)
        if account is None:
            return ""
        reservation = account.entry(ref).reservation
        return self.quotas.exceeding(reservation)

    def recorded_place(self, ref: Ref) -> Parts:
        """Return the written place of a reservation."""
        account = self._register.get(ref)
        return account.entry(ref).recorded if account else ()

    def placed(self, written: Reservation) -> Parts:
        """Return the current place of a reservation, which its entry may not have yet."""
        return self.held_as(written).placed

    def is_unplaced(self, ref: Ref) -> bool:
        """Return whether some slots of a reservation that should hold now have no place."""
        account = self._register.get(ref)
        return account is not None and self._is_unplaced(account)

    def _is_unplaced(self, account: Account) -> bool:
        if account.reservation.node or not self._is_active(account):
            return False
        return account.lacks_place(self._snapshot)

    def wants_place(self, ref: Ref) -> tuple[Parts, int]:
        """Return the parts of a reservation that stay, and the number of slots that need a place.

        Only the first ref of a reservation with several returns any.
        """
        account = self._register.get(ref)
        if account is None or account.reservation.node or account.reservation.ref != ref:
            return (), 0
        kept, slots = account.staying(self._snapshot.has_node)
        return (kept, slots) if slots and self._is_active(account) else ((), 0)

    def staying(self, ref: Ref, leaving: Container[str]) -> tuple[Parts, int]:
        """Return the parts off `leaving` nodes, and the number of unclaimed slots to move."""
        account = self._register.get(ref)
        if account is None or account.reservation.ref != ref or not self._is_active(account):
            return (), 0
        return account.staying(lambda node: node not in leaving)

    def compact(self, ref: Ref, has_shown: Callable[[float], bool]) -> Parts | None:
        """Return the place of a reservation with refill without the slots of ended claims.

        None if nothing has changed, or without refill. If another process wrote the place, the
        watch may not have shown its pods: `has_shown` returns whether pods are as new as a write.
        """
        account = self._register.get(ref)
        is_it = account is not None and account.reservation.ref == ref
        if account is None or not is_it or not account.reservation.refill_up_to:
            return None
        parts = account.compact()
        is_less = parts != account.reservation.placed
        return parts if is_less and has_shown(account.entry(ref).read_at) else None

    def is_edited(self, ref: Ref) -> bool:
        """Return whether a reservation's place was decided for an earlier version of its spec."""
        account = self._register.get(ref)
        return account is not None and account.is_edited

    def recorded(self, ref: Ref) -> Mapping[str, int]:
        """Return the claims of a reservation to persist for a restart, for `past.recall`."""
        account = self._register.get(ref)
        if account is None or account.reservation.reusable:
            return {}
        unsure = account.entry(ref).unsure.items()
        sure = {uid: claim.at for uid, claim in account.claimants.items() if claim.at != UNSEEN}
        return {uid: claim.at for uid, claim in unsure if claim.is_written} | sure

    def landed(self, ref: Ref) -> Mapping[str, str]:
        """Return the nodes of `recorded` claims, for a reservation on several nodes."""
        account = self._register.get(ref)
        if account is None or not account.reservation.parts[1:]:
            return {}
        unsure = {uid: claim.node for uid, claim in account.entry(ref).unsure.items()}
        nodes = unsure | {uid: claim.node for uid, claim in account.claimants.items()}
        return {uid: nodes[uid] for uid in self.recorded(ref) if nodes[uid]}

    def claimed(self, ref: Ref) -> int:
        """Return the number of claimed slots of a reservation; a whole node is one slot."""
        account = self._register.get(ref)
        if account is None:
            return 0
        nodes = [claim.node for claim in account.claimants.values()]
        return claimed_slots(nodes, is_whole=account.reservation.is_whole)

    def claims(self, ref: Ref) -> dict[str, PodName]:
        """Return UID and name of the observed pods that claimed a slot of a reservation."""
        return {uid: pod.name for uid, pod in self.claiming(ref).items() if pod is not None}

    def claiming(self, ref: Ref) -> Mapping[str, Pod | None]:
        """Return the pods that have a slot of a reservation, by UID; None for a deleted pod."""
        account = self._register.get(ref)
        if account is None:
            return {}
        pods = self._claims.of(account.identity)
        return {uid: pods.get(uid) for uid in account.claimants}

    def peak(self, ref: Ref) -> Peak:
        """Return the peak of a reusable reservation's claims."""
        account = self._register.get(ref)
        return account.peak if account else NO_PEAK

    def copies(self, reservation: Reservation) -> int:
        """Return the number of other refs in its namespace at which a reservation is written."""
        account = self._register.of(reservation.identity_at(self._now))
        refs = account.refs if account is not None else ()
        namespace = reservation.ref.namespace
        return sum(ref.namespace == namespace and ref != reservation.ref for ref in refs)

    def is_written_twice(self, ref: Ref) -> bool:
        """Return whether the reservation of a ref has further entries."""
        account = self._register.get(ref)
        return account is not None and len(account.entries) > 1

    def stands_for_all(self, ref: Ref) -> bool:
        """Return whether a ref is the first ref of its reservation."""
        account = self._register.get(ref)
        return account is not None and account.reservation.ref == ref

    def claimants(self, ref: Ref) -> Mapping[str, Pod | None]:
        """Return the pods whose slot a watch has confirmed, by UID; None for a deleted pod."""
        account = self._register.get(ref)
        known = account.claimants if account is not None else {}
        return {uid: pod for uid, pod in self.claiming(ref).items() if known[uid].at != UNSEEN}

    def is_over(self, ref: Ref) -> bool:
        """Return whether a reservation has expired, or was claimed for good."""
        account = self._register[ref]
        phase = self._phase(account)
        is_over = phase is Phase.EXPIRED or (
            phase is Phase.CLAIMED
            and not account.reservation.reusable
            and self._claims.are_written(account.claimants)
        )
        return is_over and not account.reservation.recurs

    def idle_since(self, ref: Ref) -> float:
        """Return since when a `releaseIfIdle` reservation is idle, unix seconds; else 0."""
        account = self._register.get(ref)
        return account.idle_since if account else 0.0

    def ends_at(self, ref: Ref) -> float:
        """Return the end by expiry or idleness, unix seconds; infinite for never."""
        account = self._register.get(ref)
        return account.ends_at if account else math.inf

    def is_released(self, ref: Ref) -> bool:
        """Return whether a reservation was released by `releaseIfIdle`."""
        account = self._register.get(ref)
        if account is None or self._phase(account) is not Phase.EXPIRED:
            return False
        return account.idle_until == account.ends_at

    def _phase(self, account: Account) -> Phase:
        phase = self._phase_by_time(account)
        if phase is not Phase.ACTIVE:
            return phase
        if not self._is_admitted(account):
            return Phase.PENDING
        if account.reservation.node:
            is_there = self._snapshot.has_node(account.reservation.node)
            return Phase.ACTIVE if is_there else Phase.FAILED
        # A reservation with refill is in force with the slots that it has.
        is_in_force = account.reservation.refill_up_to and account.is_holding
        is_waiting = not is_in_force and self._is_unplaced(account)
        return Phase.PENDING if is_waiting else Phase.ACTIVE

    def _phase_by_time(self, account: Account) -> Phase:
        phase = account.reservation.phase(len(account.claimants), self._now)
        is_released = phase is Phase.ACTIVE and self._now >= account.idle_until
        return Phase.EXPIRED if is_released else phase

    def _is_active(self, account: Account) -> bool:
        """Return whether a reservation holds wherever it has a place."""
        return self._phase_by_time(account) is Phase.ACTIVE and self._is_admitted(account)

    def _comes_back(self, account: Account) -> bool:
        """Return whether a claimed slot would hold again if its pod went now."""
        reservation = account.reservation
        is_reusable = reservation.reusable and self._is_admitted(account)
        return is_reusable and reservation.phase(0, self._now) is Phase.ACTIVE

    def _is_admitted(self, account: Account) -> bool:
        return any(self.quotas.admits(entry.reservation) for entry in account.entries)
