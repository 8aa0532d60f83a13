"""The lag of a view: the time from which changes may be missing, until it is complete again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from reserver.base.pacer import Backoff
from reserver.errors import ApiError, InvalidInput, WentBack
from reserver.k8s.client import ApiClient
from reserver.k8s.watch.collection import WatchedCollection, changes, latest

MUTE_AFTER_S = 10.0
"""Seconds in which a watch must show missed changes; its cache may be behind."""

STALE_AFTER_S = 5.0
"""Longest lag, in seconds, with which calls are still decided."""

RELIST_AFTER_S = 30.0
"""Seconds without the API server after which all objects are listed, although the watch would
resume: etcd may have been restored meanwhile, and have passed its former revision."""


class Lag:
    """The start of a view's lag, and the resourceVersion at which its watch has caught up.

    An accepted watch proves nothing yet: it shows missed changes only afterwards, and none if its
    connection hangs or breaks again.

    Attributes:
        since: start of the lag in seconds of the event loop's clock; None while the view is
            complete.
        over: set while the view is complete.
        revision: the watch has shown all changes up to this resourceVersion.
    """

    def __init__(self) -> None:
        """Begin without a list."""
        self.since: float | None = None
        self.over = asyncio.Event()
        self._goal: int | None = None
        self.revision = 0

    def begin(self, at: float) -> None:
        """Begin a lag: changes after `at` may be missing; the start of a running lag stays."""
        self.over.clear()
        self._goal = None
        if self.since is None:
            self.since = at

    def listed(self, at: float, revision: int) -> None:
        """Handle a complete list with the state at `at` or later, at a resourceVersion."""
        self.since = None  # Without `end`, which would wake its waiters.
        self.revision = revision
        self.begin(at)

    def reached(self, revision: int) -> None:
        """Handle a watch that has shown all changes up to a resourceVersion."""
        self.revision = revision
        if self._goal is not None and revision >= self._goal:
            self.end()

    def aim(self, revision: int) -> None:
        """Set the resourceVersion of the newest missed change."""
        self._goal = revision
        self.reached(self.revision)

    def end(self) -> None:
        """End the lag: the view is complete."""
        self.since, self._goal = None, None
        self.over.set()


async def catch_up(client: ApiClient, collection: WatchedCollection, lag: Lag) -> None:
    """Determine the changes that a new watch must show, and return once it has shown them.

    Raises:
        ApiError: 410 if the API server no longer has the changes, so that a new list is needed. Or
            the watch shows no events, and must be restarted.
        WentBack: the watch's resourceVersion is newer than the API server's data.
    """
    await _find_missed(client, collection, lag)
    while not lag.over.is_set():
        before = lag.revision
        with suppress(TimeoutError):
            async with asyncio.timeout(MUTE_AFTER_S):
                await lag.over.wait()
        if not lag.over.is_set() and lag.revision == before:
            raise ApiError(0, "MuteWatch", "the watch does not tell what was missed before it")


async def _find_missed(client: ApiClient, collection: WatchedCollection, lag: Lag) -> None:
    """Determine the resourceVersion that a new watch must reach for the view to be complete.

    On a busy collection the watch soon shows a newer change; otherwise a second watch reports it.

    Raises:
        ApiError: 410 if the API server no longer has the changes, so that a new list is needed.
        WentBack: the watch's resourceVersion is newer than the API server's data.
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
    """Check that a later list's resourceVersion `now` is not below `before`, which was seen.

    Lists without a resourceVersion are linearizable, whichever of several API servers answers and
    however far its watch cache is behind (KEP-2340), so the resourceVersion never decreases.

    Raises:
        WentBack: it has decreased.
    """
    if now < before:
        raise WentBack(f"it is at resourceVersion {now} and was at {before}")


class Awaited:
    """Conditions with waiting tasks."""

    def __init__(self) -> None:
        """Begin without conditions."""
        self._conditions: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once a condition is true; call `check` when it may have become true."""
        if not condition():
            true = asyncio.get_running_loop().create_future()
            self._conditions.append((condition, true))
            await true

    def check(self) -> None:
        """Wake the tasks whose condition is true."""
        conditions, self._conditions = self._conditions, []
        for condition, true in conditions:
            if true.done():
                continue  # The task was cancelled.
            if condition():
                true.set_result(None)
            else:
                self._conditions.append((condition, true))
