"""PodMoves as the contract's messages: they differ in enums and times only."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec.structs import replace

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.migration.move import Group, Mode, Phase
from reserver.v1 import move_pb2 as pb
from reserver.wire.k8s.objects import decode, encode
from reserver.wire.migration.podmove import (
    GroupObject,
    MoveMetadata,
    SpecObject,
    manifest,
    read_spec,
)
from reserver.wire.migration.statusform import StatusObject
from reserver.wire.times import parse_duration

REQUEST_ID = "reserver.io/request-id"
"""Annotation: what its creator called the request."""

_MODE = "MOVE_MODE_"


def document(
    namespace: str, name: str, spec: pb.MoveSpec, group: Group, request_id: str
) -> dict[str, Any]:
    """Return the PodMove that a request asks for, as it is written.

    Raises:
        InvalidInput: some field is not acceptable; the error carries its path.
    """
    if spec.HasField("group"):
        raise InvalidInput("spec.group", "stands at a move", "say it once, beside the moves")
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if request_id:
        metadata["annotations"] = {REQUEST_ID: request_id}
    with under("spec"):
        said = _written(spec)
        if group.name:
            said = replace(said, group=GroupObject(*group))
        read_spec(said, namespace)
    return manifest(said, metadata)


def _written(spec: pb.MoveSpec) -> SpecObject:
    try:
        written: dict[str, Any] = json_format.MessageToDict(spec)
    except (ValueError, json_format.Error) as exc:
        problem = f"cannot be written as JSON: {shorten(str(exc), 200)}"
        raise InvalidInput("", problem, "check its timeout") from exc
    if "mode" in written:
        said = str(written["mode"]).removeprefix(_MODE)
        if said not in Mode.__members__:
            problem = f"{shorten(said)} is unknown"
            raise InvalidInput("mode", problem, f"send {' or '.join(Mode.__members__)}")
        written["mode"] = Mode[said]
    return decode(SpecObject, encode(written))


def show(metadata: MoveMetadata, spec: bytes, said: StatusObject | None) -> pb.PodMove:
    """Return a PodMove as it is shown.

    Args:
        metadata: of the object.
        spec: as it is written.
        said: its status; None before there is one that can be read.
    """
    return pb.PodMove(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        spec=_spec(spec),
        status=_status(said or StatusObject(phase=Phase.PENDING)),
        created=_moment(metadata.creation_timestamp),
    )


def _spec(raw: bytes) -> pb.MoveSpec | None:
    try:
        said = decode(SpecObject, raw)
        timeout = None if said.timeout is None else f"{parse_duration(said.timeout):.9f}s"
        known: dict[str, Any] = {
            "pod": {"name": said.pod.name, "uid": said.pod.uid, "after": said.pod.after},
            "mode": f"{_MODE}{said.mode.name}",
            "timeout": timeout,
            "paused": said.paused,
            "ttlSecondsAfterFinished": said.ttl_seconds_after_finished,
        }
        if said.to is not None:
            known["to"] = {"node": said.to.node, "nodeSelector": said.to.node_selector}
        if said.delete_options is not None:
            seconds = said.delete_options.grace_period_seconds
            known["deleteOptions"] = {"gracePeriodSeconds": seconds}
        if said.group is not None:
            known["group"] = {
                "name": said.group.name,
                "size": said.group.size,
                "acrossNamespaces": said.group.across_namespaces,
            }
        return json_format.ParseDict(known, pb.MoveSpec())
    except (InvalidInput, json_format.Error):
        return None  # The status says why.


def _status(said: StatusObject) -> pb.MoveStatus:
    came = said.replacement
    replacement = pb.MoveReplacement(name=came.name, uid=came.uid, node=came.node) if came else None
    return pb.MoveStatus(
        phase=f"MOVE_PHASE_{said.phase.name}",
        reason=said.reason,
        message=said.message,
        from_node=said.from_ or "",
        to_node=said.to or "",
        reservation=said.reservation or "",
        pod=said.pod or "",
        replacement=replacement,
        started=_moment(said.started_at),
        evicted=_moment(said.evicted_at),
        finished=_moment(said.finished_at),
    )


def _moment(text: str | None) -> Timestamp | None:
    moment = Timestamp()
    try:
        moment.FromJsonString(text or "")
    except ValueError:
        return None
    return moment
