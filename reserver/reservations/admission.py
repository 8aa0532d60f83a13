"""Admission: which reservations of one namespace its quotas let hold (docs/adr/0018).

Those are the first in the order of writing that meet all quotas together. Whoever could not come in
if it were alone is passed over, so that it keeps nobody else out. Who is in stays in: what others
write, and what ends, dismisses nobody; only lower limits do, the newest first.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from reserver.reservations.quota import Quota, exceeded, forbidden, usage
from reserver.reservations.reservation import Reservation

_SPARE_ROW = 64
"""So many that do not wait any more may stand in a row, beside as many as there are shares."""


_WAIT = "it holds once there is room in the quota"
_ASK_FOR_LESS = "ask for less, or have the quota raised"


class Turn(NamedTuple):
    """A turn in the order of writing.

    Attributes:
        is_new: it is not written that it was let in before this process began.
        at: when it was written, unix seconds.
        number: later ones are greater.
    """

    is_new: bool
    at: float
    number: int


class Standing(Enum):
    """The state of a reservation in admission."""

    WAITING = auto()
    ADMITTED = auto()
    BLOCKED = auto()
    """It could not come in if it were alone."""


@dataclass(slots=True, eq=False)
class Share:
    """The share of the quotas that one reservation asks for.

    Attributes:
        reservation: what is written.
        asked: what it counts for, as far as it is not claimed.
        turn: when it is its turn.
        since: when it was written, unix seconds.
        standing: what became of it.
        why: why it is not admitted.
    """

    reservation: Reservation
    asked: Mapping[str, int]
    turn: Turn
    since: float
    standing: Standing = Standing.WAITING
    why: str = ""


@dataclass(slots=True)
class Admission:
    """Decides which reservations of one namespace may hold.

    Attributes:
        quotas: all of them have to be met.
        shares: what its reservations ask for, by identity.
        used: what those that are admitted count for.
        is_open: reservations are admitted.
    """

    quotas: Sequence[Quota] = ()
    shares: dict[str, Share] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    is_open: bool = True
    _admitted: dict[Share, None] = field(default_factory=dict)
    _row: list[tuple[Turn, str]] = field(default_factory=list)
    _unjudged: deque[str] = field(default_factory=deque)
    _may_exceed: bool = False

    def admits(self, identity: str) -> bool:
        """Return whether a reservation may hold."""
        share = self.shares.get(identity)
        return share is not None and share.standing is Standing.ADMITTED

    @property
    def pending(self) -> int:
        """How many reservations are not admitted."""
        return len(self.shares) - len(self._admitted)

    def limit(self, quotas: Sequence[Quota]) -> None:
        """Take other quotas; `step` does what follows from them."""
        self.quotas = quotas
        self._unjudged = deque(self.shares)
        self._may_exceed = True

    def enter(self, share: Share) -> None:
        """Let a reservation stand in the row, and in if nobody waits before it."""
        identity = share.reservation.identity
        self.shares[identity] = share
        share.why = self._never(share)
        if share.why:
            share.standing = Standing.BLOCKED
            return
        first = self._first() if self.is_open else None
        if self.is_open and not self._unjudged and first is None and self._fits(share):
            self._admit(share)
            return
        self._wait(share)
        if first is not None and not self._excess(share):
            before = first.reservation.ref
            share.why = f"waits behind {before}, which was written before it: {first.why}"
        else:
            share.why = self._excess(share)

    def put_first(self, identity: str) -> None:
        """Let a reservation stand before all of which it is not written that they were in."""
        share = self.shares[identity]
        if share.standing is not Standing.ADMITTED:
            share.turn = share.turn._replace(is_new=False)
            if share.standing is Standing.WAITING:
                self._wait(share)

    def update(self, identity: str, slots: int) -> None:
        """Note how many slots of a reservation are left to claim; 0 if it is over."""
        share = self.shares[identity]
        if not slots:
            self._remove(identity)
            return
        asked = usage(share.reservation, slots)
        if asked == share.asked:
            return
        if share.standing is Standing.ADMITTED:
            self._count(share.asked, -1)
            self._count(asked, 1)
        share.asked = asked
        if share.standing is Standing.BLOCKED:
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
        if share is None or after.identity in self.shares:
            return False
        asked = usage(after, after.slots)
        if any(amount > share.asked.get(counted, 0) for counted, amount in asked.items()):
            return False
        if share.standing is Standing.ADMITTED:
            self._count(share.asked, -1)
            self._count(asked, 1)
        del self.shares[identity]
        self.shares[after.identity] = share
        share.reservation, share.asked = after, asked
        if share.standing is Standing.WAITING:
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
        if self._may_exceed and self._admitted and exceeded(self.quotas, self.used, {}):
            return self._suspend(next(reversed(self._admitted)))
        self._may_exceed = False
        share = self._first()
        if share is None:
            return None
        why = self._excess(share)
        if why and why == share.why:
            return None
        share.why = why
        if not why:
            self._admit(share)
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
        why = exceeded(self.quotas, asked, used)
        first = self._first()
        if not why and first is not None and first.reservation.identity != less:
            return f"{first.reservation.ref} waits before it: {first.why}"
        return why

    def _judge(self, share: Share) -> bool:
        """Judge a reservation by itself; return whether something else is the case now."""
        why = self._never(share)
        if not why:
            if share.standing is not Standing.BLOCKED:
                return False
            share.standing, share.why = Standing.WAITING, self._excess(share)
            self._wait(share)
            return True
        is_news = why != share.why
        if share.standing is Standing.ADMITTED:
            self._dismiss(share)
        share.standing, share.why = Standing.BLOCKED, why
        return is_news

    def _never(self, share: Share) -> str:
        """Return why a reservation could not come in if it were alone."""
        why = forbidden(self.quotas, share.reservation, share.since)
        if not why and exceeded(self.quotas, share.asked, {}):
            others = {} if share.standing is Standing.ADMITTED else self.used
            why = f"{exceeded(self.quotas, share.asked, others)}; {_ASK_FOR_LESS}"
        return why

    def _excess(self, share: Share) -> str:
        """Return why a reservation has to wait."""
        why = exceeded(self.quotas, share.asked, self.used)
        return f"{why}; {_WAIT}" if why else ""

    def _fits(self, share: Share) -> bool:
        return not self._excess(share)

    def _admit(self, share: Share) -> None:
        share.standing, share.why = Standing.ADMITTED, ""
        self._admitted[share] = None
        self._count(share.asked, 1)

    def _dismiss(self, share: Share) -> None:
        del self._admitted[share]
        self._count(share.asked, -1)

    def _suspend(self, share: Share) -> str:
        """Let one that is admitted wait again."""
        self._dismiss(share)
        share.standing, share.why = Standing.WAITING, self._excess(share)
        self._wait(share)
        return share.reservation.identity

    def _remove(self, identity: str) -> None:
        share = self.shares.pop(identity)
        if share.standing is Standing.ADMITTED:
            self._dismiss(share)

    def _count(self, asked: Mapping[str, int], sign: int) -> None:
        for counted, amount in asked.items():
            total = self.used.get(counted, 0) + sign * amount
            if total:
                self.used[counted] = total
            else:
                self.used.pop(counted, None)

    def _wait(self, share: Share) -> None:
        if len(self._row) > _SPARE_ROW + 2 * len(self.shares):
            self._row = [each for each in self._row if self._is_in_row(*each)]
            heapq.heapify(self._row)
        heapq.heappush(self._row, (share.turn, share.reservation.identity))

    def _first(self) -> Share | None:
        """Return whose turn it is of those that wait; what is in the row in vain goes."""
        while self._row:
            turn, identity = self._row[0]
            if self._is_in_row(turn, identity):
                return self.shares[identity]
            heapq.heappop(self._row)
        return None

    def _is_in_row(self, turn: Turn, identity: str) -> bool:
        share = self.shares.get(identity)
        return share is not None and share.standing is Standing.WAITING and share.turn == turn
