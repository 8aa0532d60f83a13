"""Every input is bounded, and at its bound it takes a fraction of a tenth of a second.

What others write is read from JSON into structs. Each of these belongs to a reader with a bound
on the bytes that it reads, and so on the product of all lists, maps and texts in them; or it is
listed below with its writer.
"""

from __future__ import annotations

import importlib
import pkgutil
from calendar import isleap
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest

import reserver
from reserver.base.pacer import outcome
from reserver.errors import InvalidInput
from reserver.k8s.objects import constraints, nodes, pods, requests, storage
from reserver.k8s.objects.constraints import Affinity
from reserver.k8s.objects.limits import POD, TENANT
from reserver.k8s.objects.objects import (
    ConfigMapObject,
    PartialObject,
    ResourceMetadata,
    decode,
    encode,
)
from reserver.k8s.objects.pods import BoundPod, PodObject
from reserver.maintenance import codec as maintenance
from reserver.maintenance.model import Window
from reserver.maintenance.observe import turn_of
from reserver.moves import podmove
from reserver.patches import codec as patches_codec
from reserver.provisioning import codec as provisioning_codec
from reserver.provisioning import template
from reserver.rebalance import metrics_api as node_metrics
from reserver.rebalance.metrics_api import read_node_metrics
from reserver.scheduling.placement import placing
from reserver.stores import quota_codec
from reserver.stores.codec import prices, spec_codec
from reserver.stores.object import codec as objects
from reserver.stores.object import entries
from reserver.webhook import review
from reserver.webhook.handlers import MOST_BODY_BYTES
from tests.builders import NOW, node, state_of
from tests.cpu import MOST_S, least_cpu_s, longest_step_s
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


LABELS = [f"{letter * 40}.example.com/{letter * 60}" for letter in "abcdefghijklmnop"]
NOT_IN = [
    {"key": key, "operator": "NotIn", "values": [f"{key[:3]}-{n}" for n in range(64)]}
    for key in LABELS
]
RARE = {"duration": "1m", "timeZone": "America/St_Johns"}
LEAP_DAYS = [date(year, 2, 29) for year in range(2032, 4832) if isleap(year)]
FIFTH_SUNDAYS = [str(day) for day in LEAP_DAYS if day.isoweekday() == 7]
"""Of February: every 28 years, as a rule."""


def window_of(minute: int) -> bytes:
    names = [f"node-{number}-{'x' * 200}" for number in range(maintenance.MOST_NODES)]
    schedule = {**RARE, "cron": f"{minute} 0 * 2 SUN#5", "until": "9000-01-01T00:00:00Z"}
    spec = {"schedule": schedule, "nodes": names, "surge": True, "maxUnavailable": "1%"}
    return encode({**spec, "nodeSelector": {"matchExpressions": NOT_IN}, "drainBefore": "168h"})


def of_schedule(cron: str, **more: Any) -> bytes:
    owners, resources = [{"selector": {"matchLabels": {"app": "web"}}}], {"cpu": "1"}
    schedule = {**RARE, "cron": cron, **more}
    return encode({"owners": owners, "resources": resources, "schedule": schedule})


def recurring(spec: bytes) -> object:
    """Read one, and find the occurrences that people are shown."""
    (found,) = reservation(spec).reservations  # type: ignore[attr-defined]
    return found.at(NOW).next_occurrences


def kept(spec: bytes) -> object:
    """Read a window, and find its occurrence of now."""
    found = window(spec)
    assert isinstance(found, Window)
    return found.at(NOW)


def whole_nodes(number: int) -> bytes:
    terms = [{"matchExpressions": [{**NOT_IN[n], "key": f"{number}"}]} for n in range(10)]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    tolerations = [{"key": f"k{number}-{n}", "operator": "Exists"} for n in range(32)]
    return encode({
        "owners": [{"selector": {"matchLabels": {"app": f"web-{n}"}}} for n in range(100)],
        "nodes": {"count": 500, "selector": dict.fromkeys(LABELS[:15], "x" * 60)},
        "placement": {"tolerations": tolerations, "affinity": {"nodeAffinity": affinity}},
    })  # fmt: skip


