"""Queries of the ledger: what is held where, for whom, now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from reserver.base.moment import Moment
from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.account import Account
from reserver.reservations.claims import Claims
from reserver.reservations.entry import UNSEEN
from reserver.reservations.enums import Phase, Policy
from reserver.reservations.index import ReservationIndex, raising
from reserver.reservations.listener import Listener
from reserver.reservations.node_holds import Hold, NodeHolds
from reserver.reservations.placement import Parts
from reserver.reservations.quotas import Quotas
from reserver.reservations.replacement import ReplacementStanding, Succession
from reserver.reservations.reservation import Ref, Reservation

Slot = tuple[str, str]
"""A slot, by the identity of its reservation and its node."""

NONE_SPENT: Mapping[Slot, int] = MappingProxyType({})

OVER = (Phase.CLAIMED, Phase.EXPIRED)


class LedgerView:
    """What is held where, for whom, at this instant, to look at (`ledger.Ledger` changes it)."""

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
        self._holdings = NodeHolds(snapshot, listener)
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
        known = self.get(written.ref)
        is_known = known is not None and known.identity == written.identity
        return known.placed if known is not None and is_known else written.placed

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
        kept, slots = account.unplaced(self._snapshot)
        return (kept, slots) if slots and self._is_active(account) else ((), 0)

    def is_edited(self, ref: Ref) -> bool:
        """Return whether a reservation's place was decided for the entry before it."""
        account = self._register.get(ref)
        return account is not None and account.is_edited

    def may_concern(self, pod: Pod) -> bool:
        """Return whether a pod may have seats or wait for one; if not, nothing has to be asked."""
        return self._register.may_concern(pod)

    def naming(self, pod: PodName) -> tuple[Reservation, ...]:
        """Return the reservations that name a pod and are not over, oldest first; each once."""
        accounts = self._register.naming(pod)
        return tuple(each.reservation for each in accounts if self._phase(each) not in OVER)

    def seats(
        self,
        pod: Pod,
        among: Collection[str] | None = None,
        spent: Mapping[Slot, int] = NONE_SPENT,
    ) -> tuple[Reservation, ...]:
        """Return the reservations that hold capacity for a pod now, oldest first.

        One that is placed on several nodes comes once for each of them, as what it is there. Those
        that name the pod are all its own. Of those that it only matches it claims one: on each
        node the oldest whose slot covers its request, or else the oldest.

        Args:
            pod: the pod.
            among: the nodes that matter; None for all.
            spent: how many slots are as good as claimed.
        """
        naming = [each for each in self._register.naming(pod.name) if each.is_holding]
        if naming:
            return tuple(_seats(naming, among, spent))
        if among is not None and len(among) == 1:
            # As many as hold there: to ask each that may match it cost a gang half a second.
            here = self._holdings.reservations_on(*among)
            matching = self._register.matching_of((self._register[r.ref] for r in here), pod)
        else:
            matching = self._register.matching(pod)
        on_node: dict[str, Reservation] = {}
        for reservation in _seats(matching, among, spent):
            known = on_node.setdefault(reservation.node, reservation)
            if not known.covers(pod.requests) and reservation.covers(pod.requests):
                on_node[reservation.node] = reservation
        return tuple(on_node.values())

    def required(self, pod: Pod, spent: Mapping[Slot, int] = NONE_SPENT) -> Reservation | None:
        """Return a seat of a pod that may land on its seats only; None if it may elsewhere.

        One that `seats` leaves out, beside another on its node, keeps the pod as well: else a pod
        could leave as long as the other one is not claimed, and not afterwards.
        """
        naming = [each for each in self._register.naming(pod.name) if each.is_holding]
        seats = _seats(naming or self._register.matching(pod), None, spent)
        return next((seat for seat in seats if seat.policy is Policy.REQUIRE), None)

    def asked_on(self, node: str) -> int:
        """Return how many owner rules it takes to ask for a pod's seats on a node."""
        return sum(max(1, len(each.rules)) for each in self._holdings.reservations_on(node))

    def awaited_by(self, pod: Pod) -> Reservation | None:
        """Return the reservation that a pod has to wait for, and may land nowhere else.

        It may claim that one, but has no seat of it because it has no place yet; or it may be the
        pod that it is for, as a watch will show in a moment.
        """
        for account in (*self._register.naming(pod.name), *self._register.matching(pod)):
            if account.reservation.policy is Policy.REQUIRE and self._is_unplaced(account):
                return account.reservation
        for account in self._register.matching(pod, ReplacementStanding.UNKNOWN):
            if account.reservation.policy is Policy.REQUIRE and self._is_active(account):
                return account.reservation
        return None

    def claimable_by(self, pod: Pod) -> Iterator[Reservation]:
        """Yield the reservations that a pod may claim, whether they hold or not, oldest first."""
        for account in self._register.matching(pod):
            yield account.reservation

    def owned_by(self, pod: Pod) -> frozenset[Ref]:
        """Return the refs of the reservations that a pod may claim, whether they hold or not."""
        return frozenset(ref for each in self._register.matching(pod) for ref in each.refs)

    def held_on(self, node: str) -> Mapping[str, int]:
        """Return what is held on a node in all, exactly."""
        return self._holdings.on(node)

    def holding_on(self, node: str) -> Iterator[Reservation]:
        """Yield the reservations that hold capacity on a node now, oldest first."""
        return self._holdings.reservations_on(node)

    def held_after(self, node: str, seat: Reservation) -> dict[str, int]:
        """Return what is held on a node behind a reservation, of the resources that it holds."""
        hold = self._register[seat.ref].hold_on(node)
        return self._holdings.after(hold) if hold is not None else {}

    def later(
        self, node: str, seats: Iterable[Reservation], requests: Mapping[str, int]
    ) -> dict[str, int]:
        """Return what is held on a node that does not count against a pod with these seats there.

        See `NodeHolds.later`.
        """
        return self._holdings.later(node, self._holds(node, seats), requests)

    def _holds(self, node: str, seats: Iterable[Reservation]) -> list[Hold]:
        holds = (self._register[seat.ref].hold_on(node) for seat in seats)
        return [hold for hold in holds if hold is not None]

    def yielding(self, pod: Pod, nodes: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return what is held on some nodes, for others, that a pod's priority may take."""
        if not self._holdings.yields:
            return {}
        return self._holdings.yielding(pod.priority, self.owned_by(pod), nodes)

    def holding(self, ref: Ref) -> dict[str, Mapping[str, int]]:
        """Return what is held for a ref, by node; nothing if another ref stands for it."""
        account = self._register.get(ref)
        if account is None or account.reservation.ref != ref:
            return {}
        return {hold.reservation.node: hold.amounts for hold in account.holds}

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
        """Return how many slots of a reservation are claimed."""
        account = self._register.get(ref)
        return len(account.claimants) if account else 0

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

    def copies(self, reservation: Reservation) -> int:
        """Return at how many other refs of its namespace a reservation is written as well."""
        account = self._register.of(reservation.identity)
        refs = account.refs if account is not None else ()
        namespace = reservation.ref.namespace
        return sum(ref.namespace == namespace and ref != reservation.ref for ref in refs)

    def is_written_twice(self, ref: Ref) -> bool:
        """Return whether what is written at a ref is written at another one as well."""
        account = self._register.get(ref)
        return account is not None and len(account.entries) > 1

    def claimants(self, ref: Ref) -> Mapping[str, Pod | None]:
        """Return the pods that were seen to have a slot, by UID; None for one that is gone."""
        account = self._register.get(ref)
        known = account.claimants if account is not None else {}
        return {uid: pod for uid, pod in self.claiming(ref).items() if known[uid].at != UNSEEN}

    def is_over(self, ref: Ref) -> bool:
        """Return whether a reservation has expired, or was claimed for good."""
        account = self._register[ref]
        phase = self._phase(account)
        return phase is Phase.EXPIRED or (
            phase is Phase.CLAIMED
            and not account.reservation.reusable
            and self._claims.are_written(account.claimants)
        )

    def _phase(self, account: Account) -> Phase:
        phase = account.reservation.phase(len(account.claimants), self._now)
        if phase is not Phase.ACTIVE:
            return phase
        if not self._is_admitted(account):
            return Phase.PENDING
        if account.reservation.node:
            is_there = self._snapshot.has_node(account.reservation.node)
            return Phase.ACTIVE if is_there else Phase.FAILED
        return Phase.PENDING if self._is_unplaced(account) else Phase.ACTIVE

    def _is_active(self, account: Account) -> bool:
        """Return whether it holds wherever it has a place."""
        phase = account.reservation.phase(len(account.claimants), self._now)
        return phase is Phase.ACTIVE and self._is_admitted(account)

    def _is_admitted(self, account: Account) -> bool:
        return any(self.quotas.admits(entry.reservation) for entry in account.entries)


def _seats(
    accounts: Iterable[Account], among: Collection[str] | None, spent: Mapping[Slot, int]
) -> Iterator[Reservation]:
    for account in accounts:
        holds: Iterable[Hold] = account.holds
        if among is not None and len(among) < len(account.holds):
            holds = filter(None, map(account.hold_on, among))
        for hold in holds:
            node = hold.reservation.node
            if not hold.amounts or (among is not None and node not in among):
                continue
            if not spent or spent.get((account.identity, node), 0) < hold.slots:
                yield hold.reservation
