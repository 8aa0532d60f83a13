"""The extender protocol: staging/src/k8s.io/kube-scheduler/extender/v1/types.go.

Those Go types carry no JSON tags, so the keys are the Go names. kube-scheduler reads them in any
case but writes them like this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from reserver.errors import InvalidInput
from reserver.wire.objects import decode
from reserver.wire.pods import PodObject


class ExtenderArgs(msgspec.Struct, frozen=True):
    """What a Filter call carries."""

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
    """What a Bind call carries."""

    pod_name: str = msgspec.field(name="PodName")
    pod_namespace: str = msgspec.field(name="PodNamespace")
    pod_uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


class ExtenderBindingResult(msgspec.Struct, frozen=True):
    """The answer to a Bind call."""

    error: str = msgspec.field(default="", name="Error")


def decode_filter(raw: bytes) -> tuple[PodObject, list[str]]:
    """Return the pod and the node names of a Filter call.

    Raises:
        InvalidInput: it is malformed, or the extender is configured to send whole nodes.
    """
    args = decode(ExtenderArgs, raw)
    if args.pod is None:
        raise InvalidInput("Pod", "is missing", "send ExtenderArgs with the pod to place")
    if not (args.pod.metadata.name and args.pod.metadata.namespace):
        raise InvalidInput("Pod.metadata", "lacks name or namespace", "send the whole pod")
    if args.node_names is None:
        remedy = "set nodeCacheCapable: true for this extender in the KubeSchedulerConfiguration"
        raise InvalidInput("NodeNames", "is missing", remedy)
    return args.pod, args.node_names


def decode_bind(raw: bytes) -> ExtenderBindingArgs:
    """Return what a Bind call asks for.

    Raises:
        InvalidInput: it is malformed or names no pod or node.
    """
    args = decode(ExtenderBindingArgs, raw)
    for field in msgspec.structs.fields(args):
        if not getattr(args, field.name):
            remedy = "send ExtenderBindingArgs as kube-scheduler does"
            raise InvalidInput(field.encode_name, "is empty", remedy)
    return args
