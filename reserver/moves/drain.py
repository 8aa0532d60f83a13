"""Decides which pods of a node a drain moves, as `kubectl drain` does.

The filters are those of kubectl's pkg/drain/filters.go, and the words like theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from reserver.k8s.objects.objects import decode

BEING_DELETED = "it is being deleted already"

_MIRROR = "kubernetes.io/config.mirror"
_FINISHED = {"Succeeded", "Failed"}


class _Owner(msgspec.Struct):
    kind: str = ""
    controller: bool = False


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _EmptyDir(msgspec.Struct):
    pass


class _Volume(msgspec.Struct, rename="camel"):
    empty_dir: _EmptyDir | None = None


class _Spec(msgspec.Struct):
    volumes: list[_Volume] | None = None


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


class Remedies(NamedTuple):
    """The flags that allow a drain to do what it refuses by default, as remedies."""

    daemon_sets: str = "use --ignore-daemonsets to leave it"
    unmanaged: str = "pass --force to evict it all the same"
    empty_dirs: str = "use --delete-emptydir-data"


OF_FLAGS = Remedies()
"""Those of `reserver drain`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """What a drain may do to pods that lose something by it.

    Attributes:
        remedies: what is said of those that it may not move.
        ignores_daemon_sets: pods of DaemonSets stay, and that is no problem.
        deletes_empty_dirs: pods with emptyDir volumes are moved, whose data is lost.
        evicts_unmanaged: pods that no controller makes again are evicted for good.
    """

    ignores_daemon_sets: bool = False
    deletes_empty_dirs: bool = False
    evicts_unmanaged: bool = False
    remedies: Remedies = OF_FLAGS


class LeavingPod(NamedTuple):
    """A pod that a drain moves; one that nobody makes again has no seat."""

    namespace: str
    name: str
    uid: str
    is_managed: bool


class StayingPod(NamedTuple):
    """A pod that a drain leaves where it is, and why."""

    namespace: str
    name: str
    why: str


class Drain(NamedTuple):
    """The pods of a node, by what a drain does with them.

    Attributes:
        leaving: they are moved.
        staying: they stay, as they should.
        refused: they stay, and keep the node from being drained.
    """

    leaving: tuple[LeavingPod, ...]
    staying: tuple[StayingPod, ...]
    refused: tuple[StayingPod, ...]


def judge(pods: bytes, allowed: DrainOptions) -> Drain:
    """Return what becomes of the pods of a node, given a list of them as the API server sends it.

    Raises:
        InvalidInput: it is no list of pods.
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
    """Return why there is nothing to move; empty if there is."""
    if _MIRROR in (pod.metadata.annotations or {}):
        return "its kubelet runs it from a file"
    if pod.metadata.deletion_timestamp is not None:
        return BEING_DELETED
    if pod.status.phase in _FINISHED:
        return "it has finished"
    return ""


def _refusal(pod: _Pod, allowed: DrainOptions) -> str:
    """Return why a pod must not be moved without being told to; empty if it may."""
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
    """Return the kind of what makes a pod again; empty if nothing does."""
    owners = pod.metadata.owner_references or ()
    return next((owner.kind for owner in owners if owner.controller), "")
