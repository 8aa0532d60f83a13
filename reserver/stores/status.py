"""The status writer of a store, which acknowledges reservations: the base of both kinds.

It follows the ledger: a status is Active only once the hold is in force, and enforcement does not
wait for a status.
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
"""Seconds between two passes, the longest wait of a change."""

_TAKEN_AT_ONCE = 1000
"""Most refs taken from the queue in one step of a pass."""

Warn = Callable[[Metadata, str, str], None]
"""Queues a Warning event for an object, with a reason and a message."""


MayWrite = Callable[[], Awaitable[bool]]
"""Returns whether this process may write statuses now."""


async def always() -> bool:
    """Allow every write."""
    return True


class RoomReport:
    """Reports each reservation whose node has become short of room or closed, or is so no longer.

    Every reader of a status calls `look`: otherwise a node that is short for an instant between two
    passes could be shown as short for good.
    """

    def __init__(self, changed: Callable[[Ref], None]) -> None:
        """Begin without reservations; `changed` is called with each to report."""
        self._changed = changed
        self._refs: dict[Ref, None] = {}
        self._short_nodes = ShortNodes({}, frozenset())

    def look(self, state: State, now: float) -> ShortNodes:
        """Return the short nodes at `now` (unix seconds), and queue changes for `report`.

        A changed node queues only its own reservations.
        """
        state.ledger.advance(now)
        before, after = self._short_nodes, ShortNodes.of(state.snapshot)
        self._short_nodes = after
        if after.offered != before.offered:  # Rare: the first node with a kind of device.
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
        """Report each reservation whose node has changed, one per step."""
        self.look(state, now)
        while self._refs:
            ref = next(iter(self._refs))
            del self._refs[ref]
            self._changed(ref)
            yield


C = TypeVar("C", bound=Cache[Any, Any])


@dataclass(eq=False, repr=False)
class Statuses(ABC, Generic[C]):
    """Keeps the statuses of one kind of store up to date.

    Attributes:
        name: the name of its passes in the log.
        cache: the cache of the store.
        warn: queues a Warning event.
        room: reports holds that may have lost their backing or got it back.
        acknowledged: called with each ref whose status is written for the first time.
        violated: called with each ref whose hold was backed and has lost its room.
        queue: the refs whose status may have changed.
        writes: the number of writes made.
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
        """Begin with an empty queue."""
        self.queue = WorkQueue(self.name)

    @property
    def now(self) -> float:
        """The present time, in unix seconds."""
        return self.cache.clock()

    def _due_refs(self) -> Iterator[list[Ref]]:
        """Yield the due refs, in groups of at most `_TAKEN_AT_ONCE`."""
        refs = self.queue.take_all(_TAKEN_AT_ONCE)
        left = self.queue.depth
        while refs:
            yield refs
            refs = self.queue.take_all(min(left, _TAKEN_AT_ONCE)) if left else []
            left -= len(refs)

    async def run(self, state: State, is_up_to_date: MayWrite, may_write: MayWrite) -> None:
        """Write until cancelled, whenever the caches are up to date.

        Args:
            state: the ledger, the snapshot and the pods.
            is_up_to_date: called before each pass, which it may skip.
            may_write: called after computing the statuses, before sending them.
        """
        while True:
            with quarantined("pass", self.name):
                if await is_up_to_date():
                    await self.write(state, may_write)
            await asyncio.sleep(PASS_EVERY_S)

    @abstractmethod
    async def write(self, state: State, may_write: MayWrite = always) -> None:
        """Write the statuses that have changed; a failed write is repeated later."""

    async def recall(self, ledger: Ledger) -> None:
        """Restore state of earlier processes from statuses that the watch does not show."""
