"""The count of a patch: which of its slots are spent, handed out, or left (docs/adr/0035).

A patch has `maxCount` slots, numbered from 0. A process hands out only slots that the status of the
patch has recorded for it, so no two processes ever hand out the same one, and handing one out needs
no write. The pod carries its slot's number; once the watch shows such a pod, the slot is spent for
good. A slot whose pod does not appear comes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

RETURN_AFTER_S = 45.0
"""After this long a pod that was not shown yet will never be, in seconds.

An API server gives a creation 34 seconds (requestTimeoutUpperBound in
apiserver/pkg/endpoints/handlers/rest.go), etcd a few more to commit it; and who answers has a view
that is at most 5 seconds old.
"""

STOCK = 64
"""How many slots a process has recorded for itself at once."""

LOW_STOCK = 16
"""With fewer left than this, it has more recorded."""


@dataclass(frozen=True, slots=True)
class Stock:
    """The slots that one process may hand out.

    Attributes:
        by: names the process, and which of its stocks it is: a name never comes again.
        slots: their numbers.
        is_revoked: it may hand out none any more: a successor takes them over.
    """

    by: str
    slots: frozenset[int]
    is_revoked: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """The record of slots in the status of a SchedPatch.

    Attributes:
        spent: those that pods have.
        stocks: those that processes may hand out, one stock for each.
    """

    spent: frozenset[int] = frozenset()
    stocks: tuple[Stock, ...] = ()


class PatchSlots:
    """The slots of one patch, as one process sees them.

    It guarantees that spent slots stay spent, and that `take` gives no slot that another process
    may give, none twice, and none beyond the count.

    Attributes:
        max_count: how many there are; those beyond it that are spent already stay so.
        spent: those that pods have.
    """

    def __init__(self, identity: str, max_count: int) -> None:
        """Begin with nothing recorded for the process of this identity."""
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
        """Take what the status says.

        Args:
            record: what it says.
            revision: the resourceVersion that it is of; older ones than before change nothing.
            now: unix seconds.
            inherits: the process has just begun: who is named is a predecessor.
        """
        self.spent |= record.spent
        if revision < self._revision:
            return
        self._revision = revision
        self._stocks = {stock.by: stock for stock in record.stocks}
        own = self._stocks.get(self._name)
        if own.is_revoked if own else self._has_own:
            self._stocks_had += 1  # It is another's to take over, or was; the next has a new name.
        self._has_own = self._own is not None
        for by, stock in self._stocks.items():
            if by == self._name:
                continue
            if inherits:
                self._inherited.setdefault(by, None)
            if stock.is_revoked and self._inherited.get(by, now) is None:
                self._inherited[by] = now + RETURN_AFTER_S

    def appeared(self, slot: int) -> bool:
        """Note that a pod with a slot exists; return whether that is news."""
        self._handed_out.pop(slot, None)
        is_news = slot not in self.spent
        self.spent.add(slot)
        return is_news

    def lapse(self, now: float) -> None:
        """Take back the slots whose pods have not appeared; the view has to be current."""
        for slot in [slot for slot, at in self._handed_out.items() if at <= now]:
            del self._handed_out[slot]

    def take(self, now: float) -> int | None:
        """Hand out a slot; None if there is none now."""
        if not self.has_left:
            return None
        slot = min(self._left())
        self._handed_out[slot] = now + RETURN_AFTER_S
        return slot

    def is_out(self, slot: int) -> bool:
        """Return whether a slot was handed out and its pod has not appeared."""
        return slot in self._handed_out

    @property
    def is_spent(self) -> bool:
        """Whether there will be no slot any more unless the count is raised."""
        return len(self.spent) >= self.max_count

    @property
    def has_left(self) -> bool:
        """Whether `take` gives one."""
        return bool(self._left()) and self._promised() < self.max_count

    @property
    def may_have_more(self) -> bool:
        """Whether a write of the status may record slots for this process."""
        return bool(self._unrecorded(1))

    def wanted(self, now: float, *, is_over: bool) -> Record:
        """Return what the status should say.

        Args:
            now: unix seconds.
            is_over: no further slot will be handed out.
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
        """Return when the slots of a predecessor come back next, unix seconds."""
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
        """Return how many slots pods have, or may get from anybody but by the next `take`."""
        taken = self.spent | self._handed_out.keys()
        for by, stock in self._stocks.items():
            if by != self._name:
                taken |= stock.slots
        return len(taken)

    def _unrecorded(self, most: int) -> frozenset[int]:
        """Return slots that are recorded for nobody."""
        taken = self.spent | self._handed_out.keys()
        for stock in self._stocks.values():
            taken |= stock.slots
        count = min(most, self.max_count - len(taken))
        free = (slot for slot in range(self.max_count) if slot not in taken)
        return frozenset(islice(free, max(0, count)))

    def _others(self, stock: Stock, now: float) -> Stock | None:
        """Return what another's stock should be; None if nothing is left of it."""
        if stock.by == self._name:
            return None
        rest = stock.slots - self.spent
        if stock.by in self._inherited:
            free_at = self._inherited[stock.by]
            if free_at is not None and now >= free_at:
                return None
            stock = Stock(stock.by, stock.slots, is_revoked=True)
        return Stock(stock.by, rest, stock.is_revoked) if rest else None
