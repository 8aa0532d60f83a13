"""CapacityBuffers and their PodTemplates, as they are written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reserver.autoscaling.codec import (
    LABEL,
    POD_ANNOTATION,
    RESERVATION_ANNOTATION,
    name_for,
    read_shape,
    show_buffer,
    show_template,
)
from reserver.cluster.node import HOSTNAME
from reserver.k8s.objects.objects import CONFIG_MAP, POD, Metadata
from reserver.scheduling.buffers import Buffer
from reserver.scheduling.placement import slot_pod
from reserver.stores.codec import placement_codec
from reserver.stores.object.codec import RESERVATION
from tests.builders import pod, reservation

_NODE = "requiredDuringSchedulingIgnoredDuringExecution"
_RULE = {"key": HOSTNAME, "operator": "NotIn", "values": ["a", "b"]}
ZONE = {"key": "zone", "operator": "In", "values": ["z1"]}


def wanted(
    placement: dict[str, Any] | None = None, shunned: tuple[str, ...] = ("a", "b")
) -> Buffer:
    made = reservation(
        "r",
        node="",
        placement=placement_codec.read(placement or {}, "shop"),
        cpu="1500m",
        memory="4Gi",
        gpu="2",
        slots=3,
    )
    return Buffer(made, slot_pod(made), 3, shunned)


def spec(placement: dict[str, Any] | None = None, *shunned: str) -> dict[str, Any]:
    found: dict[str, Any] = show_template(wanted(placement, shunned), Metadata())["template"][
        "spec"
    ]
    return found


def test_a_buffer_goes_with_what_the_reservation_is_written_in_and_its_template_with_it() -> None:
    ref = reservation("r").ref
    name = name_for(ref)
    shown = show_buffer(wanted(), Metadata(name="store", uid="u1"), CONFIG_MAP)
    assert shown == {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {
            "name": name,
            "labels": {LABEL: "true"},
            "annotations": {RESERVATION_ANNOTATION: str(ref)},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "store", "uid": "u1"}
            ],
        },
        "spec": {"podTemplateRef": {"name": name}, "replicas": 3},
    }
    (owner,) = show_buffer(wanted(), Metadata(name="r"), RESERVATION)["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"]) == ("reserver.io/v1alpha1", "Reservation")
    template = show_template(wanted(), Metadata(name=name, uid="u2"))
    (owner,) = template["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("CapacityBuffer", name, "u2")
    assert template["metadata"]["name"] == name


def test_a_pod_asks_for_what_a_slot_holds() -> None:
    (container,) = spec()["containers"]
    amounts = {"cpu": "1500m", "memory": "4Gi", "nvidia.com/gpu": "2"}
    assert container["resources"] == {"requests": amounts, "limits": amounts}
    assert "affinity" not in spec()


def test_what_the_placement_says_of_pods_is_what_the_template_says() -> None:
    said = {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "strategy": "spread",
    }
    found = spec(said)
    assert {name: found[name] for name in ("nodeSelector", "tolerations")} == {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    assert "strategy" not in found


@pytest.mark.parametrize(
    ("said", "terms"),
    [
        (None, [{"matchExpressions": [_RULE]}]),
        ([{"matchExpressions": [ZONE]}], [{"matchExpressions": [ZONE, _RULE]}]),
        (
            [
                {"matchExpressions": [ZONE]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
            ],
            [
                {"matchExpressions": [ZONE, _RULE]},
                {
                    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
                    "matchExpressions": [_RULE],
                },
            ],
        ),
        ([{"matchExpressions": [ZONE]}, {}], [{"matchExpressions": [ZONE, _RULE]}, {}]),
    ],
    ids=["no affinity", "one alternative", "several", "one that matches nothing"],
)
def test_pods_are_kept_from_nodes_beside_what_their_affinity_says(said: Any, terms: Any) -> None:
    affinity = {"affinity": {"nodeAffinity": {_NODE: {"nodeSelectorTerms": said}}}} if said else {}
    shown = spec(affinity, "a", "b")["affinity"]["nodeAffinity"]
    assert shown == {_NODE: {"nodeSelectorTerms": terms}}


KEPT = {
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}
WEB = {
    "metadata": {"name": "p", "uid": "u", "labels": {"app": "web"}},
    "spec": {
        **KEPT,
        "affinity": {
            "nodeAffinity": {_NODE: {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}}
        },
        "volumes": [CLAIM, {"name": "tmp", "emptyDir": {}}],
        "containers": [{"name": "main", "image": "real"}],
        "priorityClassName": "high",
        "serviceAccountName": "web",
    },
}


def test_the_template_of_a_pod_is_like_it_but_for_what_it_runs() -> None:
    owner, shape = read_shape(json.dumps(WEB).encode())
    itself = pod("p", uid="u", cpu="2")
    buffer = Buffer(None, itself, 1, ("a", "b"))
    template = show_template(buffer, Metadata(), shape)["template"]
    assert template["metadata"] == {"labels": {"app": "web"}}
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    assert template["spec"] == {
        **KEPT,
        "affinity": {
            "nodeAffinity": {_NODE: {"nodeSelectorTerms": [{"matchExpressions": [ZONE, _RULE]}]}}
        },
        "volumes": [CLAIM],
        "containers": [{"name": "slot", "image": "none", "resources": resources}],
    }
    metadata = show_buffer(buffer, owner, POD)["metadata"]
    assert metadata == {
        "name": name_for("u"),
        "labels": {LABEL: "true"},
        "annotations": {POD_ANNOTATION: str(itself.name)},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
    }


def test_names_tell_reservations_apart() -> None:
    refs = [reservation(key).ref for key in ("a", "b")]
    assert len({*map(name_for, refs), name_for(refs[0]._replace(item="shop/web"))}) == 3
