"""The slots of a patch: spent, handed out, or free (docs/adr/0035).

A patch has `maxCount` slots, numbered from 0. A process hands out only slots that the patch's
status has recorded for it (its stock), so no two processes hand out the same slot, and no write is
needed. The pod carries its slot's number; once the watch shows the pod, the slot is spent for good.
A slot whose pod does not appear becomes free again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

RETURN_AFTER_S = 45.0
"""Seconds after which a slot without a pod is free again: the pod will never appear.

The API server allows 34 seconds for a creation (requestTimeoutUpperBound in
apiserver/pkg/endpoints/handlers/rest.go), etcd takes a few more to commit it, and Reserver's view
is at most 5 seconds old.
"""

STOCK = 64
"""Slots that a process keeps recorded for itself."""

LOW_STOCK = 16
"""With fewer unused slots than this, a process has more recorded."""


@dataclass(frozen=True, slots=True)
class Stock:
    """The slots that one process may hand out.

    Attributes:
        by: the process and the number of its stock: a unique name.
        slots: the numbers of the slots.
        is_revoked: the process may hand out no more slots: a successor takes them over.
    """

    by: str
    slots: frozenset[int]
    is_revoked: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """The record of slots in the status of a SchedPatch.

    Attributes:
        spent: the slots of pods.
        stocks: the slots that processes may hand out, one stock for each process.
    """

    spent: frozenset[int] = frozenset()
    stocks: tuple[Stock, ...] = ()


class PatchSlots:
    """The slots of one patch, as one process sees them.

    Spent slots stay spent, and `take` returns no slot that another process may hand out, no slot
    twice, and no slot beyond the count.

    Attributes:
        max_count: the number of slots; spent slots beyond it stay spent.
        spent: the slots of pods.
    """

    def __init__(self, identity: str, max_count: int) -> None:
        """Begin without a stock for the process of this identity."""
        self._identity = identity
        self._stocks_had = 0
        self._has_own = False
        self.max_count = max_count
        self.spent: set[int] = set()
        self._stocks: dict[str, Stock] = {}
        self._handed_out: dict[int, float] = {}
        self._inherited: dict[str, float | None] = {}
        self._revision = 0

    def recorded(self, record: Record, revision: int, now: float, *, inherits: bool) -> None:
        """Take the record of the status.

        Args:
            record: the record.
            revision: its resourceVersion; of an older record only spent slots count.
            now: unix seconds.
            inherits: the process has just started: other stocks belong to predecessors.
        """
        self.spent |= record.spent
        if revision < self._revision:
            return
        self._revision = revision
        self._stocks = {stock.by: stock for stock in record.stocks}
        own = self._stocks.get(self._name)
        if own.is_revoked if own else self._has_own:
            self._stocks_had += (
                1  # Another process takes the stock over; the next one has a new name.
            )
        self._has_own = self._own is not None
        for by, stock in self._stocks.items():
            if by == self._name:
                continue
            if inherits:
                self._inherited.setdefault(by, None)
            if stock.is_revoked and self._inherited.get(by, now) is None:
                self._inherited[by] = now + RETURN_AFTER_S

    def appeared(self, slot: int) -> bool:
        """Count the slot of an existing pod as spent; return whether it was not before."""
        self._handed_out.pop(slot, None)
        is_new = slot not in self.spent
        self.spent.add(slot)
        return is_new

    def lapse(self, now: float) -> None:
        """Free handed-out slots whose pods have not appeared in time; needs a current view.

        After the clock was set back, slots wait as if they were handed out now.
        """
        latest = now + RETURN_AFTER_S
        out = self._handed_out.items()
        self._handed_out = {slot: min(at, latest) for slot, at in out if at > now}
        for by, at in self._inherited.items():
            self._inherited[by] = None if at is None else min(at, latest)

    def take(self, now: float) -> int | None:
        """Hand out a slot; None without a free one."""
        if not self.has_left:
            return None
        slot = min(self._left())
        self._handed_out[slot] = now + RETURN_AFTER_S
        return slot

    def is_out(self, slot: int) -> bool:
        """Return whether a slot is handed out and its pod has not appeared yet."""
        return slot in self._handed_out

    @property
    def is_spent(self) -> bool:
        """Whether all slots are spent, unless the count is raised."""
        return len(self.spent) >= self.max_count

    @property
    def has_left(self) -> bool:
        """Whether `take` returns a slot."""
        return bool(self._left()) and self._promised() < self.max_count

    @property
    def may_have_more(self) -> bool:
        """Whether a write of the status may record slots for this process."""
        return bool(self._unrecorded(1))

    def wanted(self, now: float, *, is_over: bool) -> Record:
        """Return the desired record of the status.

        Args:
            now: unix seconds.
            is_over: no more slots will be handed out.
        """
        stocks = [stock for each in self._stocks.values() if (stock := self._others(each, now))]
        kept = self._own.slots - self.spent if self._own else frozenset()
        if is_over:
            kept &= self._handed_out.keys()
        elif len(self._left()) < LOW_STOCK:
            kept |= self._unrecorded(STOCK - len(self._left()))
        if kept:
            stocks.append(Stock(self._name, frozenset(kept)))
        stocks.sort(key=lambda stock: stock.by)
        return Record(frozenset(self.spent), tuple(stocks))

    def next_at(self) -> float | None:
        """Return when a predecessor's slots next become free, unix seconds; or None."""
        times = [at for by, at in self._inherited.items() if at is not None and by in self._stocks]
        return min(times, default=None)

    @property
    def _name(self) -> str:
        return f"{self._identity}/{self._stocks_had}"

    @property
    def _own(self) -> Stock | None:
        return self._stocks.get(self._name)

    def _left(self) -> frozenset[int] | set[int]:
        own = self._own
        if own is None:
            return frozenset()
        left = own.slots - self.spent - self._handed_out.keys()
        return {slot for slot in left if slot < self.max_count}

    def _promised(self) -> int:
        """Return the number of slots that are spent, handed out, or in other processes' stocks."""
        taken = self.spent | self._handed_out.keys()
        for by, stock in self._stocks.items():
            if by != self._name:
                taken |= stock.slots
        return len(taken)

    def _unrecorded(self, most: int) -> frozenset[int]:
        """Return at most `most` slots that are in no stock, and neither spent nor handed out."""
        taken = self.spent | self._handed_out.keys()
        for stock in self._stocks.values():
            taken |= stock.slots
        count = min(most, self.max_count - len(taken))
        free = (slot for slot in range(self.max_count) if slot not in taken)
        return frozenset(islice(free, max(0, count)))

    def _others(self, stock: Stock, now: float) -> Stock | None:
        """Return the desired stock of another process; None if empty or taken over."""
        if stock.by == self._name:
            return None
        rest = stock.slots - self.spent
        if stock.by in self._inherited:
            free_at = self._inherited[stock.by]
            if free_at is not None and now >= free_at:
                return None
            stock = Stock(stock.by, stock.slots, is_revoked=True)
        return Stock(stock.by, rest, stock.is_revoked) if rest else None