def node_metric(pods: int, resources: int, number: int) -> bytes:
    usage = {f"{number}-{n}.example.com/x": "12345678.9m" for n in range(resources)}
    metrics = [{"name": f"p{n}", "podUsage": {"resources": usage}} for n in range(pods)]
    whole = {"nodeUsage": {"resources": usage}, "systemUsage": {"resources": usage}}
    status = {"updateTime": "2030-01-01T00:00:00Z", "nodeMetric": whole, "podsMetric": metrics}
    item = {"metadata": {"name": "n"}, "status": status}
    return encode({"kind": "NodeMetricList", "items": [item]})


def metric(raw: bytes) -> object:
    return read_node_metrics(raw, NOW)


def skipped(number: int) -> bytes:
    skip = [f"{day}T0{number % 10}:00:00-03:30" for day in FIFTH_SUNDAYS[:90]]
    return of_schedule(f"0 {number % 10} * 2 SUN#5", skip=skip)


STRANGE: dict[str, tuple[Callable[[int], bytes], Callable[[bytes], object]]] = {
    "a window that comes every 28 years": (window_of, kept),
    "a reservation that comes every 28 years, a hundred times": (
        lambda n: of_schedule(f"{n} 0 * 2 SUN#5", count=100).replace(
            b'"schedule"', b'"startsAt":"2030-01-01T00:00:00Z","schedule"'
        ),
        recurring,
    ),
    "one that follows real time so": (
        lambda n: of_schedule(f"*/59 {n} * 2 SUN#5", count=100).replace(
            b'"schedule"', b'"startsAt":"2030-01-01T00:00:00Z","schedule"'
        ),
        recurring,
    ),
    "one that is left out for 2,000 years": (skipped, recurring),
    "one that comes each minute, and is left out a hundred times": (
        lambda n: of_schedule(
            "* * * * *",
            skip=[f"2030-03-17T{17 + m // 60}:{m % 60:02}:0{n}Z" for m in range(46, 146)],
        ),
        recurring,
    ),
    "whole nodes": (whole_nodes, reservation),
    "a NodeMetric of many pods": (partial(node_metric, 500, 50), metric),
    "a NodeMetric of many resources": (partial(node_metric, 1, 9_000), metric),
    "prices": (
        lambda n: ",".join(
            f"{'a' * 60}.{n}.example.com/{m}=0.{'1' * 1_000}" for m in range(prices.MOST_PRICES)
        ).encode(),
        lambda raw: prices.parse(raw.decode()),
    ),
}
"""Valid inputs with extreme values."""


@pytest.mark.parametrize("name", STRANGE)
def test_the_strangest_that_is_valid_takes_no_longer(name: str) -> None:
    make, read = STRANGE[name]
    read(make(0))  # It is valid.
    assert least_cpu_s(lambda number: make(1 + number), read) < MOST_S


def test_a_window_of_many_terms_is_judged_for_all_nodes_in_short_steps() -> None:
    labels = dict.fromkeys(LABELS, "y" * 60)
    nodes = [node(f"node-{number}", labels=labels) for number in range(5_000)]
    found = kept(window_of(1))
    assert isinstance(found, Window)
    assert longest_step_s(lambda: turn_of(found, nodes)) < MOST_S


def test_five_hundred_whole_nodes_are_placed_in_short_steps() -> None:
    (asked,) = reservation(whole_nodes(1)).reservations  # type: ignore[attr-defined]
    labels = dict.fromkeys(LABELS[:15], "x" * 60)
    state = state_of(*(node(f"n{n}", cpu="8", labels=labels | {"1": "z"}) for n in range(5_000)))
    assert sum(part.slots for part in outcome(placing(asked, 500, state)).parts) == 500
    assert longest_step_s(lambda: placing(asked, 500, state)) < MOST_S


