"""The extender protocol: staging/src/k8s.io/kube-scheduler/extender/v1/types.go.

These Go types have no JSON tags, so the keys are the Go names. kube-scheduler writes the keys in
this form, and reads them in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import Int64
from reserver.k8s.objects.objects import WireStruct, decode, decode_part
from reserver.k8s.objects.pods import PodObject


class _LargeArgs(msgspec.Struct, frozen=True):
    """The raw pod of a call."""

    pod: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="Pod")


class ExtenderArgs(msgspec.Struct, frozen=True):
    """The arguments of a Filter call."""

    pod: PodObject | None = msgspec.field(default=None, name="Pod")
    node_names: list[str] | None = msgspec.field(default=None, name="NodeNames")


class ExtenderFilterResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a Filter call."""

    node_names: Sequence[str] = msgspec.field(default=(), name="NodeNames")
    failed_and_unresolvable_nodes: Mapping[str, str] = msgspec.field(
        default_factory=dict, name="FailedAndUnresolvableNodes"
    )
    error: str = msgspec.field(default="", name="Error")


class ExtenderBindingArgs(msgspec.Struct, frozen=True):
    """The arguments of a Bind call."""

    pod_name: str = msgspec.field(name="PodName")
    pod_namespace: str = msgspec.field(name="PodNamespace")
    pod_uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


class ExtenderBindingResult(msgspec.Struct, frozen=True):
    """The answer to a Bind call."""

    error: str = msgspec.field(default="", name="Error")


class _MetaPod(msgspec.Struct, frozen=True):
    uid: str = msgspec.field(default="", name="UID")


class MetaVictims(msgspec.Struct, frozen=True):
    """The pods to evict from one node."""

    pods: list[_MetaPod | None] | None = msgspec.field(default=None, name="Pods")
    pdb_violations: Int64 = msgspec.field(default=0, name="NumPDBViolations")

    def uids(self) -> tuple[str, ...]:
        """Return the UIDs of the pods."""
        return tuple(pod.uid for pod in self.pods or () if pod is not None)

    def without_gaps(self) -> MetaVictims:
        """Return the victims without null pods, on which kube-scheduler would panic."""
        pods = [pod for pod in self.pods or () if pod is not None and pod.uid]
        return MetaVictims([*pods], self.pdb_violations)


class _Identity(WireStruct, frozen=True):
    uid: str = ""


class _WholePod(msgspec.Struct, frozen=True):
    metadata: _Identity = _Identity()


class _WholeVictims(msgspec.Struct, frozen=True):
    pods: list[_WholePod | None] | None = msgspec.field(default=None, name="Pods")
    pdb_violations: Int64 = msgspec.field(default=0, name="NumPDBViolations")

    def meta(self) -> MetaVictims:
        uids = [_MetaPod(pod.metadata.uid) for pod in self.pods or () if pod is not None]
        return MetaVictims([*uids], self.pdb_violations)


class _PreemptionArgs(msgspec.Struct, frozen=True):
    pod: PodObject | None = msgspec.field(default=None, name="Pod")
    meta_victims: dict[str, MetaVictims | None] | None = msgspec.field(
        default=None, name="NodeNameToMetaVictims"
    )
    victims: dict[str, _WholeVictims | None] | None = msgspec.field(
        default=None, name="NodeNameToVictims"
    )


class ExtenderPreemptionResult(msgspec.Struct, frozen=True):
    """The answer to a Preempt call."""

    meta_victims: Mapping[str, MetaVictims] = msgspec.field(name="NodeNameToMetaVictims")


def decode_filter(raw: bytes) -> tuple[PodObject, list[str]]:
    """Return the pod and the node names of a Filter call.

    Raises:
        InvalidInput: the call is malformed, or the extender is configured to send whole nodes.
    """
    _check_pod(raw)
    args = decode(ExtenderArgs, raw)
    pod = _named(args.pod)
    if args.node_names is None:
        remedy = "set nodeCacheCapable: true for this extender in the KubeSchedulerConfiguration"
        raise InvalidInput("NodeNames", "is missing", remedy)
    return pod, args.node_names


def decode_preempt(raw: bytes) -> tuple[PodObject, dict[str, MetaVictims]]:
    """Return the pod of a Preempt call, and the victims by node; whole pods become their UIDs.

    Raises:
        InvalidInput: the call is malformed.
    """
    _check_pod(raw)
    args = decode(_PreemptionArgs, raw)
    whole = {node: victims.meta() for node, victims in (args.victims or {}).items() if victims}
    meta = {node: victims for node, victims in (args.meta_victims or {}).items() if victims}
    both = whole | meta
    return _named(args.pod), {node: both[node].without_gaps() for node in both}


_BIND_FIELDS = msgspec.structs.fields(ExtenderBindingArgs)
"""Computed once: this takes longer than decoding a call."""


def decode_bind(raw: bytes) -> ExtenderBindingArgs:
    """Return the arguments of a Bind call.

    Raises:
        InvalidInput: the call is malformed, or names no pod or node.
    """
    args = decode(ExtenderBindingArgs, raw)
    for field in _BIND_FIELDS:
        if not getattr(args, field.name):
            remedy = "send ExtenderBindingArgs as kube-scheduler does"
            raise InvalidInput(field.encode_name, "is empty", remedy)
    return args


def _check_pod(raw: bytes) -> None:
    """Refuse a pod that is too long, before it is decoded."""
    if len(raw) > PodObject.MOST_BYTES:  # Rare; thousands of node names may be as long.
        decode_part(PodObject, bytes(decode(_LargeArgs, raw).pod), "Pod")


def _named(pod: PodObject | None) -> PodObject:
    if pod is None:
        raise InvalidInput("Pod", "is missing", "send the pod to place, as kube-scheduler does")
    if not (pod.metadata.name and pod.metadata.namespace):
        raise InvalidInput("Pod.metadata", "lacks name or namespace", "send the whole pod")
    return pod
