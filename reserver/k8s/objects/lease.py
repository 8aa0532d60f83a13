"""Reads and writes Leases.

The rules are those of client-go's tools/leaderelection/leaderelection.go: a lease is over when it
was not renewed for its duration by the clock of its reader, never by comparing moments
that two machines have written.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import Metadata
from reserver.k8s.objects.times import show_micro


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
