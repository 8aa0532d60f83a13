"""The verdict on each pod by plain sums over all pods and holds, computed anew each time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from reserver.cluster.pod import Pod
from reserver.reservations.enums import Policy
from reserver.reservations.reservation import Reservation, Written
from tests.property.drawn_answers import Drawn

Amounts = Mapping[str, int]
Uids = Collection[str]
Loan = tuple[int, int, int]
_NOTHING: Amounts = {}


@dataclass(frozen=True)
class Seat:
    """A reservation on one node, with its slots and its free slots."""

    of: Reservation
    node: str
    written: Written
    slots: int
    left: int

    def slot(self, name: str) -> int:
        return self.of.resources.get(name, 0)

    def is_behind(self, others: Iterable[Seat]) -> bool:
        """Return whether it was certainly written after all others, or yields and they do not."""
        return all(
            self.written.first > other.written.last if self.yields == other.yields else self.yields
            for other in others
        )

    @property
    def yields(self) -> bool:
        return self.of.yields_above is not None


Seats = Sequence[Seat]


@dataclass
class Gang:
    """Earlier answers to pods of a group: slots, other room, and the pods that got them."""

    spent: Counter[tuple[str, str]] = field(default_factory=Counter)
    taken: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    uids: set[str] = field(default_factory=set)

    def put(self, pod: Pod, node: str, own: Seats, naive: Naive) -> None:
        self.uids.add(pod.uid)
        if naive.is_guarded(node):
            self.spent.update((seat.of.identity, node) for seat in own)
            slots = sum((Counter(seat.of.resources) for seat in own), Counter[str]())
            self.taken[node] += Counter(pod.requests) - slots


ALONE = Gang()


class Naive:
    """A cluster, without any index."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self._claims = self._claimed()
        self.seats = [seat for each, at in drawn.holds for seat in self._seats(each, at)]

    def _claimed(self) -> dict[str, list[Pod]]:
        """Return the pods that have a slot of each reservation; what names a pod is its own."""
        claims: dict[str, list[Pod]] = {each.identity: [] for each, _ in self.drawn.holds}
        for pod in self.drawn.bound:
            for hold, _ in self.drawn.holds:
                taken = claims[hold.identity]
                is_over = len(taken) >= hold.most_slots or not self._lasts(hold)
                if hold.identity in pod.claims or (pod.name in hold.owners and not is_over):
                    taken.append(pod)
        ended = {h.identity: self.drawn.ended if h.reusable else () for h, _ in self.drawn.holds}
        return {key: [p for p in claims[key] if p.uid not in ended[key]] for key in claims}

    def _left(self, hold: Reservation) -> tuple[dict[str, int], int]:
        """Return the slots that are left by node, and how many have no place."""
        on = Counter(pod.node for pod in self._claims[hold.identity])
        if hold.node:
            return {hold.node: max(0, hold.slots - on.total())}, 0
        left, wanted = {}, max(0, min(hold.slots, hold.refill_up_to - on.total()))
        for part in hold.parts if hold.refill_up_to else ():
            left[part.node] = min(wanted, max(0, part.slots - on[part.node]))
            wanted -= left[part.node]
        if hold.refill_up_to:
            return left, wanted
        left = {part.node: max(0, part.slots - on[part.node]) for part in hold.parts}
        astray = on.total() - sum(min(part.slots, on[part.node]) for part in hold.parts)
        loose = hold.slots - sum(part.slots for part in hold.parts)
        for node in reversed(left):  # Those without a place go first, then the last ones.
            taken = min(left[node], max(0, astray - loose))
            left[node], astray = left[node] - taken, astray - taken
        return left, loose - min(loose, astray)

    def _lasts(self, hold: Reservation) -> bool:
        return (hold.starts_at or 0) <= self.drawn.now < (hold.expires_at or inf)

    def _comes_back(self, hold: Reservation) -> bool:
        return hold.reusable and self._lasts(hold)

    def _is_active(self, hold: Reservation) -> bool:
        return len(self._claims[hold.identity]) < hold.most_slots and self._lasts(hold)

    def _seats(self, hold: Reservation, written: Written) -> Iterable[Seat]:
        left = self._left(hold)[0] if self._is_active(hold) else {}
        for part in hold.parts:
            yield Seat(hold, part.node, written, part.slots, left.get(part.node, 0))

    def on(self, node: str) -> list[Seat]:
        return [seat for seat in self.seats if seat.node == node]

    def _returning(self, node: str, name: str) -> int:
        """Return the amount of pods that a reservation holds again once they are gone."""
        total = 0
        for seat in self.on(node):
            claimed = (seat.slots - seat.left) * self._comes_back(seat.of)
            total += (claimed + seat.left * (seat.of.lends_below is not None)) * seat.slot(name)
        return total

    def is_guarded(self, node: str) -> bool:
        return any(seat.left for seat in self.on(node)) or self._returning(node, "pods") > 0

    def _owned_by(self, pod: Pod, gang: Gang) -> list[Seat]:
        """Return the unspent seats of a pod: the seats that name it, or else all that match."""
        mine = [seat for seat in self.seats if seat.left and seat.of.is_owned_by(pod)]
        named = [seat for seat in mine if pod.name in seat.of.owners]
        return [s for s in named or mine if gang.spent[s.of.identity, s.node] < s.left]

    def seats_of(self, pod: Pod, gang: Gang = ALONE) -> list[Seat]:
        """Return the seats of a pod; of seats that only match, one a node that covers it if any."""
        mine, found = self._owned_by(pod, gang), dict[str, Seat]()
        if any(pod.name in seat.of.owners for seat in mine):
            return mine
        for seat in mine:
            known = found.setdefault(seat.node, seat)
            if not known.of.covers(pod.requests) and seat.of.covers(pod.requests):
                found[seat.node] = seat
        return list(found.values())

    def there(self, pod: Pod, node: str, gang: Gang = ALONE) -> list[Seat]:
        return [seat for seat in self.seats_of(pod, gang) if seat.node == node]

    def requires(self, pod: Pod, gang: Gang = ALONE) -> bool:
        return any(seat.of.policy is Policy.REQUIRE for seat in self._owned_by(pod, gang))

    def awaits(self, pod: Pod) -> bool:
        """Return whether the pod requires a reservation of which some slots have no node."""
        must = [hold for hold, _ in self.drawn.holds if hold.policy is Policy.REQUIRE]
        mine = [hold for hold in must if hold.is_owned_by(pod) and not hold.node]
        parts = [self._left(hold) for hold in mine if self._is_active(hold)]
        lost = [node for left, _ in parts for node in left if left[node]]
        return any(loose for _, loose in parts) or not {*lost} <= {*self.drawn.nodes}

    def _there(self, node: str, gone: Uids) -> list[Pod]:
        there = (pod for pod in self.drawn.bound if pod.node == node)
        return [pod for pod in there if pod.uid not in gone and pod.uid not in self.drawn.ended]

    def unused(self, node: str, name: str, gone: Uids = ()) -> int:
        taken = sum(pod.requests.get(name, 0) for pod in self._there(node, gone))
        return self.drawn.nodes[node].get(name, 0) - taken

    def borrowers(self, node: str, gone: Uids = ()) -> list[Pod]:
        there = [p for p in self._there(node, gone) if p.constraints.tolerates_recall]
        return [pod for pod in there if any(self._borrowed(pod, name) for name in pod.requests)]

    def _borrowed(self, pod: Pod, name: str) -> int:
        """Return the requests of a borrower beyond its own slots that return once it is gone."""
        own = 0
        for seat in self.on(pod.node) if pod.constraints.tolerates_recall else ():
            there = [p for p in self._claims[seat.of.identity] if p.node == pod.node]
            own += seat.slot(name) * self._comes_back(seat.of) * (pod in there[: seat.slots])
        return max(0, pod.requests.get(name, 0) - own)

    def has_room(self, pod: Pod, node: str, more: Amounts = _NOTHING, gone: Uids = ()) -> bool:
        """Return whether the requests of a pod are unused by other pods, whatever is held."""
        asked = [(name, n + more.get(name, 0)) for name, n in pod.requests.items() if n]
        is_known = node in self.drawn.nodes
        return is_known and all(self.unused(node, name, gone) >= n for name, n in asked)

    def fits(
        self, pod: Pod, node: str, own: Seats, more: Amounts = _NOTHING, gone: Uids = ()
    ) -> bool:
        """Return whether a pod with its own seats takes no held room of others on a node.

        The pods `gone` have left, and others have got `more`; kube-scheduler checks the room.
        """
        if node not in self.drawn.nodes or (node in self.drawn.unreadable and not own):
            return not self.is_guarded(node)
        for name, amount in pod.requests.items():
            others = self.held_for_others(pod, node, name, own, gone)
            left = self.unused(node, name, gone) - others - more.get(name, 0)
            open_to = self.open_to(pod, node, name, own)
            is_free = others <= open_to and not self._returning(node, name)
            is_own = 0 < amount <= sum(seat.slot(name) for seat in own)
            behind = self._behind(pod, node, name, own) if is_own else 0
            is_offered = any(name in offered for offered in self.drawn.nodes.values())
            if amount and is_offered and not is_free and left + max(open_to, behind) < amount:
                return False
        return True

    def held_for_others(self, pod: Pod, node: str, name: str, own: Seats, gone: Uids = ()) -> int:
        """Return the amount held for others once a pod has its slots, returning slots included.

        Borrowed amounts are not counted.
        """
        held = sum(seat.left * seat.slot(name) for seat in self.on(node))
        for seat in self.on(node):
            is_open = seat.of.is_owned_by(pod) or seat.of.yields_to(pod.priority)
            is_others = not is_open and not seat.of.lends_to(pod)
            there = [p for p in self._claims[seat.of.identity] if p.uid in gone and p.node == node]
            back = min(len(there), seat.slots - seat.left) * self._comes_back(seat.of)
            held += back * seat.slot(name) * is_others
        lent = sum(taken for _, _, taken in self._loans(node, name, own, gone))
        return held - sum(seat.slot(name) for seat in own) - lent

    def open_to(self, pod: Pod, node: str, name: str, own: Seats) -> int:
        """Return the held room of others that yields to the pod's priority, or is lent to it."""
        others = [seat for seat in self.on(node) if not seat.of.is_owned_by(pod)]
        yields = sum(s.left * s.slot(name) for s in others if s.of.yields_to(pod.priority))
        is_closed = any(each.terminating for each in self.borrowers(node))
        if is_closed or not pod.constraints.tolerates_recall:
            return yields
        loans = self._loans(node, name, own)
        return yields + sum(n - taken for below, n, taken in loans if pod.priority < below)

    def _loans(self, node: str, name: str, own: Seats, gone: Uids = ()) -> list[Loan]:
        """Return the loans without a pod's own slots: priority bound, amount, borrowed amount."""
        found: list[Loan] = []
        for below in sorted({each.of.lends_below or -inf for each in self.on(node)}):
            mine = [each for each in own if each.of.lends_below == below]
            lent = [each for each in self.on(node) if each.of.lends_below == below]
            amount = sum(s.left * s.slot(name) for s in lent) - sum(s.slot(name) for s in mine)
            pods = [pod for pod in self.borrowers(node, gone) if pod.priority < below]
            asked = sum(self._borrowed(pod, name) for pod in pods)
            asked -= sum(taken for _, _, taken in found)
            found.append((int(max(below, -99)), amount, min(amount, asked)))
        return found

    def _behind(self, pod: Pod, node: str, name: str, own: Seats) -> int:
        """Return the amount held behind the fewest oldest seats that cover a pod."""
        row = sorted(own, key=lambda seat: (seat.yields, seat.written.last, seat.written.first))
        sums = (sum(seat.slot(name) for seat in row[:n]) for n in range(1, len(row) + 1))
        covering = 1 + next(n for n, slot in enumerate(sums) if slot >= pod.requests[name])
        behind = [seat for seat in self.on(node) if seat.is_behind(row[:covering])]
        mine = sum(s.slot(name) for s in row[covering:] if s in behind)
        return sum(seat.left * seat.slot(name) for seat in behind) - mine

    def promised(self, pod: Pod, node: str, gang: Gang = ALONE) -> Counter[str]:
        """Return what others take of a node first: nominated pods that come before, and a group."""
        promised, is_first = Counter(gang.taken[node]), True
        for other in self.drawn.pending if not self.there(pod, node, gang) else ():
            if other.nominated_node == node and other.uid not in gang.uids:
                is_equal = other.priority == pod.priority and is_first and other.uid != pod.uid
                if (other.priority > pod.priority or is_equal) and not self.there(other, node):
                    promised.update(other.requests)
                is_first = is_first and other.uid != pod.uid
        return promised
