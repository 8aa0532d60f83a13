"""Feeds what watches show into the state that decisions use, and into the stores."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, MutableMapping
from functools import partial
from itertools import chain
from typing import Generic, TypeVar

import msgspec
import structlog

from reserver.cluster.pod import Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.cluster.storage import Storage
from reserver.errors import InvalidInput
from reserver.kube.stores.cache import Name
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.kube.stores.object.cache import ObjectCache
from reserver.kube.watch.quotas import QuotaCache
from reserver.pacer import Steps
from reserver.quarantine import quarantined
from reserver.scheduling.state import State
from reserver.wire.k8s.nodes import NamespaceObject, NodeObject
from reserver.wire.k8s.objects import ConfigMapObject, Metadata, decode
from reserver.wire.k8s.pods import BoundPod, PodObject
from reserver.wire.k8s.storage import ClaimObject, StorageClassObject, VolumeObject
from reserver.wire.k8s.watch import ReadEvent, Shown, metadata_of
from reserver.wire.patching.review import MARKS_ANNOTATION
from reserver.wire.spec.object import ReservationObject
from reserver.wire.spec.quotaform import QuotaObject

log = structlog.get_logger(__name__)

T = TypeVar("T", bound=Shown)
K = TypeVar("K")
V = TypeVar("V")
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


class ObjectView(Generic[T]):
    """Reports each object that is seen, and each that is gone.

    Attributes:
        events: what a watch of them shows.
        unreadable: how many objects were skipped because they could not be read.
        revision: the resourceVersion at which what is gone was.
    """

    def __init__(  # noqa: PLR0913 - what a collection tells
        self,
        kind: type[T],
        seen: Callable[[T, bool], Steps | None],
        gone: Callable[[Key], Steps | None],
        known: Callable[[], Iterable[Key]],
        has_successor: Callable[[Key, str], bool] = lambda *_: False,
        *,
        broken: Callable[[Key, T | msgspec.Raw], None] = lambda *_: None,
        ended: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Report a collection's objects.

        Args:
            kind: of the objects.
            seen: called with each object that exists, whenever it may have changed, and whether a
                list shows it: then it may have changed more than once; raises InvalidInput.
            gone: called with each object that no longer exists.
            known: the objects that are believed to exist.
            has_successor: whether one of the same name is known, but of another UID than this.
            broken: called with each object that cannot be read or judged: what is known of it is
                out of date from then on.
            ended: called with the resourceVersion of each list that has been taken.
        """
        self._kind = kind
        self._seen = seen
        self._gone = gone
        self._known = known
        self._has_successor = has_successor
        self._broken = broken
        self._ended = ended
        self.events: type[ReadEvent[T]] = ReadEvent[kind]  # type: ignore[valid-type]
        self.revision = 0
        self._unlisted: set[Key] = set()
        self.unreadable = 0

    def list_began(self) -> None:
        """Begin a list: it may not show what becomes known from now on."""
        self._unlisted = set(self._known())

    def listed(self, item: T | msgspec.Raw) -> Steps:
        """Take an object that a page of a list shows."""
        metadata = yield from self._take(item, listed=True)
        self._unlisted.discard(_key(metadata))

    def list_ended(self, revision: int) -> Steps:
        """Drop the objects that no page has shown; the list was of this resourceVersion."""
        self.revision = revision
        while self._unlisted:
            yield from self._drop(self._unlisted.pop())
            yield
        self._ended(revision)

    def changed(self, item: T | msgspec.Raw) -> Generator[None, None, Metadata]:
        """Take an object that was added or modified; return its metadata."""
        return self._take(item, listed=False)

    def deleted(self, item: T | msgspec.Raw) -> Generator[None, None, Metadata]:
        """Drop an object, after taking its last state: a pod may have been bound in between."""
        self.revision = metadata_of(item).revision
        metadata = yield from self._take(item, listed=False)
        if not self._has_successor(_key(metadata), metadata.uid):
            yield from self._drop(_key(metadata))
        return metadata

    def _take(self, item: T | msgspec.Raw, *, listed: bool) -> Generator[None, None, Metadata]:
        """Take an object, read or not; return its metadata."""
        yield  # A megabyte takes milliseconds to decode.
        metadata, shown = self._read(item)
        if shown is not None:
            key = _key(metadata)
            with quarantined("watch", "/".join(key), partial(self._failed, key, item)):
                try:
                    yield from self._seen(shown, listed) or ()
                except InvalidInput as exc:
                    self._pass_over(key, item, exc)
        return metadata

    def _read(self, item: T | msgspec.Raw) -> tuple[Metadata, T | None]:
        """Return an object and its metadata; None for one that cannot be read."""
        if not isinstance(item, msgspec.Raw):
            return item.metadata, item
        try:
            shown = decode(self._kind, item)
        except InvalidInput as exc:
            metadata = metadata_of(item)
            self._pass_over(_key(metadata), item, exc)
            return metadata, None
        return shown.metadata, shown

    def _pass_over(self, key: Key, item: T | msgspec.Raw, exc: InvalidInput) -> None:
        log.error("object cannot be read and is passed over", name=key, why=str(exc))
        self._failed(key, item, exc)

    def _failed(self, key: Key, item: T | msgspec.Raw, _: InvalidInput) -> None:
        self.unreadable += 1
        self._broken(key, item)

    def _drop(self, key: Key) -> Steps:
        with quarantined("watch", "/".join(key)):
            yield from self._gone(key) or ()


