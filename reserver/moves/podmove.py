"""The codec of PodMove objects of reserver.io/v1alpha1: their spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import TENANT, check_count, check_length
from reserver.k8s.objects.objects import CustomResource, Metadata, StrictStruct, WireStruct, decode
from reserver.k8s.objects.times import parse_duration, parse_moment
from reserver.moves.model import (
    ALONE,
    DEFAULT_TIMEOUT_S,
    MAX_TIMEOUT_S,
    MOST_IN_GROUP,
    Move,
    MoveGroup,
    MoveSpec,
)
from reserver.moves.phases import MoveMode
from reserver.moves.podmove_status import read_status
from reserver.reservations.placement import ANYWHERE, Placement
from reserver.stores.codec import placement_codec
from reserver.stores.object.codec import API_VERSION

KIND = "PodMove"
COLLECTION = f"/apis/{API_VERSION}/podmoves"
"""The path of all PodMoves of a cluster."""

MOST_BYTES = 8_192
"""Most bytes of a spec; each spec that the schema allows is shorter."""

MOST_GRACE_S = 24 * 3600
"""Longest grace period of a moved pod, in seconds."""

MOST_KEPT_S = 30 * 24 * 3600
"""Longest time for which a PodMove is kept after its end, in seconds."""

MOST_LABELS = 16
"""Most labels in ``to.nodeSelector``."""

_MOST_GROUP_NAME = 253
_MOST_UID = 64


class MovedPodObject(StrictStruct, frozen=True):
    """``spec.pod``."""

    name: str
    uid: str = ""
    after: str = ""


class TargetObject(StrictStruct, frozen=True):
    """``spec.to``."""

    node: str = ""
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)


class DeleteOptionsObject(StrictStruct, frozen=True):
    """``spec.deleteOptions``."""

    grace_period_seconds: Annotated[int, msgspec.Meta(ge=0, le=MOST_GRACE_S)] | None = None


class MoveGroupObject(StrictStruct, frozen=True):
    """``spec.group``."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=1, le=MOST_IN_GROUP)]
    across_namespaces: bool = False


class SpecObject(StrictStruct, frozen=True):
    """The spec of a PodMove."""

    pod: MovedPodObject
    to: TargetObject | None = None
    mode: MoveMode = MoveMode.RESERVE_FIRST
    timeout: str | None = None
    delete_options: DeleteOptionsObject | None = None
    group: MoveGroupObject | None = None
    paused: bool = False
    urgent: bool = False
    ttl_seconds_after_finished: Annotated[int, msgspec.Meta(ge=0, le=MOST_KEPT_S)] | None = None


class MoveObject(CustomResource, frozen=True):
    """A PodMove on the wire."""

    @property
    def name(self) -> PodName:
        """Namespace and name."""
        return PodName(self.metadata.namespace, self.metadata.name)


class MoveList(WireStruct, frozen=True):
    """A page of a list of PodMoves."""

    metadata: Metadata = Metadata()
    items: tuple[MoveObject, ...] = ()


def collection(namespace: str) -> str:
    """Return the path of the PodMoves of a namespace."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/podmoves"


def path(name: PodName) -> str:
    """Return the path of a PodMove."""
    return f"{collection(name.namespace)}/{name.name}"


def status_path(name: PodName) -> str:
    """Return the path of the status of a PodMove."""
    return f"{path(name)}/status"


def owner(name: str, uid: str) -> dict[str, object]:
    """Return a PodMove as an entry of ``ownerReferences``."""
    return {"apiVersion": API_VERSION, "kind": KIND, "name": name, "uid": uid}


def manifest(spec: SpecObject, metadata: Mapping[str, object]) -> dict[str, Any]:
    """Return the manifest of a PodMove."""
    written = msgspec.to_builtins(spec)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": written}


def read_object(item: MoveObject) -> Move:
    """Return the move of a PodMove, with its status.

    Raises:
        InvalidInput: a field is invalid; the error carries its path.
    """
    with under("spec"):
        if len(item.spec) > MOST_BYTES:
            problem = f"{len(item.spec)} bytes are too many for a move"
            raise InvalidInput("", problem, f"keep it under {MOST_BYTES}")
        spec = read_spec(decode(SpecObject, item.spec), item.metadata.namespace)
    return Move(
        name=item.name,
        uid=item.metadata.uid,
        created_at=parse_moment(item.metadata.creation_timestamp),
        spec=spec,
        status=read_status(item.status),
    )


def read_spec(said: SpecObject, namespace: str) -> MoveSpec:
    """Return the spec of a move.

    Raises:
        InvalidInput: a field is invalid; the error carries its path in the spec.
    """
    to = said.to or TargetObject()
    options = said.delete_options or DeleteOptionsObject()
    names.check_subdomain(said.pod.name, "pod.name", "a pod's name")
    check_length(said.pod.uid, "pod.uid", _MOST_UID)
    if said.pod.after:
        names.check_subdomain(said.pod.after, "pod.after", "a PodMove's name, without namespace")
        if said.pod.uid:
            remedy = "leave it out: the pod that comes with that PodMove has another one"
            raise InvalidInput("pod.uid", "cannot be set together with pod.after", remedy)
    placement = _placement(to, namespace)
    return MoveSpec(
        pod=PodName(namespace, said.pod.name),
        uid=said.pod.uid,
        after=said.pod.after,
        node=to.node,
        placement=placement,
        mode=said.mode,
        timeout_s=_timeout(said.timeout),
        grace_period_s=options.grace_period_seconds,
        group=_group(said),
        paused=said.paused,
        urgent=said.urgent,
        keep_s=said.ttl_seconds_after_finished,
    )


def _placement(to: TargetObject, namespace: str) -> Placement:
    """Return the constraints on the target, unless a node is named."""
    if to.node:
        names.check_subdomain(to.node, "to.node", "a node's name")
        if to.node_selector:
            remedy = "keep one of them"
            raise InvalidInput("to.nodeSelector", "cannot be set together with to.node", remedy)
    check_count(to.node_selector, "to.nodeSelector", MOST_LABELS)
    if not to.node_selector:
        return ANYWHERE
    with under("to"):
        return placement_codec.read({"nodeSelector": to.node_selector}, namespace, TENANT)


def _timeout(text: str | None) -> float:
    if text is None:
        return DEFAULT_TIMEOUT_S
    with under("timeout"):
        seconds = parse_duration(text)
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise InvalidInput("timeout", f"{text} is out of range", "write more than 0s, at most 24h")
    return seconds


def _group(said: SpecObject) -> MoveGroup:
    if said.group is None:
        return ALONE
    if said.mode is MoveMode.EVICT_ONLY:
        problem = f"its members wait for each other's seats, which {said.mode} does not hold"
        raise InvalidInput("group", problem, f"remove it, or write mode {MoveMode.RESERVE_FIRST}")
    if not said.group.name:
        raise InvalidInput("group.name", "is empty", "write the name that its members share")
    check_length(said.group.name, "group.name", _MOST_GROUP_NAME)
    return MoveGroup(said.group.name, said.group.size, said.group.across_namespaces)
