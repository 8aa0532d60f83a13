"""Queries of the ledger about one reservation: what is written, its phase, place and claims."""

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
    """What is known of each reservation, to look at."""

    def __init__(
        self,
        snapshot: Snapshot,
        listener: Listener,
        quotas: Quotas | None = None,
        failed: Callable[[Ref, Exception], None] = raising,
    ) -> None:
        """Begin with nothing held; for the arguments see `ledger.Ledger`."""
        self.quotas = quotas or Quotas()
        self._snapshot = snapshot
        self._holdings = NodeHolds(snapshot, listener, self.quotas)
        self.succession = Succession(snapshot)
        self._register = ReservationIndex(self.succession, failed)
        self._claims = Claims(self._register)
        self._now = Moment(0.0)

    def __iter__(self) -> Iterator[tuple[Reservation, Phase]]:
        """Yield every reservation with its phase, in the order in which they became known."""
        for ref, account in self._register:
            yield account.entry(ref).reservation, self._phase(account)

    def __len__(self) -> int:
        """Return how many reservations are known, ended ones included."""
        return len(self._register)

    def refs(self) -> tuple[Ref, ...]:
        """Return where reservations are written at this moment."""
        return self._register.refs()

    def get(self, ref: Ref) -> Reservation | None:
        """Return what is written at a ref."""
        account = self._register.get(ref)
        return account.entry(ref).reservation if account else None

    def current(self, written: Reservation) -> Reservation:
        """Return what is written as it is now: of what recurs with its occurrence."""
        return written if written.recurrence is None else written.about(self.held_as(written))

    def held_as(self, written: Reservation) -> Reservation:
        """Return the same as it is held, and placed; its description may be an older one."""
        known = self.get(written.ref)
        is_known = known is not None and known.written_as == written.written_as
        return known if known is not None and is_known else written.at(self._now)

    def since(self, ref: Ref) -> float:
        """Return when something was first seen at a ref, in unix seconds; 0 for nothing."""
        account = self._register.get(ref)
        return account.entry(ref).since if account else 0.0

    def phase(self, ref: Ref) -> Phase | None:
        """Return the phase of a reservation, None when there is none of that name."""
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
        """Return whether a reservation is still as it was, and is to hold once it starts."""
        account = self._register.get(reservation.ref)
        if account is None or account.reservation is not reservation:
            return False
        recurrence = reservation.recurrence
        is_suspended = recurrence is not None and recurrence.is_suspended
        is_pending = self._phase_by_time(account) is Phase.PENDING
        return is_pending and not is_suspended and self._is_admitted(account)

    def excess(self, ref: Ref) -> str:
        """Return why the quotas of its namespace keep a reservation from holding; empty if not."""
        account = self._register.get(ref)
        if account is None or self._is_admitted(account):
            return ""
        is_pending = self._phase(account) is Phase.PENDING
        return self.quotas.why(account.entry(ref).reservation) if is_pending else ""

    def exceeds(self, ref: Ref) -> str:
        """Return which limit a reservation exceeds that was admitted before it; empty if none."""
        account = self._register.get(ref)
        if account is None:
            return ""
        reservation = account.entry(ref).reservation
        return self.quotas.exceeding(reservation)

    def recorded_place(self, ref: Ref) -> Parts:
        """Return where a reservation is placed, as written."""
        account = self._register.get(ref)
        return account.entry(ref).recorded if account else ()

    def placed(self, written: Reservation) -> Parts:
        """Return where the reservation of a ref is placed now, whatever its entry says."""
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
        """Return which parts of a reservation stay, and how many of its slots want a place now.

        Of one that is written at several refs it is asked at the first of them.
        """
        account = self._register.get(ref)
        if account is None or account.reservation.node or account.reservation.ref != ref:
            return (), 0
        kept, slots = account.staying(self._snapshot.has_node)
        return (kept, slots) if slots and self._is_active(account) else ((), 0)

    def staying(self, ref: Ref, leaving: Container[str]) -> tuple[Parts, int]:
        """Return which parts stay when nodes are left, and how many unclaimed slots leave."""
        account = self._register.get(ref)
        if account is None or account.reservation.ref != ref or not self._is_active(account):
            return (), 0
        return account.staying(lambda node: node not in leaving)

    def compact(self, ref: Ref, has_shown: Callable[[float], bool]) -> Parts | None:
        """Return where a reservation that replaces slots is placed, once a claim of it has ended.

        None if nothing has changed, or of any other reservation. Of what another Reserver placed
        the claim may be yet to be shown: `has_shown` tells whether pods are, as of a write.
        """
        account = self._register.get(ref)
        is_it = account is not None and account.reservation.ref == ref
        if account is None or not is_it or not account.reservation.refill_up_to:
            return None
        parts = account.compact()
        is_less = parts != account.reservation.placed
        return parts if is_less and has_shown(account.entry(ref).read_at) else None

    def is_edited(self, ref: Ref) -> bool:
        """Return whether a reservation's place was decided for the entry before it."""
        account = self._register.get(ref)
        return account is not None and account.is_edited

    def recorded(self, ref: Ref) -> Mapping[str, int]:
        """Return the claims of a reservation that a restart must not forget, for `past.recall`."""
        account = self._register.get(ref)
        if account is None or account.reservation.reusable:
            return {}
        unsure = account.entry(ref).unsure.items()
        sure = {uid: claim.at for uid, claim in account.claimants.items() if claim.at != UNSEEN}
        return {uid: claim.at for uid, claim in unsure if claim.is_written} | sure

    def landed(self, ref: Ref) -> Mapping[str, str]:
        """Return where claims of `recorded` were made, of what holds on several nodes."""
        account = self._register.get(ref)
        if account is None or not account.reservation.parts[1:]:
            return {}
        unsure = {uid: claim.node for uid, claim in account.entry(ref).unsure.items()}
        nodes = unsure | {uid: claim.node for uid, claim in account.claimants.items()}
        return {uid: nodes[uid] for uid in self.recorded(ref) if nodes[uid]}

    def claimed(self, ref: Ref) -> int:
        """Return how many slots of a reservation are claimed: of whole nodes those with a claim."""
        account = self._register.get(ref)
        if account is None:
            return 0
        nodes = [claim.node for claim in account.claimants.values()]
        return claimed_slots(nodes, is_whole=account.reservation.is_whole)

    def claims(self, ref: Ref) -> dict[str, PodName]:
        """Return UID and name of the known pods that claimed a slot of a reservation."""
        return {uid: pod.name for uid, pod in self.claiming(ref).items() if pod is not None}

    def claiming(self, ref: Ref) -> Mapping[str, Pod | None]:
        """Return the pods that have a slot of a reservation, by UID; None for one that is gone."""
        account = self._register.get(ref)
        if account is None:
            return {}
        pods = self._claims.of(account.identity)
        return {uid: pods.get(uid) for uid in account.claimants}

    def peak(self, ref: Ref) -> Peak:
        """Return when most pods had slots of a reservation, if it is reusable."""
        account = self._register.get(ref)
        return account.peak if account else NO_PEAK

    def copies(self, reservation: Reservation) -> int:
        """Return at how many other refs of its namespace a reservation is written as well."""
        account = self._register.of(reservation.identity_at(self._now))
        refs = account.refs if account is not None else ()
        namespace = reservation.ref.namespace
        return sum(ref.namespace == namespace and ref != reservation.ref for ref in refs)

    def is_written_twice(self, ref: Ref) -> bool:
        """Return whether what is written at a ref is written at another one as well."""
        account = self._register.get(ref)
        return account is not None and len(account.entries) > 1

    def stands_for_all(self, ref: Ref) -> bool:
        """Return whether a ref is the first of those at which its reservation is written."""
        account = self._register.get(ref)
        return account is not None and account.reservation.ref == ref

    def claimants(self, ref: Ref) -> Mapping[str, Pod | None]:
        """Return the pods that were seen to have a slot, by UID; None for one that is gone."""
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
        """Return since when no pod has used what is released if idle, unix seconds; 0 for none."""
        account = self._register.get(ref)
        return account.idle_since if account else 0.0

    def ends_at(self, ref: Ref) -> float:
        """Return when a reservation ends unless a pod claims it, unix seconds: expired, or idle."""
        account = self._register.get(ref)
        return account.ends_at if account else math.inf

    def is_released(self, ref: Ref) -> bool:
        """Return whether a reservation is over because no pod has used it for so long."""
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
        """Return whether it holds wherever it has a place."""
        return self._phase_by_time(account) is Phase.ACTIVE and self._is_admitted(account)

    def _comes_back(self, account: Account) -> bool:
        """Return whether a claimed slot would hold again, if its pod went now."""
        reservation = account.reservation
        is_reusable = reservation.reusable and self._is_admitted(account)
        return is_reusable and reservation.phase(0, self._now) is Phase.ACTIVE

    def _is_admitted(self, account: Account) -> bool:
        return any(self.quotas.admits(entry.reservation) for entry in account.entries)
