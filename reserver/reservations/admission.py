"""Admission: the reservations of one namespace that its quotas admit (docs/adr/0018).

Reservations are admitted in the order of writing, as long as they meet all quotas together. A
reservation that would exceed a quota alone is skipped, so that it blocks no other. An admitted
reservation stays admitted, whatever others write, after a lower limit and after a restart: limits
are for new reservations. Only an edit that asks for something forbidden loses the admission
(docs/adr/0064).
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

_SPARE_ENTRIES = 64
"""Stale entries that the queue may have beyond twice the number of shares."""


_KEPT = "it was admitted before that, and holds"
_WAIT = "it holds once there is room in the quota"
_ASK_FOR_LESS = "ask for less, or have the quota raised"


@dataclass(slots=True)
class Admission:
    """Decides the admitted reservations of one namespace.

    Attributes:
        quotas: the namespace's quotas; a reservation has to meet each.
        shares: the shares of the namespace's reservations, by identity.
        used: the amounts of the admitted reservations.
        is_open: whether reservations are admitted now.
        ceiling: the ceiling of all tenants together; None if the namespace is exempt.
    """

    quotas: Sequence[Quota] = ()
    shares: dict[str, QuotaShare] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    is_open: bool = True
    ceiling: Ceiling | None = None
    _admitted: dict[QuotaShare, None] = field(default_factory=dict)
    _wait_queue: list[tuple[WriteOrder, str]] = field(default_factory=list)
    _unjudged: deque[str] = field(default_factory=deque)
    _is_over: bool = False

    def admits(self, identity: str) -> bool:
        """Return whether a reservation may hold."""
        share = self.shares.get(identity)
        return share is not None and share.standing is AdmissionState.ADMITTED

    @property
    def pending(self) -> int:
        """The number of reservations that are not admitted."""
        return len(self.shares) - len(self._admitted)

    def limit(self, quotas: Sequence[Quota]) -> None:
        """Replace the quotas; `step` applies them."""
        self.quotas = quotas
        self._unjudged = deque(self.shares)
        self._is_over = self._exceeds()

    def enter(self, share: QuotaShare) -> None:
        """Add a reservation: admit it if no other waits before it, else block it or let it wait."""
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
        """Admit next, before all others, a reservation that is recorded as admitted."""
        share = self.shares[identity]
        if share.standing is not AdmissionState.ADMITTED:
            share.turn, share.standing = share.turn._replace(is_new=False), AdmissionState.WAITING
            self._wait(share)

    def update(self, identity: str, slots: int) -> None:
        """Update the unclaimed slots of a reservation; 0 removes the reservation."""
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
        """Remove a reservation that is no longer written in the namespace."""
        if identity in self.shares:
            self._remove(identity)

    def replace(self, identity: str, after: Reservation) -> bool:
        """Let a reservation that replaces another keep its turn, if it asks for no more.

        Return whether it keeps the turn.
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
        self._unjudged.append(after.identity)  # It may now live longer, or name a node.
        return True

    def step(self) -> str | None:
        """Apply the quotas to one reservation.

        Return its identity, empty if nothing changed; None when no step is left. A step takes a
        few operations, however many reservations there are.
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
        """Yield the result of each step until no step is left."""
        while (identity := self.step()) is not None:
            yield identity

    def trial(self, asked: Mapping[str, int], less: str = "") -> str:
        """Return why an amount could not be admitted at once; empty if it could.

        Args:
            asked: the total amounts of the new reservations.
            less: the identity of the reservation that they would replace.
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
        """Judge a reservation by itself; return whether its state or reason changed."""
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
        is_changed = why != share.why or share.standing is AdmissionState.ADMITTED
        if share.standing is AdmissionState.ADMITTED:
            self._dismiss(share)
        share.standing, share.why = AdmissionState.BLOCKED, why
        return is_changed

    def _loses(self, share: QuotaShare) -> bool:
        """Return whether an edit asks for something forbidden that the former spec did not."""
        before, share.former = share.former, None
        if before is None or not quota.forbids_change(
            self.quotas, before, share.reservation, share.since
        ):
            return False
        share.turn = share.turn._replace(is_new=True)
        return True

    def _beyond(self, share: QuotaShare) -> str:
        """Return the limit that an admitted reservation exceeds; empty if none."""
        why = quota.forbidden(self.quotas, share.reservation, share.since)
        why = why or quota.exceeded(self.quotas, share.asked, {})
        if not why and self._is_over:
            first = quota.exceeded(self.quotas, self.used, {}).partition(",")[0]
            why = f"{first}, by the reservations of the namespace together"
        return f"{why}; {_KEPT}" if why else ""

    def _exceeds(self) -> bool:
        return bool(quota.exceeded(self.quotas, self.used, {}))

    def _never(self, share: QuotaShare) -> str:
        """Return why a reservation could not be admitted even alone; empty if it could."""
        why = quota.forbidden(self.quotas, share.reservation, share.since)
        if not why and quota.exceeded(self.quotas, share.asked, {}):
            others = {} if share.standing is AdmissionState.ADMITTED else self.used
            why = f"{quota.exceeded(self.quotas, share.asked, others)}; {_ASK_FOR_LESS}"
        return why

    def _excess(self, share: QuotaShare) -> str:
        """Return why a reservation has to wait; empty if it need not."""
        why = quota.exceeded(self.quotas, share.asked, self.used)
        if not why and self.ceiling is not None:
            why = self.ceiling.excess(share.reservation, share.asked)
        return f"{why}; {_WAIT}" if why else ""

    @property
    def waits_for_others(self) -> bool:
        """Whether only the ceiling keeps the next reservation waiting."""
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
        if self._is_over != self._exceeds():  # Their reasons change.
            self._is_over = not self._is_over
            self._unjudged.extend(each.reservation.identity for each in self._admitted)

    def _wait(self, share: QuotaShare) -> None:
        if len(self._wait_queue) > _SPARE_ENTRIES + 2 * len(self.shares):
            self._wait_queue = [each for each in self._wait_queue if self._is_queued(*each)]
            heapq.heapify(self._wait_queue)
        heapq.heappush(self._wait_queue, (share.turn, share.reservation.identity))

    def _first(self) -> QuotaShare | None:
        """Return the next waiting share; drop stale entries of the queue before it."""
        while self._wait_queue:
            turn, identity = self._wait_queue[0]
            if self._is_queued(turn, identity):
                return self.shares[identity]
            heapq.heappop(self._wait_queue)
        return None

    def _is_queued(self, turn: WriteOrder, identity: str) -> bool:
        share = self.shares.get(identity)
        return share is not None and share.standing is AdmissionState.WAITING and share.turn == turn
