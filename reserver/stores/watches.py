"""The watches of the stores: they feed the caches of reservations and quotas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from operator import eq

from reserver.base.pacer import Steps
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.k8s.watch.collection import CRDS, NAMESPACES, Enclosing
from reserver.k8s.watch.object_view import UNKNOWN, ObjectView
from reserver.k8s.watch.reflector import Reflector
from reserver.reservations.reservation import Ref
from reserver.stores.cache import Name
from reserver.stores.codec import quota_codec
from reserver.stores.codec.quota_codec import QuotaObject
from reserver.stores.configmap.cache import LABEL, NO_COMPANION, ConfigMapCache
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import COLLECTION, ReservationObject
from reserver.stores.quota_objects import QuotaCache


def store_reflectors(
    client: ApiClient, namespace: str, named: Collection[Name], store: ConfigMapCache
) -> Iterable[Reflector]:
    """Yield one watch for the labelled ConfigMaps of a namespace, and one for each named."""

    def is_labelled(name: Name) -> bool:
        return name not in named and name[0] == namespace

    path, labelled = f"/api/v1/namespaces/{namespace}/configmaps", {"labelSelector": LABEL}
    reflector = Reflector(client, path, store_view(store, is_labelled), labelled)
    reflector.enclosing = (Enclosing(client, NAMESPACES, namespace, may_be_missing=True),)
    yield reflector
    for own in sorted(named):
        path = f"/api/v1/namespaces/{own[0]}/configmaps"
        selector = {"fieldSelector": f"metadata.name={own[1]}", "labelSelector": NO_COMPANION}
        yield Reflector(client, path, store_view(store, partial(eq, own)), selector)


def object_reflector(
    client: ApiClient, namespace: str, store: ObjectCache, *, is_optional: bool
) -> Reflector:
    """Return the watch for all Reservation objects; `is_optional`: their CRD may be missing."""
    reflector = Reflector(client, COLLECTION, object_view(store), is_optional=is_optional)
    home = Enclosing(client, NAMESPACES, namespace, may_be_missing=True)
    reflector.enclosing = (Enclosing(client, CRDS, "reservations.reserver.io"), home)
    return reflector


def quota_reflector(client: ApiClient, store: QuotaCache) -> Reflector:
    """Return the watch for all ReservationQuotas; without their CRD there are none."""
    return Reflector(client, quota_codec.COLLECTION, quota_view(store), is_optional=True)


def store_view(
    store: ConfigMapCache, covers: Callable[[Name], bool]
) -> ObjectView[ConfigMapObject]:
    """Return a view that keeps the store up to date with the ConfigMaps that it alone `covers`."""

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
        revision_of=lambda name: _revision(store.metadata(name)) if covers(name) else UNKNOWN,
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
        revision_of=lambda name: _revision(store.subject(Ref.of_object(*name))),
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


def _revision(metadata: Metadata | None) -> int:
    """Return at which resourceVersion an object is known; 0 if there is none."""
    return (metadata.revision or UNKNOWN) if metadata else 0
