"""Decides the pods of a node that a drain moves, as `kubectl drain` does.

The filters are those of kubectl's pkg/drain/filters.go, with similar messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from reserver.k8s.objects.objects import WireStruct, decode
from reserver.k8s.objects.pod_annotations import MIRROR_ANNOTATION
from reserver.k8s.objects.requests import FINISHED
from reserver.moves.surge_object import OwnedMetadata

BEING_DELETED = "it is being deleted already"


class _Volume(WireStruct, frozen=True):
    empty_dir: dict[str, Any] | None = None


class _Spec(WireStruct, frozen=True):
    volumes: list[_Volume] | None = None


class _Status(WireStruct, frozen=True):
    phase: str = ""


class _Pod(WireStruct, frozen=True):
    metadata: OwnedMetadata = OwnedMetadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


class Remedies(NamedTuple):
    """The flags that allow a drain to do what it refuses by default, as remedies."""

    daemon_sets: str = "use --ignore-daemonsets to leave it"
    unmanaged: str = "pass --force to evict it all the same"
    empty_dirs: str = "use --delete-emptydir-data"


OF_FLAGS = Remedies()
"""The flags of `reserver drain`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """The permissions of a drain for pods that lose something by it.

    Attributes:
        remedies: the remedies in messages about refused pods.
        ignores_daemon_sets: leave pods of DaemonSets, instead of refusing them.
        deletes_empty_dirs: move pods with emptyDir volumes, which deletes their data.
        evicts_unmanaged: evict pods that no controller recreates.
    """

    ignores_daemon_sets: bool = False
    deletes_empty_dirs: bool = False
    evicts_unmanaged: bool = False
    remedies: Remedies = OF_FLAGS


class LeavingPod(NamedTuple):
    """A pod that a drain moves; an unmanaged one is evicted without a seat."""

    namespace: str
    name: str
    uid: str
    is_managed: bool


class StayingPod(NamedTuple):
    """A pod that a drain leaves on the node, and the reason."""

    namespace: str
    name: str
    why: str


class Drain(NamedTuple):
    """The decision of a drain on each pod of a node.

    Attributes:
        leaving: pods to move.
        staying: pods that may stay on a drained node.
        refused: pods that stay, and so block the drain.
    """

    leaving: tuple[LeavingPod, ...]
    staying: tuple[StayingPod, ...]
    refused: tuple[StayingPod, ...]


def judge(pods: bytes, allowed: DrainOptions) -> Drain:
    """Decide on the pods of a node, given the API server's list of them.

    Raises:
        InvalidInput: `pods` is not a list of pods.
    """
    leaving, staying, refused = [], [], []
    for pod in decode(_Pods, pods).items:
        name = (pod.metadata.namespace, pod.metadata.name)
        if why := _stays(pod):
            staying.append(StayingPod(*name, why))
        elif _kind(pod) == "DaemonSet" and allowed.ignores_daemon_sets:
            staying.append(StayingPod(*name, "its DaemonSet would recreate it here"))
        elif why := _refusal(pod, allowed):
            refused.append(StayingPod(*name, why))
        else:
            leaving.append(LeavingPod(*name, pod.metadata.uid, is_managed=bool(_kind(pod))))
    return Drain(*(tuple(_sorted(each)) for each in (leaving, staying, refused)))  # type: ignore[arg-type]


def _sorted(pods: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(pods, key=lambda pod: (str(pod[0]), str(pod[1])))


def _stays(pod: _Pod) -> str:
    """Return why a pod need not be moved; empty if it has to."""
    if MIRROR_ANNOTATION in (pod.metadata.annotations or {}):
        return "its kubelet runs it from a file"
    if pod.metadata.deletion_timestamp is not None:
        return BEING_DELETED
    if pod.status.phase in FINISHED:
        return "it has finished"
    return ""


def _refusal(pod: _Pod, allowed: DrainOptions) -> str:
    """Return why a pod may not be moved without a permission; empty if it may."""
    remedies = allowed.remedies
    if _kind(pod) == "DaemonSet":
        return f"its DaemonSet would recreate it here; {remedies.daemon_sets}"
    if not _kind(pod) and not allowed.evicts_unmanaged:
        return f"no controller would replace it; {remedies.unmanaged}"
    has_data = any(each.empty_dir is not None for each in pod.spec.volumes or ())
    if has_data and not allowed.deletes_empty_dirs:
        return f"it has emptyDir volumes, whose data would be lost; {remedies.empty_dirs}"
    return ""


def _kind(pod: _Pod) -> str:
    """Return the kind of a pod's controller; empty without one."""
    controller = pod.metadata.controller
    return controller.kind if controller else ""
