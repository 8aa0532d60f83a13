"""The readers of input that other clients write: type, bound in bytes, parser."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from reserver.cluster.pod import PodName
from reserver.k8s.objects import constraints, nodes, pods, requests, storage
from reserver.k8s.objects.budgets import BudgetObject
from reserver.k8s.objects.constraints import Affinity
from reserver.k8s.objects.limits import POD, TENANT
from reserver.k8s.objects.objects import (
    ConfigMapObject,
    PartialObject,
    ResourceMetadata,
    decode,
)
from reserver.k8s.objects.pods import BoundPod, PodObject
from reserver.maintenance import codec as maintenance
from reserver.moves import podmove, podmove_group, surge_object
from reserver.patches import codec as patches_codec
from reserver.provisioning import codec as provisioning_codec
from reserver.provisioning import template
from reserver.provisioning.model import PodSet, ProvisioningRequest
from reserver.rebalance import metrics_api as node_metrics
from reserver.rebalance.metrics_api import read_node_metrics
from reserver.stores import quota_codec
from reserver.stores.codec import spec_codec
from reserver.stores.object import codec as objects
from reserver.stores.object import entries
from reserver.webhook import review
from reserver.webhook.handlers import MOST_BODY_BYTES
from tests.builders import NOW
from tests.integration.filled import Filler

OBJECT = 2**20
"""Bound on a list or map of one object, in bytes. etcd accepts 1.5 MiB, including ``managedFields``
with each entry, and the API server accepts annotations of 256 KiB."""

RAW: dict[tuple[type, str], Any] = {
    (pods.Owned, "labels"): dict[str, str],
    (pods.Owned, "owner_references"): list[pods.OwnerReference],
    (requests.ContainerSpec, "ports"): list[constraints._Port],
    (requests.Actuated, "node_allocatable_resource_claim_statuses"): list[requests._ClaimStatus],
    (pods.PodSpec, "node_selector"): dict[str, str],
    (pods.PodSpec, "affinity"): Affinity,
    (pods.PodSpec, "tolerations"): list[constraints.TolerationObject],
    (pods.PodSpec, "topology_spread_constraints"): list[constraints.SpreadObject],
    (pods.PodSpec, "volumes"): list[pods._Volume],
    (pods.PodSpec, "resource_claims"): list[pods._EphemeralSource],
    (review._PodMetadata, "labels"): dict[str, str],
    (review._PodSpec, "node_selector"): dict[str, str],
    (review._PodSpec, "affinity"): Affinity,
    (review._PodSpec, "tolerations"): list[constraints.TolerationObject],
    (review.ReviewRequest, "object"): list[Any],
    (review.ReviewRequest, "old_object"): list[Any],
    (quota_codec.QuotaObject, "spec"): quota_codec.QuotaSpec,
    (quota_codec.QuotaObject, "status"): quota_codec.QuotaStatus,
    (objects.ReservationObject, "spec"): spec_codec.SpecFields,
    (objects.ReservationObject, "status"): objects.ReservationStatus,
    (patches_codec.PatchObject, "spec"): patches_codec.PatchSpec,
    (patches_codec.PatchObject, "status"): list[Any],
    (podmove.MoveObject, "spec"): podmove.SpecObject,
    (podmove.MoveObject, "status"): list[Any],
    (maintenance.WindowObject, "spec"): maintenance._Spec,
    (maintenance.WindowObject, "status"): maintenance.WindowStatusObject,
    (provisioning_codec.RequestObject, "spec"): provisioning_codec._Spec,
    (provisioning_codec.RequestObject, "status"): provisioning_codec._Status,
    (template._Object, "template"): template._Template,
    (podmove_group.PodMoveGroupObject, "spec"): podmove_group._Spec,
    (podmove_group.PodMoveGroupObject, "status"): list[Any],
}
"""The types of raw JSON parts."""

FILLER = Filler(RAW)


class Reader(NamedTuple):
    """A type, the bound on its input in bytes, and its parser."""

    kind: Any
    most: int
    read: Callable[[bytes], object]


def reservation(spec: bytes) -> object:
    metadata = objects.ObjectMetadata(name="r", namespace="shop", uid="u")
    said = objects.ReservationObject(metadata=metadata, spec=msgspec.Raw(spec))
    return entries.read_object(said, NOW, "reserver-system")


def patch(spec: bytes) -> object:
    metadata = ResourceMetadata(
        name="p", namespace="shop", creation_timestamp="2030-01-01T00:00:00Z"
    )
    return patches_codec.read_object(patches_codec.PatchObject(metadata, msgspec.Raw(spec)))


def move(spec: bytes) -> object:
    metadata = ResourceMetadata(
        name="m", namespace="shop", creation_timestamp="2030-01-01T00:00:00Z"
    )
    return podmove.read_object(podmove.MoveObject(metadata, msgspec.Raw(spec)))


def request(spec: bytes) -> object:
    metadata = ResourceMetadata(name="p", namespace="shop")
    said = provisioning_codec.RequestObject(metadata, msgspec.Raw(spec))
    return said.is_ours, provisioning_codec.read_object(said)


def window(spec: bytes) -> object:
    metadata = ResourceMetadata(name="w", uid="u")
    return maintenance.read_object(maintenance.WindowObject(metadata, msgspec.Raw(spec)))


def reviewed(pod: bytes) -> review.ReviewRequest:
    return review.ReviewRequest(uid="u", object=msgspec.Raw(pod), old_object=msgspec.Raw(pod))


def valued(kind: Any) -> Callable[[bytes], object]:
    return lambda raw: decode(kind, raw).value()


def decoded(kind: Any) -> Callable[[bytes], object]:
    return lambda raw: decode(kind, raw)


def bounded(kind: Any, read: Callable[[bytes], object]) -> Reader:
    return Reader(kind, kind.MOST_BYTES, read)


def templated(pod: bytes) -> object:
    request = ProvisioningRequest(name=PodName("shop", "job"), uid="u")
    return template.document(request, PodSet("worker", 1), pod, NOW)


READERS: dict[str, Reader] = {
    "pod": Reader(PodObject, POD.object_bytes, valued(PodObject)),
    "pod that is not read": Reader(BoundPod, OBJECT, decoded(BoundPod)),
    "any object": Reader(PartialObject, OBJECT, decoded(PartialObject)),
    "review": Reader(review._Review, MOST_BODY_BYTES, review.read_request),
    "pod to patch": Reader(
        review.CreatedPod, POD.object_bytes, lambda raw: decode(review.CreatedPod, raw).value("a")
    ),
    "pod to resize": Reader(
        review._ResizedPod, POD.object_bytes, lambda raw: review.resized(reviewed(raw))
    ),
    "subject of a review": Reader(
        review._Subject, MOST_BODY_BYTES // 2, lambda raw: review.subject(reviewed(raw))
    ),
    "node": Reader(nodes.NodeObject, OBJECT, valued(nodes.NodeObject)),
    "namespace": Reader(nodes.NamespaceObject, OBJECT, decoded(nodes.NamespaceObject)),
    "claim": Reader(storage.ClaimObject, OBJECT, valued(storage.ClaimObject)),
    "volume": Reader(
        storage.VolumeObject, storage.VolumeObject.MOST_BYTES, valued(storage.VolumeObject)
    ),
    "storage class": Reader(storage.StorageClassObject, OBJECT, valued(storage.StorageClassObject)),
    "CSINode": Reader(
        storage.CsiNodeObject, OBJECT, lambda raw: decode(storage.CsiNodeObject, raw).limits()
    ),
    "ConfigMap": Reader(ConfigMapObject, OBJECT, decoded(ConfigMapObject)),
    "Reservation": Reader(
        objects.ReservationObject,
        OBJECT,
        lambda raw: entries.read_object(
            decode(objects.ReservationObject, raw), NOW, "reserver-system"
        ),
    ),
    "spec of a tenant's Reservation": Reader(spec_codec.SpecFields, TENANT.spec_bytes, reservation),
    "ReservationQuota": Reader(
        quota_codec.QuotaObject,
        OBJECT,
        lambda raw: quota_codec.read_object(decode(quota_codec.QuotaObject, raw)),
    ),
    "SchedPatch": Reader(patches_codec.PatchObject, OBJECT, decoded(patches_codec.PatchObject)),
    "spec of a SchedPatch": Reader(patches_codec.PatchSpec, TENANT.spec_bytes, patch),
    "PodMove": Reader(podmove.MoveObject, OBJECT, decoded(podmove.MoveObject)),
    "spec of a PodMove": Reader(podmove.SpecObject, podmove.MOST_BYTES, move),
    "MaintenanceWindow": Reader(
        maintenance.WindowObject,
        OBJECT,
        lambda raw: decode(maintenance.WindowObject, raw).said(),
    ),
    "spec of a MaintenanceWindow": Reader(maintenance._Spec, maintenance.MOST_BYTES, window),
    "PodDisruptionBudget": bounded(BudgetObject, valued(BudgetObject)),
    "PodMoveGroup": Reader(
        podmove_group.PodMoveGroupObject, OBJECT, decoded(podmove_group.PodMoveGroupObject)
    ),
    "ReplicaSet": bounded(
        surge_object.ReplicaSetObject,
        lambda raw: surge_object.unfit_set(decode(surge_object.ReplicaSetObject, raw)),
    ),
    "Deployment": bounded(
        surge_object.DeploymentObject,
        lambda raw: decode(surge_object.DeploymentObject, raw).unfit(),
    ),
    "surging pod": bounded(surge_object.SurgingPod, decoded(surge_object.SurgingPod)),
    "PodTemplate": bounded(template._Object, partial(template.pod_of, path="")),
    "pod of a PodTemplate": Reader(template._Template, TENANT.spec_bytes, templated),
    "NodeMetric": Reader(
        node_metrics._NodeMetric,
        OBJECT,
        lambda raw: read_node_metrics(b'{"kind":"NodeMetricList","items":[' + raw + b"]}", NOW),
    ),
    "ProvisioningRequest": Reader(
        provisioning_codec.RequestObject,
        OBJECT,
        lambda raw: decode(provisioning_codec.RequestObject, raw).conditions(),
    ),
    "spec of a ProvisioningRequest": Reader(
        provisioning_codec._Spec, provisioning_codec.MOST_BYTES, request
    ),
}
