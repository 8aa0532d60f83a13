"""The lag of a view: since when it may lack changes, and when it is complete again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from reserver.base.pacer import Backoff
from reserver.errors import ApiError, InvalidInput, WentBack
from reserver.k8s.client import ApiClient
from reserver.k8s.watch.collection import WatchedCollection, changes, latest

MUTE_AFTER_S = 10.0
"""How long a watch may take to show what was missed, in seconds; its cache may be behind."""

STALE_AFTER_S = 5.0
"""How long changes may be missed before calls are no longer decided, in seconds."""

RELIST_AFTER_S = 30.0
"""After how long without the API server all is listed, in seconds, though the watch would resume:
so long, etcd may have been restored, and have come further than it was before."""


class Lag:
    """Since when a view may lack changes, and how far its watch must get to have shown them.

    An accepted watch proves nothing yet: it shows what was missed only afterwards, and if its
    connection hangs or breaks again, not at all.

    Attributes:
        since: seconds on the event loop's clock; None while the view is complete.
        over: set while the view is complete.
        revision: the watch has shown everything up to this resourceVersion.
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.since: float | None = None
        self.over = asyncio.Event()
        self._goal: int | None = None
        self.revision = 0

    def begin(self, at: float) -> None:
        """Changes after a moment may be missed; keeps the start of a lag already running."""
        self.over.clear()
        self._goal = None
        if self.since is None:
            self.since = at

    def listed(self, at: float, revision: int) -> None:
        """Everything was listed as of a moment or later, at a resourceVersion."""
        self.since = None  # Without `end`: who waits for that would be woken.
        self.revision = revision
        self.begin(at)

    def reached(self, revision: int) -> None:
        """The watch has shown everything up to a resourceVersion."""
        self.revision = revision
        self._compare()

    def aim(self, revision: int) -> None:
        """No missed change is newer than a resourceVersion."""
        self._goal = revision
        self._compare()

    def end(self) -> None:
        """The view is complete."""
        self.since, self._goal = None, None
        self.over.set()

    def _compare(self) -> None:
        if self._goal is not None and self.revision >= self._goal:
            self.end()


async def catch_up(client: ApiClient, collection: WatchedCollection, lag: Lag) -> None:
    """Find out what a watch that was just accepted must show, and return once it has.

    Raises:
        ApiError: 410, nobody remembers what was missed: all has to be listed. Or the watch says
            nothing: it has to be started over.
        WentBack: what the watch goes on from has not happened.
    """
    await _find_missed(client, collection, lag)
    while not lag.over.is_set():
        told = lag.revision
        with suppress(TimeoutError):
            async with asyncio.timeout(MUTE_AFTER_S):
                await lag.over.wait()
        if not lag.over.is_set() and lag.revision == told:
            raise ApiError(0, "MuteWatch", "the watch does not tell what was missed before it")


async def _find_missed(client: ApiClient, collection: WatchedCollection, lag: Lag) -> None:
    """Find out how far a watch that was just accepted must get for the view to be complete.

    On a busy collection it soon shows a newer change; otherwise another watch must tell.

    Raises:
        ApiError: 410, nobody remembers what was missed: all has to be listed.
        WentBack: what the watch goes on from has not happened.
    """
    since, backoff = lag.revision, Backoff(0.2, 5.0)
    while True:
        try:
            now = await latest(client, collection)
            require_progress(since, now)
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


def require_progress(before: int, now: int) -> None:
    """Compare two resourceVersions: of what was seen, and of a list that was asked for afterwards.

    Lists without a resourceVersion are linearizable, whichever of several API servers answers and
    however far its watch cache is behind (KEP-2340): the later is never less.

    Raises:
        WentBack: it is.
    """
    if now < before:
        raise WentBack(f"it is at resourceVersion {now} and was at {before}")


class Awaited:
    """Conditions that somebody waits for."""

    def __init__(self) -> None:
        """Begin with none."""
        self._conditions: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once a condition is true; call `check` when it may have become true."""
        if not condition():
            true = asyncio.get_running_loop().create_future()
            self._conditions.append((condition, true))
            await true

    def check(self) -> None:
        """Wake those whose condition is true."""
        conditions, self._conditions = self._conditions, []
        for condition, true in conditions:
            if true.done():
                continue  # Nobody waits any more.
            if condition():
                true.set_result(None)
            else:
                self._conditions.append((condition, true))
