"""What tenants write takes little memory once it is read, whichever part of it they fill."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import pytest

from reserver.errors import InvalidInput
from reserver.k8s.objects.budgets import BudgetObject
from reserver.k8s.objects.objects import Metadata, decode, encode
from reserver.k8s.objects.pod_annotations import PROVISIONING_CLASS
from reserver.k8s.objects.pods import PodObject
from reserver.k8s.objects.storage import ClaimObject
from reserver.moves.index import MoveIndex
from reserver.moves.podmove import MoveObject
from reserver.patches.codec import PatchObject
from reserver.patches.controller import SchedPatches
from reserver.provisioning.codec import RequestObject
from reserver.provisioning.observe import KnownRequests
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.entries import ObjectReading
from tests.builders import NOW
from tests.integration.readers.readers import FILLER, OBJECT
from tests.integration.readers.test_structs import all_structs
from tests.unit.k8s.fakes import ScriptedClient

Json = dict[str, Any]

MOST_KEPT = 128 * 1024
"""Most bytes of memory for one object; 1,000 of each kind are read in a namespace."""

METADATA = {
    "name": "web",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "1",
    "creationTimestamp": "2030-01-01T00:00:00Z",
}

GIVEN = {
    *(f"metadata.{name}" for name in (*METADATA, "continue")),
    *("spec.nodeName", "spec.schedulingGroup.podGroupName"),
}
"""The texts that the API server bounds, or writes itself."""

ROOM = 1_024
"""Bytes of what else a document says, at most."""


def valued(item: Any) -> object:
    return item.value()


def reservation(item: ReservationObject) -> object:
    return ObjectReading(lambda: NOW, "reserver-system").read(item, None, is_pending=False)


def move(item: MoveObject) -> object:
    index = MoveIndex(lambda _: None)
    index.put(item)
    return index.get(item.name)


def patch(item: PatchObject) -> object:
    patches = SchedPatches(ScriptedClient(), "one", lambda: NOW, tuple)
    patches.put(item)
    entry = patches.book.get(item.name)
    return patches._known, entry and entry.patch


def request(item: RequestObject) -> object:
    requests = KnownRequests(lambda _: None)
    requests.put(item)
    return requests.get(item.name)


OWNED = {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": "1"}}
KEPT: dict[type[Any], tuple[Callable[[Any], object], Json]] = {
    PodObject: (valued, {"containers": []}),
    ClaimObject: (valued, {}),
    BudgetObject: (valued, {}),
    ReservationObject: (reservation, OWNED),
    MoveObject: (move, {"pod": {"name": "a"}}),
    PatchObject: (patch, {"selector": {"matchLabels": {"a": "b"}}, "maxCount": 1}),
    RequestObject: (request, {"provisioningClassName": PROVISIONING_CLASS}),
}
"""What a cache makes of each kind that tenants may write, and the spec of a valid object."""

ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("cli.", "moves.drain.", "patches.replacement."), "a command"),
    "rebalance.": "a process of its own (docs/adr/0066)",
    "k8s.serving_pod.": "the pods of Reserver",
    "k8s.objects.nodes.": "kubelets and cluster administrators",
    **dict.fromkeys(
        (
            "k8s.objects.storage.Volume",
            "k8s.objects.storage.Storage",
            "k8s.objects.storage.Csi",
            "maintenance.",
            "stores.quota_codec.",
            "webhook.certificate_secret.",
        ),
        "cluster administrators",
    ),
    **dict.fromkeys(
        ("k8s.objects.objects.ConfigMap", "k8s.objects.objects.Labelled", "stores.", "k8s.lease."),
        "managers and Reserver, in its own namespace",
    ),
    "moves.podmove_group.": "who moves pods of several namespaces; only its metadata is kept",
    **dict.fromkeys(
        (
            "extender.protocol.",
            "k8s.objects.objects.CustomResource",
            "k8s.objects.objects.ObjectList",
            "k8s.objects.objects.PartialObject",
            "k8s.objects.pods.BoundPod",
            "k8s.watch.collection.",
            "moves.podmove.MoveList",
            "moves.surge_object.",
            "moves.workloads.",
            "webhook.review.",
        ),
        "nobody keeps it",
    ),
}
"""Who writes each other object, or that it is not kept, by prefix of the struct's name."""


def taken(thing: object) -> int:
    """Return the bytes of all that can be reached from a value."""
    size, seen, todo = 0, set[int](), [thing]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | FunctionType | ModuleType):
            continue
        assert not isinstance(one, msgspec.Raw) or not len(one), "keeps the whole document"
        seen.add(id(one))
        size += sys.getsizeof(one)
        todo += gc.get_referents(one)
    return size


def merged(one: Json, other: Json) -> Json:
    both = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            both[key] = merged(one[key], other[key])
    return both


@pytest.mark.parametrize("kind", KEPT)
def test_no_part_of_an_object_takes_much_memory(kind: type[Any]) -> None:
    keep, spec = KEPT[kind]
    base, large = {"metadata": METADATA, "spec": spec}, {}
    assert keep(decode(kind, encode(base))) is not None
    most = (getattr(kind, "MOST_BYTES", 0) or OBJECT) - ROOM
    for path in FILLER.spots(kind):
        name = ".".join(part for part, _ in path[1:])
        if name.startswith("status") or name in GIVEN:
            continue
        filled = partial(FILLER.document, path, most, 1)
        for is_full in (False, True) if FILLER.has_entries(path[-1][1]) else (False,):
            whole = encode(merged(base, decode(dict[str, Any], filled(is_full=is_full))))
            try:
                size = taken(keep(decode(kind, whole)))
            except InvalidInput:
                continue  # It is passed over.
            if size > MOST_KEPT:
                large[name, is_full] = size
    assert not large


def test_every_object_is_kept_within_a_bound_or_written_by_somebody_who_is_trusted() -> None:
    unknown = set()
    for each in all_structs() - KEPT.keys():
        name = f"{each.__module__}.{each.__qualname__}".removeprefix("reserver.")
        found = [f for f in msgspec.structs.fields(each) if f.name == "metadata"]
        if found and issubclass(found[0].type, Metadata) and not name.startswith(tuple(ELSEWHERE)):
            unknown.add(name)
    assert not unknown
