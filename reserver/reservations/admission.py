"""Admission: which reservations of one namespace its quotas let hold (docs/adr/0018).

Those are the first in the order of writing that meet all quotas together. Whoever could not come in
if it were alone is passed over, so that it keeps nobody else out. Who is in stays in, whatever
others write, whatever the limits become, and after a start: limits are for what is new. Only an
edit that asks for what is forbidden loses its place (docs/adr/0064).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reserver.reservations import quota
from reserver.reservations.ceiling import Ceiling
from reserver.reservations.quota import AdmissionState, Quota, QuotaShare, WriteOrder
from reserver.reservations.reservation import Reservation

_SPARE_ROW = 64
"""So many that do not wait any more may stand in a row, beside as many as there are shares."""


_KEPT = "it was admitted before that, and holds"
_WAIT = "it holds once there is room in the quota"
_ASK_FOR_LESS = "ask for less, or have the quota raised"


@dataclass(slots=True)
class Admission:
    """Decides which reservations of one namespace may hold.

    Attributes:
        quotas: all of them have to be met.
        shares: what its reservations ask for, by identity.
        used: the amounts of the admitted ones.
        is_open: reservations are admitted.
        ceiling: what this namespace may hold with others; None where it is not limited.
    """

    quotas: Sequence[Quota] = ()
    shares: dict[str, QuotaShare] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    is_open: bool = True
    ceiling: Ceiling | None = None
    _admitted: dict[QuotaShare, None] = field(default_factory=dict)
    _row: list[tuple[WriteOrder, str]] = field(default_factory=list)
    _unjudged: deque[str] = field(default_factory=deque)
    _is_over: bool = False

    def admits(self, identity: str) -> bool:
        """Return whether a reservation may hold."""
        share = self.shares.get(identity)
        return share is not None and share.standing is AdmissionState.ADMITTED

    @property
    def pending(self) -> int:
        """How many reservations are not admitted."""
        return len(self.shares) - len(self._admitted)

    def limit(self, quotas: Sequence[Quota]) -> None:
        """Take other quotas; `step` does what follows from them."""
        self.quotas = quotas
        self._unjudged = deque(self.shares)
        self._is_over = self._exceeds()

    def enter(self, share: QuotaShare) -> None:
        """Let a reservation stand in the row, and in if nobody waits before it."""
        identity = share.reservation.identity
        self.shares[identity] = share
        share.why = self._never(share)
        if share.why:
            share.standing = AdmissionState.BLOCKED
            return
        first = self._first() if self.is_open else None
        if self.is_open and not self._unjudged and first is None and self._fits(share):
            self._admit(share)
            return
        self._wait(share)
        if first is not None and not self._excess(share):
            before = first.reservation.ref
            share.why = f"waits behind {before}, which is older: {first.why}"
        else:
            share.why = self._excess(share)

    def put_first(self, identity: str) -> None:
        """Let in, before all others, a reservation of which it is written that it was in."""
        share = self.shares[identity]
        if share.standing is not AdmissionState.ADMITTED:
            share.turn, share.standing = share.turn._replace(is_new=False), AdmissionState.WAITING
            self._wait(share)

    def update(self, identity: str, slots: int) -> None:
        """Note how many slots of a reservation are left to claim; 0 if it is over."""
        share = self.shares[identity]
        if not slots:
            self._remove(identity)
            return
        asked = quota.usage(share.reservation, slots)
        if asked == share.asked:
            return
        if share.standing is AdmissionState.ADMITTED:
            self._count(share.reservation, share.asked, -1)
            self._count(share.reservation, asked, 1)
        share.asked = asked
        if share.standing is AdmissionState.BLOCKED:
            self._unjudged.append(identity)

    def leave(self, identity: str) -> None:
        """Note that a reservation is no longer written in the namespace."""
        if identity in self.shares:
            self._remove(identity)

    def replace(self, identity: str, after: Reservation) -> bool:
        """Let a reservation that replaces another one take its turn, if it asks for no more.

        Return whether it has.
        """
        share = self.shares.get(identity)
        if share is None or (after.identity != identity and after.identity in self.shares):
            return False
        asked = quota.usage(after, after.slots)
        if any(amount > share.asked.get(counted, 0) for counted, amount in asked.items()):
            return False
        if share.standing is AdmissionState.ADMITTED:
            self._count(share.reservation, share.asked, -1)
            self._count(after, asked, 1)
        del self.shares[identity]
        self.shares[after.identity] = share
        if share.standing is AdmissionState.ADMITTED:
            share.former = share.former or share.reservation
        share.reservation, share.asked = after, asked
        if share.standing is AdmissionState.WAITING:
            self._wait(share)
        self._unjudged.append(after.identity)  # It may live longer now, or name a node.
        return True

    def step(self) -> str | None:
        """Bring one reservation nearer to what the quotas let hold.

        Return its identity, empty if it is where it should be; None when nothing is left to do. A
        step is a few operations, however many reservations there are.
        """
        if not self.is_open:
            return None
        if self._unjudged:
            identity = self._unjudged.popleft()
            share = self.shares.get(identity)
            return identity if share is not None and self._judge(share) else ""
        share = self._first()
        if share is None:
            return None
        why = self._excess(share) if share.turn.is_new else ""
        if why and why == share.why:
            return None
        share.why = why
        if not why:
            self._admit(share)
            share.why = self._beyond(share)
        return share.reservation.identity

    def steps(self) -> Iterator[str]:
        """Yield what each step returns, until nothing is left to do."""
        while (identity := self.step()) is not None:
            yield identity

    def trial(self, asked: Mapping[str, int], less: str = "") -> str:
        """Return why what is asked for could not come in at once; empty if it could.

        Args:
            asked: what all that would be written counts for.
            less: the identity of the reservation that it would replace.
        """
        used = dict(self.used)
        if self.admits(less):
            for counted, amount in self.shares[less].asked.items():
                used[counted] -= amount
        why = quota.exceeded(self.quotas, asked, used)
        first = self._first()
        if not why and first is not None and first.reservation.identity != less:
            return f"{first.reservation.ref} is older and waits: {first.why}"
        return why

    def _judge(self, share: QuotaShare) -> bool:
        """Judge a reservation by itself; return whether something else is the case now."""
        if share.standing is AdmissionState.ADMITTED and not self._loses(share):
            before, share.why = share.why, self._beyond(share)
            return share.why != before
        if not share.turn.is_new:
            return False
        why = self._never(share)
        if not why:
            if share.standing is not AdmissionState.BLOCKED:
                return False
            share.standing, share.why = AdmissionState.WAITING, self._excess(share)
            self._wait(share)
            return True
        is_news = why != share.why or share.standing is AdmissionState.ADMITTED
        if share.standing is AdmissionState.ADMITTED:
            self._dismiss(share)
        share.standing, share.why = AdmissionState.BLOCKED, why
        return is_news

    def _loses(self, share: QuotaShare) -> bool:
        """Return whether an edit asks for something forbidden that the former spec did not have."""
        before, share.former = share.former, None
        if before is None or not quota.forbids_change(
            self.quotas, before, share.reservation, share.since
        ):
            return False
        share.turn = share.turn._replace(is_new=True)
        return True

    def _beyond(self, share: QuotaShare) -> str:
        """Return what one that is admitted exceeds all the same; empty if nothing."""
        why = quota.forbidden(self.quotas, share.reservation, share.since)
        why = why or quota.exceeded(self.quotas, share.asked, {})
        if not why and self._is_over:
            first = quota.exceeded(self.quotas, self.used, {}).partition(",")[0]
            why = f"{first}, by the reservations of the namespace together"
        return f"{why}; {_KEPT}" if why else ""

    def _exceeds(self) -> bool:
        return bool(quota.exceeded(self.quotas, self.used, {}))

    def _never(self, share: QuotaShare) -> str:
        """Return why a reservation could not come in if it were alone."""
        why = quota.forbidden(self.quotas, share.reservation, share.since)
        if not why and quota.exceeded(self.quotas, share.asked, {}):
            others = {} if share.standing is AdmissionState.ADMITTED else self.used
            why = f"{quota.exceeded(self.quotas, share.asked, others)}; {_ASK_FOR_LESS}"
        return why

    def _excess(self, share: QuotaShare) -> str:
        """Return why a reservation has to wait."""
        why = quota.exceeded(self.quotas, share.asked, self.used)
        if not why and self.ceiling is not None:
            why = self.ceiling.excess(share.reservation, share.asked)
        return f"{why}; {_WAIT}" if why else ""

    @property
    def waits_for_others(self) -> bool:
        """Whether nothing but the ceiling keeps the next reservation out."""
        first = self._first() if self.ceiling is not None else None
        return first is not None and not quota.exceeded(self.quotas, first.asked, self.used)

    def _fits(self, share: QuotaShare) -> bool:
        return not self._excess(share)

    def _admit(self, share: QuotaShare) -> None:
        share.standing, share.why = AdmissionState.ADMITTED, ""
        self._admitted[share] = None
        self._count(share.reservation, share.asked, 1)

    def _dismiss(self, share: QuotaShare) -> None:
        del self._admitted[share]
        self._count(share.reservation, share.asked, -1)

    def _remove(self, identity: str) -> None:
        share = self.shares.pop(identity)
        if share.standing is AdmissionState.ADMITTED:
            self._dismiss(share)

    def _count(self, reservation: Reservation, asked: Mapping[str, int], sign: int) -> None:
        if self.ceiling is not None:
            self.ceiling.count(reservation, asked, sign)
        for counted, amount in asked.items():
            total = self.used.get(counted, 0) + sign * amount
            if total:
                self.used[counted] = total
            else:
                self.used.pop(counted, None)
        if self._is_over != self._exceeds():  # Those that are in are told.
            self._is_over = not self._is_over
            self._unjudged.extend(each.reservation.identity for each in self._admitted)

    def _wait(self, share: QuotaShare) -> None:
        if len(self._row) > _SPARE_ROW + 2 * len(self.shares):
            self._row = [each for each in self._row if self._is_in_row(*each)]
            heapq.heapify(self._row)
        heapq.heappush(self._row, (share.turn, share.reservation.identity))

    def _first(self) -> QuotaShare | None:
        """Return whose turn it is of those that wait; what is in the row in vain goes."""
        while self._row:
            turn, identity = self._row[0]
            if self._is_in_row(turn, identity):
                return self.shares[identity]
            heapq.heappop(self._row)
        return None

    def _is_in_row(self, turn: WriteOrder, identity: str) -> bool:
        share = self.shares.get(identity)
        return share is not None and share.standing is AdmissionState.WAITING and share.turn == turn
