"""Detects that the API server's data is older than before: etcd was restored from a backup.

If the API server keeps running meanwhile, its caches, which serve lists and watches, do not notice.
But it reads a single object from etcd by a quorum (`Get` in apiserver's storage/cacher/cacher.go):
an object that is older there than in a view was changed after the time of the backup.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NoReturn

import structlog

from reserver.base.clock import elapsed
from reserver.base.pacer import Pacer
from reserver.errors import ApiError, InvalidInput, WentBack
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import PartialObject, decode
from reserver.k8s.watch.object_view import Key
from reserver.k8s.watch.reflector import Reflector

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 5.0
"""Seconds between two comparisons of views with etcd."""

AGREED_S = 0.05
"""Seconds for which an answer of etcd is valid for frequent questions: a restored etcd is not back
at its former revision within that time."""

SILENT_AFTER_S = 10.0
"""Longest silence of etcd, in seconds; a longer one may be a restore."""

_A_MOMENT_S = 1.0
"""Seconds after a deletion in which a watch must show it, or else is distrusted."""

_LOOKS = 20
"""Number of checks of the watch within that time."""

_PAGE = "docs/operations.md#after-a-restore-of-etcd"


async def watched(reflector: Reflector) -> None:
    """Run a reflector; end the process at once if the API server has gone back in time."""
    try:
        await reflector.run()
    except WentBack as exc:
        end(str(reflector), exc)


def end(seen_in: str, why: WentBack) -> NoReturn:
    """End the process at once, because objects that it has seen no longer exist.

    Its caches and its next writes depend on them. The next process starts with empty caches.
    """
    log.error(
        "the API server has gone back in time, ending at once",
        collection=seen_in,
        why=str(why),
        remedy=f"restart each kube-apiserver that went on, and kube-scheduler: {_PAGE}",
    )
    os._exit(1)  # No write in flight may be sent any more.


class EtcdCheck:
    """Compares views with etcd, which may have been restored under a running API server.

    Attributes:
        obstacle: reason why nothing may be decided; empty if no view disagrees with etcd.
    """

    def __init__(self, now: Callable[[], float] = elapsed) -> None:
        """Begin without an obstacle; `now` returns monotonic seconds."""
        self.obstacle = ""
        self._lost: WentBack | None = None
        self._watches = 0
        self._now = now
        self._agreed_at = self._all_agreed_at = 0.0
        self._asking = asyncio.Lock()

    async def pass_first(self, client: ApiClient, reflectors: Sequence[Reflector]) -> None:
        """Return once no view is ahead of etcd, so that a start does not trust such a cache.

        A cache that is ahead stays invalid after etcd has reached its revision, but cannot be
        detected any more. So decisions are refused until a watch ends, as all do when their API
        server is restarted.
        """
        while True:
            if self._lost is not None:
                await self._end_with_a_watch(reflectors)
            try:
                async with asyncio.timeout(SILENT_AFTER_S):
                    await _compare_all(client, reflectors)
            except WentBack as exc:
                self.freeze(client, reflectors, exc)
                continue
            except (ApiError, InvalidInput, TimeoutError) as exc:
                self.obstacle = _unanswered(exc)
            else:
                self.obstacle = ""
                return
            await asyncio.sleep(_A_MOMENT_S)

    def freeze(self, client: ApiClient, reflectors: Sequence[Reflector], why: WentBack) -> None:
        """Stop all decisions and writes.

        The process keeps running, because it has seen that these caches are invalid: once etcd has
        reached its former revision, perhaps in seconds, a new process could not detect that.
        """
        if self._lost is None:
            self._lost, self._watches = why, _watches(reflectors)
            self.obstacle = (
                f"etcd was restored under an API server that goes on: {why}; "
                f"restart each kube-apiserver ({_PAGE})"
            )
            log.error("nothing is decided", why=self.obstacle)
            client.freeze(self.obstacle)

    async def _end_with_a_watch(self, reflectors: Sequence[Reflector]) -> NoReturn:
        """End the process once a watch has ended, as all do when their API server is restarted."""
        assert self._lost is not None  # noqa: S101 - it is frozen
        while _watches(reflectors) == self._watches:  # noqa: ASYNC110 - rare, and lasts long
            await asyncio.sleep(_A_MOMENT_S)
        end("etcd", self._lost)

    async def run(self, client: ApiClient, reflectors: Sequence[Reflector]) -> None:
        """Compare periodically until cancelled; freeze if a view is ahead of etcd."""
        answered_at = self._now()
        while True:
            await asyncio.sleep(_A_MOMENT_S if self.obstacle else LOOK_EVERY_S)
            if self._lost is not None:
                await self._end_with_a_watch(reflectors)
            began = self._now()
            try:
                async with asyncio.timeout(SILENT_AFTER_S):
                    await _compare_all(client, reflectors)
            except WentBack as exc:
                self.freeze(client, reflectors, exc)
            except (ApiError, InvalidInput, TimeoutError) as exc:
                if self._now() - answered_at > SILENT_AFTER_S:
                    self.obstacle = _unanswered(exc)
            else:
                answered_at = began
                if self._lost is None:
                    self.obstacle = ""

    async def agrees(
        self, client: ApiClient, reflectors: Sequence[Reflector], within_s: float = 0.0
    ) -> bool:
        """Return whether etcd is not behind the last changes of views; False without an answer.

        A write that is sent while etcd is away waits in the API server for seconds, and the etcd
        that comes back carries it out. A restored etcd may meet all its preconditions. So an
        irreversible write is preceded by this check of the views that it depends on; listed objects
        were compared at the start. Concurrent callers share an answer.

        Args:
            client: reads the objects to compare.
            reflectors: reflectors of these views.
            within_s: highest age of the answer, in seconds.
        """
        oldest = self._now() - within_s
        if self._lost is not None:
            return False
        if self._agreed_at > oldest:
            return True  # The usual case; a timeout and a lock cost more than this check.
        try:
            async with asyncio.timeout(SILENT_AFTER_S), self._asking:
                if self._agreed_at > oldest:
                    return True
                began = self._now()
                changes = _last_changes(reflectors)
                if began - self._all_agreed_at < AGREED_S and changes:
                    await _compare(client, *max(changes, key=itemgetter(2)))
                else:  # Later changes may soon hide a loss in another view.
                    await asyncio.gather(*(_compare(client, *each) for each in changes))
                    self._all_agreed_at = began
                self._agreed_at = began
        except WentBack as exc:
            self.freeze(client, reflectors, exc)
            return False
        except (ApiError, InvalidInput, TimeoutError) as exc:
            log.warning("nothing is written, etcd may be another one", why=_unanswered(exc))
            return False
        return True


def _watches(reflectors: Iterable[Reflector]) -> int:
    """Return the number of watches that were opened."""
    return sum(reflector.watches for reflector in reflectors)


def _last_changes(reflectors: Iterable[Reflector]) -> list[tuple[Reflector, Key, int]]:
    """Return the last change of each view, of an existing or a deleted object."""
    return [
        (reflector, *last)
        for reflector in reflectors
        if reflector.view.keeps_revisions
        and (last := reflector.last_change or reflector.view.noted()) is not None
    ]


def _unanswered(error: Exception) -> str:
    why = advice(error) if isinstance(error, ApiError) else str(error) or "no answer in time"
    return f"etcd cannot be compared with what is known: {why}"


async def _compare_all(client: ApiClient, reflectors: Sequence[Reflector]) -> None:
    for reflector in reflectors:
        if reflector.view.keeps_revisions:
            await compare(client, reflector)


async def compare(client: ApiClient, reflector: Reflector) -> None:
    """Compare a collection's last change, and the newest of its existing objects, with etcd.

    Raises:
        ApiError: the API server refused, or did not answer.
        InvalidInput: the answer was malformed.
        WentBack: an object is older in etcd than in the view, or is gone without a watch event.
    """
    last = reflector.last_change
    if last is not None and reflector.view.revision_of(last[0]) <= 0:
        await _compare(client, reflector, *last)
    newest = await Pacer().run(reflector.view.newest())
    if newest is not None:
        await _compare(client, reflector, *newest)


async def _compare(client: ApiClient, reflector: Reflector, key: Key, revision: int) -> None:
    def is_known() -> bool:
        return reflector.view.revision_of(key) == revision

    path, name = _address(reflector.path, key), "/".join(filter(None, key))
    try:
        now = decode(PartialObject, await client.get(path)).metadata.revision
    except ApiError as exc:
        if not exc.is_absent:
            raise
    else:
        if now < revision:
            raise WentBack(f"{name} is at resourceVersion {now} and was at {revision}")
        return
    for _ in range(_LOOKS):
        if is_known():
            await asyncio.sleep(_A_MOMENT_S / _LOOKS)
    if is_known():
        reflector.distrust(0.0)
        await reflector.current.wait()
    if is_known():
        raise WentBack(f"{name} is gone and was at resourceVersion {revision}")


def _address(collection: str, key: Key) -> str:
    """Return the path of an object; `collection` may cover one namespace or all."""
    namespace, name = key
    if "/namespaces/" in collection:
        return f"{collection}/{name}"
    version, _, plural = collection.rpartition("/")
    return f"{version}/namespaces/{namespace}/{plural}/{name}"
