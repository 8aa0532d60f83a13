"""The watches of all objects that a pod's placement depends on; they update the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from itertools import chain
from typing import TypeVar

import msgspec

from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.cluster.storage import Storage
from reserver.errors import InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.nodes import NamespaceObject, NodeObject
from reserver.k8s.objects.objects import Shown, decode
from reserver.k8s.objects.pod_annotations import MARKS_ANNOTATION, move_window
from reserver.k8s.objects.pods import BoundPod, PodObject
from reserver.k8s.objects.requests import FINISHED
from reserver.k8s.objects.storage import (
    ClaimObject,
    CsiNodeObject,
    StorageClassObject,
    VolumeObject,
)
from reserver.k8s.watch.object_view import UNKNOWN, Key, ObjectView
from reserver.k8s.watch.reflector import Reflector
from reserver.scheduling.state import State

K = TypeVar("K")
T = TypeVar("T", bound=Shown)
V = TypeVar("V")

PODS = "/api/v1/pods"
"""The path of all pods of a cluster."""


def cluster_reflectors(client: ApiClient, state: State) -> Iterable[Reflector]:
    """Yield the watches of all objects that a pod's placement depends on."""
    snapshot, storage = state.snapshot, state.snapshot.storage
    yield Reflector(client, "/api/v1/nodes", node_view(state))
    yield Reflector(client, PODS, pod_view(state))
    yield Reflector(client, "/api/v1/namespaces", namespace_view(snapshot))
    yield Reflector(client, "/api/v1/persistentvolumeclaims", claim_view(storage))
    yield Reflector(client, "/api/v1/persistentvolumes", volume_view(storage))
    yield Reflector(client, "/apis/storage.k8s.io/v1/storageclasses", class_view(storage))


def pod_view(state: State) -> ObjectView[PodObject]:
    """Return a view that updates the state's pods, and notifies the listener of each change."""
    pods = state.pods

    def seen(pod: PodObject, listed: bool) -> None:  # noqa: FBT001 - as the view calls it
        marks = (pod.metadata.annotations or {}).get(MARKS_ANNOTATION)
        if marks is not None:
            state.listener.on_pod_patched(pod.metadata.namespace, marks)
        value = pod.value()
        before = pods.get(value.name)
        state.pod_seen(value, listed=listed)
        state.unreadable.trust(value.name)
        state.listener.on_pod_changed(before, pods.get(value.name))

    def known(key: Key) -> Pod | None:
        return pods.get(PodName(*key))

    def gone(key: Key) -> None:
        before = known(key)
        state.unreadable.trust(key)
        state.pod_gone(PodName(*key))
        state.listener.on_pod_changed(before, None)

    def broken(key: Key, item: PodObject | msgspec.Raw) -> None:
        pod: BoundPod | PodObject = BoundPod()
        with suppress(InvalidInput):  # The API server's pods all decode as BoundPod.
            pod = decode(BoundPod, item) if isinstance(item, msgspec.Raw) else item
        # A finished pod uses nothing of its node, whatever it requests.
        state.unreadable.note(key, "" if pod.status.phase in FINISHED else pod.spec.node_name)

    return ObjectView(
        PodObject,
        seen=seen,
        gone=gone,
        known=lambda: chain(pods, filter(_has_namespace, state.unreadable)),
        has_successor=lambda key, uid: (pod := known(key)) is not None and pod.uid != uid,
        revision_of=lambda key: pod.revision if (pod := known(key)) else UNKNOWN,
        broken=broken,
        began=state.pods_shown,
        ended=state.pods_listed,
    )


def node_view(state: State) -> ObjectView[NodeObject]:
    """Return a view that updates the state's nodes."""

    def seen(node: NodeObject, _: bool) -> None:  # noqa: FBT001 - as the view calls it
        value = node.value()
        state.node_seen(value)
        state.unreadable.trust(("", value.name))

    def gone(key: Key) -> None:
        state.unreadable.trust(key)
        state.node_gone(key[1])

    return ObjectView(
        NodeObject,
        seen=seen,
        gone=gone,
        known=lambda: (
            *(("", name) for name in state.snapshot.node_names()),
            *(key for key in state.unreadable if not _has_namespace(key)),
        ),
        broken=lambda key, _: state.unreadable.note(key, key[1]),
    )


def _has_namespace(key: Key) -> bool:
    return bool(key[0])


def namespace_view(snapshot: Snapshot) -> ObjectView[NamespaceObject]:
    """Return a view that updates labels and move windows of namespaces."""
    namespaces, move_windows = snapshot.namespaces, snapshot.move_windows

    def gone(key: Key) -> None:
        _drop(namespaces, key[1])
        _drop(move_windows, key[1])

    def seen(one: NamespaceObject, _: object) -> None:
        name = one.metadata.name
        namespaces[name] = one.metadata.labels or {}
        _drop(move_windows, name)
        if window := move_window(one.metadata.annotations or {}):
            move_windows[name] = window

    return ObjectView(
        NamespaceObject, seen=seen, gone=gone, known=lambda: (("", name) for name in namespaces)
    )


def claim_view(storage: Storage) -> ObjectView[ClaimObject]:
    """Return a view that updates PersistentVolumeClaims."""
    return ObjectView(
        ClaimObject,
        seen=lambda item, _: storage.claims.update({(one := item.value()).name: one}),
        gone=lambda key: _drop(storage.claims, PodName(*key)),
        known=lambda: storage.claims,
    )


def volume_view(storage: Storage) -> ObjectView[VolumeObject]:
    """Return a view that updates PersistentVolumes."""
    return _by_name(VolumeObject, storage.volumes, VolumeObject.value)


def class_view(storage: Storage) -> ObjectView[StorageClassObject]:
    """Return a view that updates StorageClasses."""
    return _by_name(StorageClassObject, storage.classes, StorageClassObject.value)


def attachable_view(storage: Storage) -> ObjectView[CsiNodeObject]:
    """Return a view that updates the volume limits of nodes."""
    return _by_name(CsiNodeObject, storage.attachable, CsiNodeObject.limits)


def _by_name(
    kind: type[T], known: MutableMapping[str, V], value: Callable[[T], V]
) -> ObjectView[T]:
    """Return a view that updates values of cluster-scoped objects by name."""
    return ObjectView(
        kind,
        seen=lambda item, _: known.update({item.metadata.name: value(item)}),
        gone=lambda key: _drop(known, key[1]),
        known=lambda: (("", name) for name in known),
    )


def _drop(known: MutableMapping[K, V], key: K) -> None:
    known.pop(key, None)
