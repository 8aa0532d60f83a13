"""Whatever is read has a bound, and at its bound it takes a fraction of a tenth of a second.

What others write is read from JSON into structs. Each of these belongs to a reader with a bound
on the bytes that it reads, and so on the product of all lists, maps and texts in them; or it is
named below with who writes it instead.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest

import reserver
from reserver.errors import InvalidInput
from reserver.moves import podmove
from reserver.server.webhook.handlers import MOST_BODY_BYTES
from reserver.wire.k8s import constraints, nodes, pods, requests, storage, watch
from reserver.wire.k8s.constraints import Affinity
from reserver.wire.k8s.objects import ConfigMapObject, decode
from reserver.wire.k8s.pods import BoundPod, PodObject
from reserver.wire.limits import POD, TENANT
from reserver.wire.patching import patchform, review
from reserver.wire.provisioning import requestform, template
from reserver.wire.spec import object as objects
from reserver.wire.spec import quotaform, specform
from tests.builders import NOW
from tests.cpu import MOST_S, least_cpu_s
from tests.integration.filled import Filler

OBJECT = 2**20
"""What a list or map of one object takes at most, in bytes. etcd takes 1.5 MiB with what the API
server notes of each entry in ``managedFields``, and of annotations 256 KiB are let through."""

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
    (quotaform.QuotaObject, "spec"): quotaform.QuotaSpec,
    (quotaform.QuotaObject, "status"): quotaform.QuotaStatus,
    (objects.ReservationObject, "spec"): specform.Spec,
    (objects.ReservationObject, "status"): objects.ReservationStatus,
    (patchform.PatchObject, "spec"): patchform.PatchSpec,
    (patchform.PatchObject, "status"): list[Any],
    (podmove.MoveObject, "spec"): podmove.SpecObject,
    (podmove.MoveObject, "status"): list[Any],
    (requestform.RequestObject, "spec"): requestform._Spec,
    (requestform.RequestObject, "status"): requestform._Status,
    (template._Object, "template"): template._Template,
}
"""What the parts are read as that stay JSON at first."""

FILLER = Filler(RAW)


class Reader(NamedTuple):
    """What is read, up to how many bytes, and how."""

    kind: Any
    most: int
    read: Callable[[bytes], object]


def reservation(spec: bytes) -> object:
    metadata = objects.ObjectMetadata(name="r", namespace="shop", uid="u")
    said = objects.ReservationObject(metadata=metadata, spec=msgspec.Raw(spec))
    return objects.read_object(said, NOW, "reserver-system")


def patch(spec: bytes) -> object:
    metadata = patchform.PatchMetadata(
        name="p", namespace="shop", creation_timestamp="2030-01-01T00:00:00Z"
    )
    return patchform.read_object(patchform.PatchObject(metadata, msgspec.Raw(spec)))


def move(spec: bytes) -> object:
    metadata = podmove.MoveMetadata(
        name="m", namespace="shop", creation_timestamp="2030-01-01T00:00:00Z"
    )
    return podmove.read_object(podmove.MoveObject(metadata, msgspec.Raw(spec)))


def request(spec: bytes) -> object:
    metadata = requestform.RequestMetadata(name="p", namespace="shop")
    said = requestform.RequestObject(metadata, msgspec.Raw(spec))
    return said.is_ours, requestform.read_object(said)


def reviewed(pod: bytes) -> review.ReviewRequest:
    return review.ReviewRequest(uid="u", object=msgspec.Raw(pod), old_object=msgspec.Raw(pod))


def valued(kind: Any) -> Callable[[bytes], object]:
    return lambda raw: decode(kind, raw).value()


def decoded(kind: Any) -> Callable[[bytes], object]:
    return lambda raw: decode(kind, raw)


READERS: dict[str, Reader] = {
    "pod": Reader(PodObject, POD.object_bytes, valued(PodObject)),
    "pod that is not read": Reader(BoundPod, OBJECT, decoded(BoundPod)),
    "any object": Reader(watch.PartialObject, OBJECT, decoded(watch.PartialObject)),
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
        lambda raw: objects.read_object(
            decode(objects.ReservationObject, raw), NOW, "reserver-system"
        ),
    ),
    "spec of a tenant's Reservation": Reader(specform.Spec, TENANT.spec_bytes, reservation),
    "ReservationQuota": Reader(
        quotaform.QuotaObject,
        OBJECT,
        lambda raw: quotaform.read_object(decode(quotaform.QuotaObject, raw)),
    ),
    "SchedPatch": Reader(patchform.PatchObject, OBJECT, decoded(patchform.PatchObject)),
    "spec of a SchedPatch": Reader(patchform.PatchSpec, TENANT.spec_bytes, patch),
    "PodMove": Reader(podmove.MoveObject, OBJECT, decoded(podmove.MoveObject)),
    "spec of a PodMove": Reader(podmove.SpecObject, podmove.MOST_BYTES, move),
    "ProvisioningRequest": Reader(
        requestform.RequestObject,
        OBJECT,
        lambda raw: decode(requestform.RequestObject, raw).conditions(),
    ),
    "spec of a ProvisioningRequest": Reader(requestform._Spec, requestform.MOST_BYTES, request),
}


@pytest.mark.parametrize("name", READERS)
def test_at_its_bound_nothing_takes_long_to_read(name: str) -> None:
    reader, slow = READERS[name], {}
    for path in FILLER.spots(reader.kind):
        for is_full in (False, True) if FILLER.has_entries(path[-1][1]) else (False,):
            filled = partial(FILLER.document, path, reader.most, is_full=is_full)
            if (took := least_cpu_s(filled, reader.read)) >= MOST_S:
                slow[".".join(part for part, _ in path[1:]), is_full] = round(took, 3)
    assert not slow


def test_what_is_longer_than_its_bound_is_not_read() -> None:
    kinds = {reader.kind for reader in READERS.values() if getattr(reader.kind, "MOST_BYTES", 0)}
    assert {PodObject, nodes.NodeObject, storage.ClaimObject, review.CreatedPod} <= kinds
    for kind in kinds:
        with pytest.raises(InvalidInput, match="too many to be read"):
            decode(kind, b" " * (kind.MOST_BYTES - 1) + b"{}")
        assert decode(kind, b" " * (kind.MOST_BYTES - 2) + b"{}") is not None


ELSEWHERE: dict[str, str] = {
    "cli.": "a command of whoever calls it",
    "kube.api.serving_pod": "a command of whoever calls it: the pods of Reserver itself",
    "rebalance.": "a process of its own (docs/adr/0066); a policy by policy_document.MOST_BYTES",
    "moves.drain.": "the command `drain`",
    "wire.patching.replacement.": "the command `move`",
    "wire.extender.Extender": "kube-scheduler; the pod that it sends is one of READERS",
    "wire.extender._": "kube-scheduler; the pod that it sends is one of READERS",
    "wire.extender.MetaVictims": "kube-scheduler",
    "wire.k8s.budgets.": "who may write PodDisruptionBudgets, up to what the API server takes",
    "wire.k8s.lease.": "Reserver, in its own namespace",
    "wire.k8s.reviews.": "the API server and its authenticator",
    "wire.k8s.conditions.": "Reserver, in a status",
    "wire.k8s.watch.": "the API server: pages have PAGE_BYTES, items stay JSON",
    "wire.k8s.objects.Labelled": "managers and Reserver: ConfigMaps, in its own namespace",
    "wire.past.": "managers and Reserver: what READERS have, of before",
    "moves.workload_object.": "the API server: one workload, of which numbers are read",
    "wire.spec.demands.": "a pod or template that READERS have bounded",
    "moves.podmove_group.": "trusted objects, by podmove_group.MOST_BYTES",
    "moves.podmove.": "READERS; MoveList by the command that asks for it",
    "moves.podmove_status.": "Reserver, in a status",
    "wire.patching.statusform.": "Reserver, in a status",
    "wire.patching.secretform.": "Reserver, and who may write webhook configurations",
    "wire.spec.listform.": "managers, by ITEM_BYTES",
    "wire.spec.ownerform.": "the reader of a spec, by the Limits of its place",
    "wire.spec.placementform.": "the reader of a spec, by the Limits of its place",
    "wire.provisioning.requestform._Class": "who writes READERS' requests: one name",
    "wire.spec.specform.EntrySpec": "managers, by HOME.spec_bytes",
    "wire.provisioning.template.": "the reader of a template, by TENANT.spec_bytes",
    "wire.status.": "Reserver, in companions and its archive",
}
"""Who writes what no reader above reads, or what bounds it; by the beginning of its name."""


def structs(kind: type[Any]) -> set[type[Any]]:
    below = {each for one in kind.__subclasses__() for each in structs(one)}
    return {kind} | below


def test_every_struct_belongs_to_a_reader_or_to_somebody_who_is_trusted() -> None:
    """What is added to one of them is filled by the test above; a new one has to be named here."""
    for module in pkgutil.walk_packages(reserver.__path__, "reserver."):
        if not module.name.startswith(("reserver.sim", "reserver.__main__")):
            importlib.import_module(module.name)
    read = {each for reader in READERS.values() for each in FILLER.structs(reader.kind)}
    bases = {base for each in read for base in each.__mro__}
    unknown = set()
    for each in structs(msgspec.Struct) - bases:
        name = f"{each.__module__}.{each.__qualname__}".removeprefix("reserver.")
        is_ours = each.__module__.startswith("reserver") and not name.startswith("sim.")
        is_base = not msgspec.structs.fields(each)
        if is_ours and not is_base and not name.startswith(tuple(ELSEWHERE)):
            unknown.add(name)
    assert not unknown


def test_every_part_that_stays_json_is_read_as_something_with_a_bound() -> None:
    unread = {
        (name, part)
        for name, reader in READERS.items()
        for part in FILLER.unread(reader.kind)
        if not part.endswith("[]")  # Items that are counted and not read.
    }
    assert not unread
