"""The Lease that lets one of several Reservers answer, and the others stand by.

The library's own implementation (kubernetes.aio.leaderelection) was not sound enough to decide who
may bind: docs/adr/0007-a-standby-that-starts-cold.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import structlog

from reserver.errors import ApiError, InvalidInput, LeadershipLost
from reserver.k8s.api_errors import advice
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import Metadata, decode
from reserver.k8s.objects.times import show_micro
from reserver.k8s.watch.lag import require_progress

log = structlog.get_logger(__name__)


class Timing(NamedTuple):
    """How long a lease lasts, and how often it is renewed.

    Attributes:
        duration_s: how long a lease that is not renewed keeps others out, in seconds.
        renew_deadline_s: how long a leader goes on that cannot renew it: less than it lasts.
        retry_s: seconds between two looks at the lease.
    """

    duration_s: int
    renew_deadline_s: float
    retry_s: float


BESIDE_SCHEDULER = Timing(15, 10.0, 2.0)
"""As kube-scheduler has it."""


class LeaseSpec(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """Who holds the lease, and since when."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None


class LeaseObject(msgspec.Struct, rename="camel", frozen=True):
    """A Lease of coordination.k8s.io/v1."""

    metadata: Metadata = Metadata()
    spec: LeaseSpec = LeaseSpec()

    @property
    def holder(self) -> str:
        """Who holds it; empty if nobody does."""
        return self.spec.holder_identity or ""

    @property
    def duration_s(self) -> int:
        """How long it keeps others out after its last renewal, in seconds."""
        return self.spec.lease_duration_seconds or 0


def held_by(before: LeaseObject, identity: str, now: float, duration_s: int) -> LeaseSpec:
    """Return what to write so that `identity` holds a lease from `now` (unix seconds) on."""
    moment, is_new = show_micro(now), before.holder != identity
    transitions = before.spec.lease_transitions or 0
    return LeaseSpec(
        holder_identity=identity,
        lease_duration_seconds=duration_s,
        acquire_time=moment if is_new else before.spec.acquire_time,
        renew_time=moment,
        lease_transitions=transitions + is_new,
    )


def released(before: LeaseObject, now: float) -> LeaseSpec:
    """Return what to write to release a lease, so that a standby need not wait for its end."""
    return msgspec.structs.replace(
        before.spec, holder_identity="", lease_duration_seconds=1, renew_time=show_micro(now)
    )


def manifest(name: str, namespace: str, version: str, spec: LeaseSpec) -> dict[str, object]:
    """Return the object to create or, if `version` is its resourceVersion, to replace."""
    metadata = {"name": name, "namespace": namespace}
    if version:
        metadata["resourceVersion"] = version
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }


class Lease:
    """A Lease of coordination.k8s.io that one process of several holds.

    Attributes:
        identity: what this process is called in it.
    """

    def __init__(
        self,
        client: ApiClient,
        name: tuple[str, str],
        identity: str,
        wall: Callable[[], float],
        elapsed: Callable[[], float],
        timing: Timing = BESIDE_SCHEDULER,
    ) -> None:
        """Take part in the election, under a name that no other process has.

        People read `wall`; no jump of the clock disturbs `elapsed`, and no pause stops it.
        """
        self._client = client
        self._namespace, self._name = name
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"
        self._timing = timing
        self.identity = identity
        self._wall = wall
        self._elapsed = elapsed
        self._seen = LeaseObject()
        self._seen_at = 0.0
        self._renewed_at: float | None = None
        self._complaint = ""

    @property
    def is_held(self) -> bool:
        """Whether this process certainly holds the lease at this instant."""
        return (
            self._renewed_at is not None
            and self._elapsed() - self._renewed_at < self._timing.renew_deadline_s
        )

    @property
    def is_led_by_another(self) -> bool:
        """Whether another process holds the lease, by what the API server says now."""
        is_other = self._seen.holder not in {"", self.identity}
        return is_other and not self.is_held and not self._complaint

    def obstacle(self) -> str:
        """Return why this process may not answer; empty if it may."""
        if self.is_held:
            return ""
        if self._complaint:
            return f"lease {self._namespace}/{self._name} cannot be had: {self._complaint}"
        if self._seen.holder and self._seen.holder != self.identity:
            return f"standing by: {self._seen.holder} leads"
        return f"lease {self._namespace}/{self._name} is not held yet"

    async def acquire(self) -> None:
        """Return once this process holds the lease."""
        while not await self._try():  # noqa: ASYNC110 - another process lets go of it
            await asyncio.sleep(self._timing.retry_s)
        log.info("leading", lease=self._name, identity=self.identity)

    async def keep(self) -> None:
        """Renew the lease until cancelled.

        Raises:
            LeadershipLost: it could not be renewed in time, or somebody else holds it.
            WentBack: it is as it was long ago; called again, this keeps it.
        """
        while True:
            await asyncio.sleep(self._timing.retry_s)
            while not await self._try():
                if self._seen.holder not in {"", self.identity} or not self.is_held:
                    raise LeadershipLost(self.obstacle() or f"{self._seen.holder} leads")
                await asyncio.sleep(self._timing.retry_s / 4)

    async def release(self) -> None:
        """Let go of the lease, so that a standby need not wait for its end; best effort."""
        if self.is_held:
            self._renewed_at = None
            try:
                await self._put(released(self._seen, self._wall()))
            except (ApiError, InvalidInput) as exc:
                log.warning("lease could not be released", why=str(exc))

    async def _try(self) -> bool:
        """Take or renew the lease; return whether that was done.

        Its duration counts from before the request, because that is the latest moment at which it
        can be certain that nobody took it for older.
        """
        began = self._elapsed()
        try:
            async with asyncio.timeout(self._timing.renew_deadline_s / 2):
                if not self.is_held and not await self._is_free():
                    return False
                await self._put(
                    held_by(self._seen, self.identity, self._wall(), self._timing.duration_s)
                )
        except TimeoutError:
            self._complain("the API server did not answer in time")
        except ApiError as exc:
            if exc.is_conflict:
                return await self._lost_race()
            self._complain(advice(exc))
        except InvalidInput as exc:
            self._complain(str(exc))
        else:
            self._renewed_at, self._complaint = began, ""
            return True
        return False

    async def _lost_race(self) -> bool:
        """Read who was faster. It may be this process, by a request that had no answer."""
        try:
            await self._look()
        except (ApiError, InvalidInput) as exc:
            self._complain(str(exc))
        return False

    async def _is_free(self) -> bool:
        await self._look()
        is_over = self._elapsed() - self._seen_at >= self._seen.duration_s
        return self._seen.holder in {"", self.identity} or is_over

    async def _look(self) -> None:
        try:
            raw = await self._client.get(f"{self._collection}/{self._name}")
        except ApiError as exc:
            if not exc.is_absent:
                raise
            self._seen = LeaseObject()
        else:
            lease = decode(LeaseObject, raw)
            before = self._seen.metadata.revision
            if lease != self._seen:
                self._seen, self._seen_at = lease, self._elapsed()
            if self.is_held:
                require_progress(before, lease.metadata.revision)
        self._complaint = ""

    async def _put(self, spec: LeaseSpec) -> None:
        version = self._seen.metadata.resource_version
        body = manifest(self._name, self._namespace, version, spec)
        if version:
            raw = await self._client.replace(f"{self._collection}/{self._name}", body)
        else:
            raw = await self._client.create(self._collection, body)
        self._seen, self._seen_at = decode(LeaseObject, raw), self._elapsed()

    def _complain(self, why: str) -> None:
        if why != self._complaint:  # One line for one fault, however often it is retried.
            log.warning("lease cannot be written, retrying", lease=self._name, why=why)
        self._complaint = why
