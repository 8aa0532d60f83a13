"""The collections that Reserver watches: all that placing a pod depends on, and the stores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from operator import eq

from reserver.kube.api.client import ApiClient
from reserver.kube.stores.cache import Name
from reserver.kube.stores.configmap.cache import LABEL, NO_COMPANION, ConfigMapCache
from reserver.kube.stores.object.cache import ObjectCache
from reserver.kube.watch.quotas import QuotaCache
from reserver.kube.watch.reflector import Reflector
from reserver.kube.watch.views import (
    PodChanged,
    claim_view,
    class_view,
    namespace_view,
    node_view,
    object_view,
    pod_view,
    quota_view,
    store_view,
    unheard,
    volume_view,
)
from reserver.scheduling.state import State
from reserver.wire.spec import quotaform
from reserver.wire.spec.object import COLLECTION

PODS = "/api/v1/pods"
"""The path of all pods of a cluster."""


def cluster_reflectors(
    client: ApiClient,
    state: State,
    pod_changed: PodChanged = unheard,
    marked: Callable[[str, str], None] = unheard,
) -> Iterable[Reflector]:
    """Yield the watches of what placing a pod depends on; the functions are those of `pod_view`."""
    snapshot, storage = state.snapshot, state.snapshot.storage
    yield Reflector(client, "/api/v1/nodes", node_view(state))
    yield Reflector(client, PODS, pod_view(state, pod_changed, marked))
    yield Reflector(client, "/api/v1/namespaces", namespace_view(snapshot))
    yield Reflector(client, "/api/v1/persistentvolumeclaims", claim_view(storage))
    yield Reflector(client, "/api/v1/persistentvolumes", volume_view(storage))
    yield Reflector(client, "/apis/storage.k8s.io/v1/storageclasses", class_view(storage))


def store_reflectors(
    client: ApiClient, namespace: str, named: Collection[Name], store: ConfigMapCache
) -> Iterable[Reflector]:
    """Yield one watch for the labelled ConfigMaps of a namespace, and one for each named."""

    def is_labelled(name: Name) -> bool:
        return name not in named and name[0] == namespace

    path = f"/api/v1/namespaces/{namespace}/configmaps"
    yield Reflector(client, path, store_view(store, is_labelled), {"labelSelector": LABEL})
    for own in sorted(named):
        path = f"/api/v1/namespaces/{own[0]}/configmaps"
        selector = {"fieldSelector": f"metadata.name={own[1]}", "labelSelector": NO_COMPANION}
        yield Reflector(client, path, store_view(store, partial(eq, own)), selector)


def object_reflector(client: ApiClient, store: ObjectCache, *, is_optional: bool) -> Reflector:
    """Return the watch for all Reservation objects; `is_optional`: their CRD may be missing."""
    return Reflector(client, COLLECTION, object_view(store), is_optional=is_optional)


def quota_reflector(client: ApiClient, store: QuotaCache) -> Reflector:
    """Return the watch for all ReservationQuotas; without their CRD there are none."""
    return Reflector(client, quotaform.COLLECTION, quota_view(store), is_optional=True)