ELSEWHERE: dict[str, str] = {
    "cli.": "a command of whoever calls it",
    "k8s.serving_pod": "a command of whoever calls it: the pods of Reserver itself",
    "process.leadership.": "the API server: names of pods in Reserver's own namespace",
    "settings.configuration.": "a cluster administrator, by strict_yaml.MOST_BYTES",
    "rebalance.": "a process of its own (docs/adr/0066); a policy by strict_yaml.MOST_BYTES",
    "moves.drain.": "the command `drain`",
    "patches.replacement.": "the command `move`",
    "extender.protocol.Extender": "kube-scheduler; the pod that it sends is one of READERS",
    "extender.protocol._": "kube-scheduler; the pod that it sends is one of READERS",
    "extender.protocol.MetaVictims": "kube-scheduler",
    "k8s.objects.budgets.": "who may write PodDisruptionBudgets, up to what the API server takes",
    "k8s.lease.": "Reserver, in its own namespace",
    "k8s.objects.move_windows.": "a cluster administrator, by strict_yaml.MOST_BYTES",
    "k8s.objects.reviews.": "the API server and its authenticator",
    "k8s.objects.objects.Condition": "Reserver, in a status",
    "k8s.watch.collection.": "the API server: whether one CRD or namespace is being deleted",
    "k8s.objects.objects.ObjectList": "the API server: pages have PAGE_BYTES, items stay JSON",
    "k8s.objects.objects.ReadEvent": "the API server, by the bound of what the event is about",
    "k8s.objects.objects.Status": "the API server",
    "k8s.objects.objects.WatchEvent": "the API server: items stay JSON",
    "k8s.objects.objects.Labelled": "managers and Reserver: ConfigMaps, in its own namespace",
    "stores.recovery.": "managers and Reserver: what READERS have, of before",
    "moves.workloads.": "the API server: its discovery, by workloads._MOST_BYTES, and one number",
    "moves.workload_object.": "the API server: one workload, of which numbers are read",
    "moves.surge_object.": "the API server: a pod, its ReplicaSet and Deployment, read one by one",
    "stores.codec.demands.": "a pod or template that READERS have bounded",
    "moves.podmove_group.": "trusted objects, by podmove_group.MOST_BYTES",
    "moves.podmove.": "READERS; MoveList by the command that asks for it",
    "moves.podmove_status.": "Reserver, in a status",
    "patches.status_codec.": "Reserver, in a status",
    "webhook.certificate_secret.": "Reserver, and who may write webhook configurations",
    "stores.configmap.list_codec.": "managers, by ITEM_BYTES",
    "stores.codec.owner_codec.": "the reader of a spec, by the Limits of its place",
    "stores.codec.placement_codec.": "the reader of a spec, by the Limits of its place",
    "k8s.objects.schedules.": "the reader of a spec, by the Limits of its place",
    "provisioning.codec._Class": "who writes READERS' requests: one name",
    "stores.codec.spec_codec.EntrySpec": "managers, by HOME.spec_bytes",
    "provisioning.template.": "the reader of a template, by TENANT.spec_bytes",
    "stores.configmap.status_codec.": "Reserver, in companions and its archive",
    "stores.configmap.companion_codec.": "Reserver, in companions and its archive",
    "stores.object.status_codec.": "Reserver, in companions and its archive",
    "stores.archive.": "Reserver, in companions and its archive",
}
"""The trusted writer or the bound of each struct without a reader, by prefix of its name."""


def structs(kind: type[Any]) -> set[type[Any]]:
    below = {each for one in kind.__subclasses__() for each in structs(one)}
    return {kind} | below


def test_every_struct_belongs_to_a_reader_or_to_somebody_who_is_trusted() -> None:
    """The test above fills new fields of a struct; a new struct has to be listed here."""
    for module in pkgutil.walk_packages(reserver.__path__, "reserver."):
        if module.name != "reserver.__main__":
            importlib.import_module(module.name)
    read = {each for reader in READERS.values() for each in FILLER.structs(reader.kind)}
    bases = {base for each in read for base in each.__mro__}
    unknown = set()
    for each in structs(msgspec.Struct) - bases:
        name = f"{each.__module__}.{each.__qualname__}".removeprefix("reserver.")
        is_ours = each.__module__.startswith("reserver.")
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
