"""The status writer of a store: acknowledges reservations. Both kinds of stores share it.

It follows the ledger: a status says Active only once the hold is in force, and enforcement does not
wait for any status.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from reserver.base.pacer import Steps
from reserver.base.quarantine import quarantined
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import Metadata
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State
from reserver.stores.cache import Cache

PASS_EVERY_S = 0.5
"""How long a change waits at most before it is written, in seconds."""

_TAKEN_AT_ONCE = 1000
"""How many refs are taken in one step of a pass."""

Warn = Callable[[Metadata, str, str], None]
"""Takes an object, a reason and a message, and has a Warning event written."""


MayWrite = Callable[[], Awaitable[bool]]
"""Returns whether what is known may be written, now."""


async def always() -> bool:
    """Let all be written."""
    return True


class RoomReport:
    """Reports each reservation whose node has become short, closed, or neither any more.

    All that shows a status looks here: else a node that is short for an instant, between two
    passes, would be shown as short for good.
    """

    def __init__(self, changed: Callable[[Ref], None]) -> None:
        """Call `changed` with reservations."""
        self._changed = changed
        self._refs: dict[Ref, None] = {}
        self._short_nodes = ShortNodes({}, frozenset())

    def look(self, state: State, now: float) -> ShortNodes:
        """Return where room is short at `now` (unix seconds); `report` follows what has changed.

        A node that changes costs a look at the reservations on it, and at no others.
        """
        state.ledger.advance(now)
        before, after = self._short_nodes, ShortNodes.of(state.snapshot)
        self._short_nodes = after
        if after.offered != before.offered:  # Rare: some node has a kind of device that none had.
            self._refs |= dict.fromkeys(state.ledger.refs())
        nodes = {
            node for each in (before, after) for node in (*each.by_node, *each.closed, *each.guests)
        }
        for node in nodes:
            is_as_short = before.by_node.get(node, ()) == after.by_node.get(node, ())
            is_as_open = before.closed.get(node) == after.closed.get(node)
            is_as_full = before.guests.get(node) == after.guests.get(node)
            if not (is_as_short and is_as_open and is_as_full):
                self._refs |= dict.fromkeys(each.ref for each in state.ledger.holding_on(node))
        return after

    def report(self, state: State, now: float) -> Steps:
        """Report each reservation whose node has changed, one in a step."""
        self.look(state, now)
        while self._refs:
            ref = next(iter(self._refs))
            del self._refs[ref]
            self._changed(ref)
            yield


C = TypeVar("C", bound=Cache[Any, Any])


@dataclass(eq=False, repr=False)
class Statuses(ABC, Generic[C]):
    """Keeps what one kind of store says of its reservations up to date.

    Attributes:
        name: what its passes are called in the log.
        cache: what is written.
        warn: has a Warning event written.
        room: reports holds that may not be backed any more, or again.
        acknowledged: called with each ref that a status is written of for the first time.
        violated: called with each ref whose hold had its room, and has lost it.
        queue: of the refs whose status may have changed.
        writes: how many writes were made.
    """

    name: ClassVar[str]

    client: ApiClient
    cache: C
    warn: Warn
    room: RoomReport
    acknowledged: Callable[[Ref], None] = field(default=lambda _: None, kw_only=True)
    violated: Callable[[Ref], None] = field(default=lambda _: None, kw_only=True)
    writes: int = field(default=0, init=False)
    queue: WorkQueue[Ref] = field(init=False)

    def __post_init__(self) -> None:
        """Begin without keys."""
        self.queue = WorkQueue(self.name)

    @property
    def now(self) -> float:
        """This moment, in unix seconds."""
        return self.cache.clock()

    def _due_refs(self) -> Iterator[list[Ref]]:
        """Yield what is due by now, in parts that take no long step."""
        refs = self.queue.take_all(_TAKEN_AT_ONCE)
        left = self.queue.depth
        while refs:
            yield refs
            refs = self.queue.take_all(min(left, _TAKEN_AT_ONCE)) if left else []
            left -= len(refs)

    async def run(self, state: State, is_up_to_date: MayWrite, may_write: MayWrite) -> None:
        """Write until cancelled, whenever it may be written what is known.

        Args:
            state: what is known.
            is_up_to_date: asked before each pass.
            may_write: asked once it is known what is to be written, before that is sent.
        """
        while True:
            with quarantined("pass", self.name):
                if await is_up_to_date():
                    await self.write(state, may_write)
            await asyncio.sleep(PASS_EVERY_S)

    @abstractmethod
    async def write(self, state: State, may_write: MayWrite = always) -> None:
        """Write what has changed since the last time; what cannot be written is tried later."""

    async def recall(self, ledger: Ledger) -> None:
        """Let the ledger know what was said before the start, unless the watch shows that."""
