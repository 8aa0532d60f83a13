"""The Lease by which one of several replicas of Reserver leads, and the others stand by.

The library's own implementation (kubernetes.aio.leaderelection) was not reliable enough to decide
which replica may bind: docs/adr/0007-a-standby-that-starts-cold.md.
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
    """Duration and renewal of a lease.

    Attributes:
        duration_s: seconds after the last renewal in which no other replica may take the lease.
        renew_deadline_s: seconds after which a leader that cannot renew it stops: less than that.
        retry_s: seconds between two attempts.
    """

    duration_s: int
    renew_deadline_s: float
    retry_s: float


BESIDE_SCHEDULER = Timing(15, 10.0, 2.0)
"""The values of kube-scheduler."""


class LeaseSpec(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """The holder of a lease, with the times of its tenure."""

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
        """Identity of the holder; empty without one."""
        return self.spec.holder_identity or ""

    @property
    def duration_s(self) -> int:
        """Seconds after the last renewal in which no other replica may take the lease."""
        return self.spec.lease_duration_seconds or 0


def held_by(before: LeaseObject, identity: str, now: float, duration_s: int) -> LeaseSpec:
    """Return the spec by which `identity` holds a lease from `now` (unix seconds) on."""
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
    """Return the spec that releases a lease, so that a standby need not wait for its end."""
    return msgspec.structs.replace(
        before.spec, holder_identity="", lease_duration_seconds=1, renew_time=show_micro(now)
    )


def manifest(name: str, namespace: str, version: str, spec: LeaseSpec) -> dict[str, object]:
    """Return the Lease to create or, with `version` as resourceVersion, to replace."""
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
    """A Lease of coordination.k8s.io that one of several replicas holds.

    Attributes:
        identity: identity of this process in the Lease.
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
        """Take part in the election, under an identity that no other process has.

        `wall` returns unix seconds for display; `elapsed` returns seconds that jumps of the clock
        do not change and suspensions do not stop.
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
        """Whether another process holds the lease, by the last answer of the API server."""
        is_other = self._seen.holder not in {"", self.identity}
        return is_other and not self.is_held and not self._complaint

    def obstacle(self) -> str:
        """Return the reason why this process may not act; empty if it may."""
        if self.is_held:
            return ""
        if self._complaint:
            return f"lease {self._namespace}/{self._name} cannot be had: {self._complaint}"
        if self._seen.holder and self._seen.holder != self.identity:
            return f"standing by: {self._seen.holder} leads"
        return f"lease {self._namespace}/{self._name} is not held yet"

    async def acquire(self) -> None:
        """Return once this process holds the lease."""
        while not await self._try():  # noqa: ASYNC110 - another process releases it
            await asyncio.sleep(self._timing.retry_s)
        log.info("leading", lease=self._name, identity=self.identity)

    async def keep(self) -> None:
        """Renew the lease until cancelled.

        Raises:
            LeadershipLost: it could not be renewed in time, or another process holds it.
            WentBack: its resourceVersion went back; a later call of this method can renew it.
        """
        while True:
            await asyncio.sleep(self._timing.retry_s)
            while not await self._try():
                if self._seen.holder not in {"", self.identity} or not self.is_held:
                    raise LeadershipLost(self.obstacle() or f"{self._seen.holder} leads")
                await asyncio.sleep(self._timing.retry_s / 4)

    async def release(self) -> None:
        """Release the lease, so that a standby need not wait for its end; best effort."""
        if self.is_held:
            self._renewed_at = None
            try:
                await self._put(released(self._seen, self._wall()))
            except (ApiError, InvalidInput) as exc:
                log.warning("lease could not be released", why=str(exc))

    async def _try(self) -> bool:
        """Take or renew the lease; return whether that succeeded.

        The tenure counts from before the request: other replicas count from the stored renewal,
        which is later, so the lease ends here first.
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
            if exc.is_conflict or exc.is_absent:
                return await self._lost_race()
            self._complain(advice(exc))
        except InvalidInput as exc:
            self._complain(str(exc))
        else:
            self._renewed_at, self._complaint = began, ""
            return True
        return False

    async def _lost_race(self) -> bool:
        """Read the new holder. It may be this process, by an earlier request without an answer."""
        try:
            await self._read()
        except (ApiError, InvalidInput) as exc:
            self._complain(str(exc))
        return False

    async def _is_free(self) -> bool:
        await self._read()
        is_over = self._elapsed() - self._seen_at >= self._seen.duration_s
        return self._seen.holder in {"", self.identity} or is_over

    async def _read(self) -> None:
        try:
            raw = await self._client.get(f"{self._collection}/{self._name}")
        except ApiError as exc:
            if not exc.is_absent:
                raise
            if self._seen.metadata.revision:  # Deleted; its holder leads until it notices.
                self._seen, self._seen_at = LeaseObject(spec=self._seen.spec), self._elapsed()
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
        if why != self._complaint:  # One line for each new reason, not for each attempt.
            log.warning("lease cannot be written, retrying", lease=self._name, why=why)
        self._complaint = why
