"""The recaller: deletes borrowers on nodes where holds lack room, or soon will.

It finds needs that no call of kube-scheduler shows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog

from reserver.base.pacer import Pacer
from reserver.base.quarantine import quarantined
from reserver.cluster.pod import Pod
from reserver.errors import ApiError
from reserver.scheduling.pod_events import PodEvent, recalled, recalled_for_room
from reserver.scheduling.recall import RECALL_S, RoomRecall, recalls_for_owners, recalls_for_room
from reserver.scheduling.state import State

log = structlog.get_logger(__name__)

_PASS_EVERY_S = 10.0
"""Seconds between passes; the start of a reservation is seen `AHEAD_S` before."""

OWNERS_S = 2.0
"""Seconds of work that a pass spends on owners' needs; the next pass continues. Ten thousand pods
that fit on none of a thousand seats would take an hour."""


class Recaller:
    """Deletes borrowers for waiting owners, and on nodes that are short of room in two passes."""

    def __init__(
        self,
        clock: Callable[[], float],
        delete: Callable[[Sequence[Pod]], Awaitable[None]],
        report: Callable[[PodEvent], None],
    ) -> None:
        """Begin without short nodes.

        Args:
            clock: unix seconds.
            delete: deletes borrowers; may raise ApiError.
            report: called with each Event on a pod; returns at once.
        """
        self._clock = clock
        self._delete = delete
        self._report = report
        self._short: set[str] = set()
        self._looked_at: dict[str, None] = {}

    async def run(self, state: State, is_up_to_date: Callable[[], Awaitable[bool]]) -> None:
        """Recall until cancelled; passes are skipped while the state is not up to date."""
        pacer = Pacer()
        while True:
            await pacer.rest(_PASS_EVERY_S)
            with quarantined("pass", "recaller"):
                if await pacer.awaited(is_up_to_date()):
                    await self.look(state, is_up_to_date, pacer)

    async def look(
        self, state: State, is_up_to_date: Callable[[], Awaitable[bool]], pacer: Pacer
    ) -> None:
        """Make one pass over all nodes with borrowers; each is judged right before its write.

        A shortage in one pass alone may be an event that a watch has yet to show. Deletions may
        take long: the pass ends if the state is not up to date any more.
        """
        before, self._short = self._short, set()
        for found in recalls_for_room(state, self._clock):
            if found is not None:
                self._short.add(found.node)
                if found.node in before:
                    await pacer.awaited(self._recall_for_room(found, state))
                    if not await pacer.awaited(is_up_to_date()):
                        return
            await pacer.give_way()
        until_s = pacer.worked_s + OWNERS_S
        for wanted in recalls_for_owners(state, self._looked_at):
            if wanted is not None:
                state.ledger.recall(wanted.node, self._clock() + RECALL_S)
                for event in recalled((wanted,)):
                    self._report(event)
                await pacer.awaited(self._recall(wanted.node, wanted.borrowers))
                if not await pacer.awaited(is_up_to_date()):
                    return
            if pacer.worked_s > until_s:
                return
            await pacer.give_way()

    async def _recall_for_room(self, found: RoomRecall, state: State) -> None:
        # Else the room would be lent again until the hold starts.
        state.ledger.recall(found.node, found.until)
        for each in found.borrowers:
            self._report(recalled_for_room(each))
        await self._recall(found.node, found.borrowers)

    async def _recall(self, node: str, borrowers: Sequence[Pod]) -> None:
        try:
            await self._delete(borrowers)
        except ApiError as exc:
            log.warning("borrowers could not be deleted, retrying", node=node, why=str(exc))
