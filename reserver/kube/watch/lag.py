"""Since when a view of a collection may lack changes, and when it lacks them no more."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from reserver.backoff import Backoff
from reserver.errors import ApiError, InvalidInput
from reserver.kube.api.client import ApiClient
from reserver.kube.watch.interval import Collection, changes, latest

MUTE_AFTER_S = 10.0
"""How long a watch may keep to itself what was missed, in seconds; its cache may be behind."""


class Lag:
    """Since when a view may lack changes, and how far its watch has to come to have told them.

    That the API server has accepted a watch tells nothing yet: what was missed comes afterwards,
    and with a connection that hangs, or breaks again, it does not come.

    Attributes:
        since: seconds on the event loop's clock; None while nothing is known to lack.
        over: set while nothing is known to lack.
        revision: up to this resourceVersion all has been told.
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.since: float | None = None
        self.over = asyncio.Event()
        self._goal: int | None = None
        self.revision = 0

    def begin(self, at: float) -> None:
        """Changes after a moment may be missed; one that began before goes on."""
        self.over.clear()
        self._goal = None
        if self.since is None:
            self.since = at

    def listed(self, at: float, revision: int) -> None:
        """All has been listed as it was at a moment or later, and at a resourceVersion."""
        self.since = None  # Without `end`: who waits for that would be woken.
        self.revision = revision
        self.begin(at)

    def reached(self, revision: int) -> None:
        """The watch has told all up to a resourceVersion."""
        self.revision = revision
        self._compare()

    def aim(self, revision: int) -> None:
        """Nothing was missed before the watch began that is younger than a resourceVersion."""
        self._goal = revision
        self._compare()

    def end(self) -> None:
        """Nothing lacks."""
        self.since, self._goal = None, None
        self.over.set()

    def _compare(self) -> None:
        if self._goal is not None and self.revision >= self._goal:
            self.end()


async def catch_up(client: ApiClient, collection: Collection, lag: Lag) -> None:
    """Find out what a watch that was just accepted has to tell, and return once it has.

    Raises:
        ApiError: 410, nobody remembers what was missed: all has to be listed. Or the watch says
            nothing: it has to be begun anew.
    """
    await _find_missed(client, collection, lag)
    while not lag.over.is_set():
        told = lag.revision
        with suppress(TimeoutError):
            async with asyncio.timeout(MUTE_AFTER_S):
                await lag.over.wait()
        if not lag.over.is_set() and lag.revision == told:
            raise ApiError(0, "MuteWatch", "the watch does not tell what was missed before it")


async def _find_missed(client: ApiClient, collection: Collection, lag: Lag) -> None:
    """Find out how far a watch that was just accepted has to come until nothing lacks.

    Where much happens, it has soon told something younger; else another watch has to tell.

    Raises:
        ApiError: 410, nobody remembers what was missed: all has to be listed.
    """
    since, backoff = lag.revision, Backoff(0.2, 5.0)
    while True:
        try:
            now = await latest(client, collection)
            lag.aim(now)
            if not lag.over.is_set():
                missed = [revision async for revision, _ in changes(client, collection, since, now)]
                lag.aim(max(missed, default=since))
        except (ApiError, InvalidInput) as exc:
            if isinstance(exc, ApiError) and exc.is_forgotten:
                raise
            await backoff.sleep()
        else:
            return