def _key(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name


PodChanged = Callable[[Pod | None, Pod | None], None]
"""Takes a pod as it was and as it is; None where it was or is not."""


def unheard(*_: object) -> None:
    """Hear nothing."""


def pod_view(
    state: State,
    changed: PodChanged = unheard,
    marked: Callable[[str, str], None] = unheard,
) -> ObjectView[PodObject]:
    """Return a view that keeps the state's pods up to date.

    Args:
        state: what to feed.
        changed: called after each change of a pod.
        marked: called with the namespace of each pod that has SchedPatches, and what it says of
            them.
    """

    def seen(pod: PodObject, listed: bool) -> None:  # noqa: FBT001 - as the view calls it
        marks = (pod.metadata.annotations or {}).get(MARKS_ANNOTATION)
        if marks is not None:
            marked(pod.metadata.namespace, marks)
        value = pod.value()
        before = state.pods.get(value.name)
        state.pod_seen(value, listed=listed)
        state.doubts.trust(value.name)
        changed(before, state.pods.get(value.name))

    def gone(key: Key) -> None:
        name = PodName(*key)
        before = state.pods.get(name)
        state.doubts.trust(key)
        state.pod_gone(name)
        changed(before, None)

    def broken(key: Key, item: PodObject | msgspec.Raw) -> None:
        try:
            pod = decode(BoundPod, item) if isinstance(item, msgspec.Raw) else item
        except InvalidInput:  # Not even that can be read: no API server has such a pod.
            pod = BoundPod()
        state.doubts.doubt(key, pod.spec.node_name)

    return ObjectView(
        PodObject,
        seen=seen,
        gone=gone,
        known=lambda: chain(state.pods, filter(_has_namespace, state.doubts)),
        has_successor=lambda key, uid: (
            (known := state.pods.get(PodName(*key))) is not None and known.uid != uid
        ),
        broken=broken,
        ended=state.pods_listed,
    )


def node_view(state: State) -> ObjectView[NodeObject]:
    """Return a view that keeps the state's nodes up to date."""

    def seen(node: NodeObject, _: bool) -> None:  # noqa: FBT001 - as the view calls it
        value = node.value()
        state.node_seen(value)
        state.doubts.trust(("", value.name))

    def gone(key: Key) -> None:
        state.doubts.trust(key)
        state.node_gone(key[1])

    return ObjectView(
        NodeObject,
        seen=seen,
        gone=gone,
        known=lambda: (
            *(("", name) for name in state.snapshot.node_names()),
            *(key for key in state.doubts if not _has_namespace(key)),
        ),
        broken=lambda key, _: state.doubts.doubt(key, key[1]),
    )


def _has_namespace(key: Key) -> bool:
    return bool(key[0])


def namespace_view(snapshot: Snapshot) -> ObjectView[NamespaceObject]:
    """Return a view that keeps the labels of namespaces up to date."""
    namespaces = snapshot.namespaces
    return ObjectView(
        NamespaceObject,
        seen=lambda one, _: namespaces.update({one.metadata.name: one.metadata.labels or {}}),
        gone=lambda key: _drop(namespaces, key[1]),
        known=lambda: (("", name) for name in namespaces),
    )


def claim_view(storage: Storage) -> ObjectView[ClaimObject]:
    """Return a view that keeps PersistentVolumeClaims up to date."""
    return ObjectView(
        ClaimObject,
        seen=lambda item, _: storage.claims.update({(one := item.value()).name: one}),
        gone=lambda key: _drop(storage.claims, PodName(*key)),
        known=lambda: storage.claims,
    )


def volume_view(storage: Storage) -> ObjectView[VolumeObject]:
    """Return a view that keeps PersistentVolumes up to date."""
    return ObjectView(
        VolumeObject,
        seen=lambda item, _: storage.volumes.update({(one := item.value()).name: one}),
        gone=lambda key: _drop(storage.volumes, key[1]),
        known=lambda: (("", name) for name in storage.volumes),
    )


def class_view(storage: Storage) -> ObjectView[StorageClassObject]:
    """Return a view that keeps StorageClasses up to date."""
    return ObjectView(
        StorageClassObject,
        seen=lambda item, _: storage.classes.update({(one := item.value()).name: one}),
        gone=lambda key: _drop(storage.classes, key[1]),
        known=lambda: (("", name) for name in storage.classes),
    )


def _drop(known: MutableMapping[K, V], key: K) -> None:
    known.pop(key, None)


def store_view(
    store: ConfigMapCache, covers: Callable[[Name], bool]
) -> ObjectView[ConfigMapObject]:
    """Return a view that keeps the store up to date.

    Args:
        store: what to feed; other watches feed it, too.
        covers: which ConfigMaps this watch, and no other one, is for.
    """

    def seen(configmap: ConfigMapObject, listed: bool) -> Steps:  # noqa: FBT001 - as the view calls it
        if covers((configmap.metadata.namespace, configmap.metadata.name)):
            yield from store.put(configmap, listed=listed)

    def gone(name: Name) -> Steps:
        if covers(name):
            yield from store.drop(name, view.revision)

    view = ObjectView(
        ConfigMapObject,
        seen=seen,
        gone=gone,
        known=lambda: filter(covers, store.names()),
        ended=lambda revision: store.listed(covers, revision),
    )
    return view


def object_view(store: ObjectCache) -> ObjectView[ReservationObject]:
    """Return a view that keeps the store of Reservation objects up to date."""
    view: ObjectView[ReservationObject] = ObjectView(
        ReservationObject,
        seen=lambda item, listed: store.put(item, listed=listed),
        gone=lambda name: store.drop(name, view.revision),
        known=store.names,
        ended=store.listed,
    )
    return view


def quota_view(store: QuotaCache) -> ObjectView[QuotaObject]:
    """Return a view that keeps what ReservationQuotas say up to date."""
    return ObjectView(
        QuotaObject,
        seen=lambda item, _: store.put(item),
        gone=store.drop,
        known=store.names,
    )
