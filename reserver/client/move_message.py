"""Converts the contract's messages about moves to and from the client's values."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from reserver.client.move_values import MoveSpec, PodMove
from reserver.migration.move import Group, Mode, Phase, Replacement
from reserver.v1 import move_pb2 as pb


def write(spec: MoveSpec) -> pb.MoveSpec:
    """Return a move as it is sent."""
    to, options = None, None
    if spec.node or spec.node_selector:
        to = pb.MoveTarget(node=spec.node, node_selector=dict(spec.node_selector))
    if spec.grace_period_s is not None:
        options = pb.MoveDeleteOptions(grace_period_seconds=spec.grace_period_s)
    return pb.MoveSpec(
        pod=pb.MovedPod(name=spec.pod, uid=spec.pod_uid, after=spec.after),
        to=to,
        mode=f"MOVE_MODE_{spec.mode.name}",
        timeout=spec.timeout,
        delete_options=options,
        group=write_group(spec.group) if spec.group else None,
        paused=spec.paused,
        ttl_seconds_after_finished=spec.keep_s,
    )


def write_group(group: Group) -> pb.MoveGroup:
    """Return a group as it is sent."""
    return pb.MoveGroup(name=group.name, size=group.size, across_namespaces=group.across)


def _read_group(found: pb.MoveGroup) -> Group:
    return Group(found.name, found.size, found.across_namespaces)


def _read_spec(found: pb.MoveSpec) -> MoveSpec:
    options = found.delete_options
    has_grace = options.HasField("grace_period_seconds")
    has_ttl = found.HasField("ttl_seconds_after_finished")
    only = found.mode == pb.MOVE_MODE_EVICT_ONLY
    return MoveSpec(
        pod=found.pod.name,
        pod_uid=found.pod.uid,
        after=found.pod.after,
        node=found.to.node,
        node_selector=dict(found.to.node_selector),
        mode=Mode.EVICT_ONLY if only else Mode.RESERVE_FIRST,
        timeout=found.timeout.ToTimedelta() if found.HasField("timeout") else None,
        grace_period_s=options.grace_period_seconds if has_grace else None,
        group=_read_group(found.group) if found.HasField("group") else None,
        paused=found.paused,
        keep_s=found.ttl_seconds_after_finished if has_ttl else None,
    )


def read(found: pb.PodMove) -> PodMove:
    """Return a move that was received."""
    status, came = found.status, found.status.replacement
    return PodMove(
        namespace=found.namespace,
        name=found.name,
        uid=found.uid,
        spec=_read_spec(found.spec) if found.HasField("spec") else None,
        phase=_phase(status.phase),
        reason=status.reason,
        message=status.message,
        pod=status.pod,
        source=status.from_node,
        target=status.to_node,
        reservation=status.reservation,
        replacement=Replacement(came.name, came.uid, came.node) if came.uid else None,
        created=_moment(found, "created", found.created),
        started=_moment(status, "started", status.started),
        evicted=_moment(status, "evicted", status.evicted),
        finished=_moment(status, "finished", status.finished),
    )


def _moment(found: pb.PodMove | pb.MoveStatus, name: str, moment: Timestamp) -> datetime | None:
    return moment.ToDatetime(UTC) if found.HasField(name) else None


def _phase(number: int) -> Phase | None:
    with suppress(ValueError, KeyError):
        return Phase[pb.MovePhase.Name(number).removeprefix("MOVE_PHASE_")]
    return None
