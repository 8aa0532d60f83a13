"""What is kept of the texts of objects, which tenants may make as long as they like."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.k8s.objects.limits import HOME, MOST_NAME, POD, TENANT
from reserver.k8s.objects.objects import CustomResource, decode, encode
from reserver.k8s.objects.pods import PodObject
from reserver.k8s.objects.storage import ClaimObject
from reserver.maintenance.codec import WindowObject
from reserver.moves.podmove import MoveObject
from reserver.moves.podmove_group import PodMoveGroupObject
from reserver.patches.codec import PatchObject
from reserver.provisioning.codec import RequestObject
from reserver.stores.object.codec import (
    PLACEMENT_ANNOTATION,
    SET_LABEL,
    UNFINISHED_ANNOTATION,
    VOLUMES_ANNOTATION,
    ReservationObject,
)
from reserver.stores.object.entries import ObjectReading
from reserver.stores.quota_codec import QuotaObject
from tests.builders import NOW

KINDS = [
    MoveObject,
    PatchObject,
    PodMoveGroupObject,
    QuotaObject,
    RequestObject,
    ReservationObject,
    WindowObject,
]
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def read(kind: type[CustomResource] = ReservationObject, **metadata: Any) -> Any:
    return decode(kind, encode({"metadata": {"namespace": "shop", **metadata}})).metadata


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        (None, None),
        ({}, {}),
        ({"app": "web"}, {"app": "web"}),
        ({f"l{n}": "" for n in range(POD.labels)}, {f"l{n}": "" for n in range(POD.labels)}),
        ({f"l{n}": "" for n in range(130_000)}, {f"l{n}": "" for n in range(POD.labels)}),
        ({"a": "b", "c": "x" * POD.part_bytes, "d": "e"}, {"a": "b"}),
    ],
)
def test_the_first_labels_are_kept(
    kind: type[CustomResource], labels: dict[str, str] | None, kept: dict[str, str] | None
) -> None:
    assert read(kind, labels=labels).labels == kept


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        (None, None),
        ({APPLIED: "x" * 250_000}, {}),
        ({APPLIED: "{}", PLACEMENT_ANNOTATION: "{}"}, {PLACEMENT_ANNOTATION: "{}"}),
        (
            {f"a{n}": "" for n in range(130_000)} | {UNFINISHED_ANNOTATION: "3"},
            {UNFINISHED_ANNOTATION: "3"},
        ),
        ({PLACEMENT_ANNOTATION: "x" * TENANT.spec_bytes}, {}),
        ({PLACEMENT_ANNOTATION: "x" * 32_000}, {PLACEMENT_ANNOTATION: "x" * 32_000}),
        (
            {f"reserver.io/{n}": "" for n in range(130_000)},
            {f"reserver.io/{n}": "" for n in range(POD.labels)},
        ),
    ],
)
def test_only_the_annotations_of_reserver_are_kept(
    kind: type[CustomResource], annotations: dict[str, str] | None, kept: dict[str, str] | None
) -> None:
    assert read(kind, annotations=annotations).annotations == kept


def owner(kind: str = "PodMove", uid: str = "u", *, controller: bool | None = True) -> Any:
    made = {"apiVersion": "v1", "kind": kind, "name": "a", "uid": uid}
    return made if controller is None else {**made, "controller": controller}


@pytest.mark.parametrize(
    ("owners", "uid", "is_seat"),
    [
        (None, "", False),
        ([], "", False),
        ([owner(controller=None), owner(controller=False)], "", False),
        ([owner("Job", "j", controller=False), owner()], "u", True),
        ([owner("Job")], "u", False),
        ([*([owner("Job", "j", controller=False)] * 20_000), owner()], "u", True),
        ([owner(uid="u" * (POD.part_bytes + 1))], "", False),
        ([owner(kind="u" * (POD.part_bytes + 1))], "", False),
    ],
)
def test_the_controller_of_a_reservation_is_kept(owners: Any, uid: str, *, is_seat: bool) -> None:
    found = read(ownerReferences=owners)
    assert (found.controller_uid, found.is_seat) == (uid, is_seat)
    assert len(found.owner_references or ()) == bool(uid)


def test_a_seat_and_a_set_are_recognized_among_much_else() -> None:
    many = {f"z{n}": "" for n in range(60_000)}
    found = read(
        labels={SET_LABEL: "s"} | many,
        annotations=many | {VOLUMES_ANNOTATION: "a,b", UNFINISHED_ANNOTATION: "3"},
        ownerReferences=[owner()],
    )
    assert (found.set_id, found.unfinished) == ("shop/s", "3")
    assert found.volume_claims == ("a", "b")


@pytest.mark.parametrize("size", [0, 1, MOST_NAME, MOST_NAME + 1, 200_000])
def test_a_name_that_cannot_be_one_is_not_kept_whole(size: int) -> None:
    text, kept = "x" * size, "x" * min(size, MOST_NAME + 1)
    annotated = {
        "volume.kubernetes.io/selected-node": text,
        "volume.beta.kubernetes.io/storage-class": text,
    }
    for metadata in ({"annotations": annotated}, {"ownerReferences": [owner(uid=text)]}):
        spec = {"volumeName": text, "storageClassName": text}
        claim = decode(ClaimObject, encode({"metadata": metadata, "spec": spec})).value()
        assert (claim.volume, claim.storage_class) == (kept, kept)
        assert kept in {claim.selected_node, claim.owner_uid}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": text}}]
    whole = {"metadata": {}, "spec": {"containers": [], "volumes": volumes}}
    (use,) = decode(PodObject, encode(whole)).value().volume_claims
    assert use.name == kept


@pytest.mark.parametrize(
    ("namespace", "size", "is_kept"),
    [
        ("shop", 100, True),
        ("shop", TENANT.spec_bytes, True),
        ("shop", TENANT.spec_bytes + 1, False),
        ("shop", 1_000_000, False),
        ("home", TENANT.spec_bytes + 1, True),
        ("home", HOME.spec_bytes + 1, False),
    ],
)
def test_a_spec_that_is_too_long_is_refused_and_not_kept(
    namespace: str, size: int, *, is_kept: bool
) -> None:
    spec = encode({"description": ""})
    filled = spec.replace(b'""', b'"' + b"x" * (size - len(spec)) + b'"')
    whole = b'{"metadata":{"name":"a","namespace":"%s"},"spec":%s}' % (namespace.encode(), filled)
    reading = ObjectReading(lambda: NOW, "home")
    known = reading.read(decode(ReservationObject, whole), None, is_pending=False)
    assert known.entries.problems
    assert known.spec == (filled if is_kept else b"")
