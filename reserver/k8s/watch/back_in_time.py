"""An API server that has gone back in time: etcd was restored from a backup.

If the API server goes on meanwhile, nothing tells its caches, from which lists and watches come.
But it reads a single object from etcd, by a quorum (`Get` in apiserver's storage/cacher/cacher.go):
an object that is older there than a view knows it has changed in a time that no longer is.
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
"""How often views are compared with etcd, in seconds."""

AGREED_S = 0.05
"""How long an answer of etcd will do for what is asked often, in seconds: it is not replaced and
come as far as it was within that time."""

SILENT_AFTER_S = 10.0
"""How long etcd may say nothing, in seconds. What takes longer may be a restore."""

_A_MOMENT_S = 1.0
"""How long a deletion may take to be shown by a watch until the watch is doubted, in seconds."""

_LOOKS = 20
"""How often within that moment it is looked whether the watch has shown it."""

_PAGE = "docs/operations.md#after-a-restore-of-etcd"


async def watched(reflector: Reflector) -> None:
    """Run a reflector; if the API server has gone back in time, end the process at once."""
    try:
        await reflector.run()
    except WentBack as exc:
        end(str(reflector), exc)


def end(seen_in: str, why: WentBack) -> NoReturn:
    """End the process at once, because it has seen what no longer is.

    Whatever it knows or is about to write comes from that. The next one starts cold.
    """
    log.error(
        "the API server has gone back in time, ending at once",
        collection=seen_in,
        why=str(why),
        remedy=f"restart each kube-apiserver that went on, and kube-scheduler: {_PAGE}",
    )
    os._exit(1)  # No write that is under way may be made any more.


class EtcdCheck:
    """Compares views with etcd, which may have been restored under an API server that goes on.

    Attributes:
        obstacle: why nothing may be decided; empty if nothing is known against the views.
    """

    def __init__(self, now: Callable[[], float] = elapsed) -> None:
        """Begin with nothing known; `now` is monotonic seconds."""
        self.obstacle = ""
        self._lost: WentBack | None = None
        self._watches = 0
        self._now = now
        self._agreed_at = self._all_agreed_at = 0.0
        self._asking = asyncio.Lock()

    async def pass_first(self, client: ApiClient, reflectors: Sequence[Reflector]) -> None:
        """Return once no view is ahead of etcd, so that a start does not trust such a cache.

        A cache that is ahead stays wrong once etcd has come as far, when nothing tells any more. So
        the refusal lasts until a watch ends, as all do whose API server is restarted.
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
        """Decide and write nothing more.

        The process goes on, for it knows that these caches are wrong: once etcd has come as far as
        it was, which may take seconds, nothing would tell the next one.
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
        """End once a watch has ended, as all do whose API server is restarted."""
        assert self._lost is not None  # noqa: S101 - it is frozen
        while _watches(reflectors) == self._watches:  # noqa: ASYNC110 - rare, and takes long
            await asyncio.sleep(_A_MOMENT_S)
        end("etcd", self._lost)

    async def run(self, client: ApiClient, reflectors: Sequence[Reflector]) -> None:
        """Compare again and again, until cancelled; freeze if a view is ahead of etcd."""
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

        A write that is sent while etcd is away waits in the API server for seconds, and is made by
        the etcd that comes back. What was restored may meet all its preconditions. So whatever
        cannot be undone asks for the time of what it follows from first; what was listed was
        compared at the start. Those who wait share an answer.

        Args:
            client: reads what is compared.
            reflectors: of the views.
            within_s: how old the answer may be, in seconds.
        """
        wanted = self._now() - within_s
        if self._lost is not None:
            return False
        try:
            async with asyncio.timeout(SILENT_AFTER_S), self._asking:
                if self._agreed_at > wanted:
                    return True
                began = self._now()
                changes = _last_changes(reflectors)
                if began - self._all_agreed_at < AGREED_S and changes:
                    await _compare(client, *max(changes, key=itemgetter(2)))
                else:  # What comes now soon covers what was lost of another view.
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
    """Return how often collections were watched."""
    return sum(reflector.watches for reflector in reflectors)


def _last_changes(reflectors: Iterable[Reflector]) -> list[tuple[Reflector, Key, int]]:
    """Return what changed last of each view, be it there or gone."""
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
    """Compare with etcd what changed last of a collection, and what changed last of what is there.

    Raises:
        ApiError: the API server refused, or did not answer.
        InvalidInput: it answered with something else.
        WentBack: an object is older in etcd than it was seen, or is gone and no watch says so.
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
    """Return the path of an object; its collection may be of all namespaces, or of one."""
    namespace, name = key
    if "/namespaces/" in collection:
        return f"{collection}/{name}"
    version, _, plural = collection.rpartition("/")
    return f"{version}/namespaces/{namespace}/{plural}/{name}"
