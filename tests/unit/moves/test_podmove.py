"""PodMoves as users write them, their status, and the seat of a PodMove."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from hack.fuzz import shapes
from hack.fuzz.move_shapes import MOVES
from reserver.cluster.pod import Controller, PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import Condition, decode, encode
from reserver.moves import manifests, podmove, podmove_status
from reserver.moves.effects import HoldSeat
from reserver.moves.manifests import seat
from reserver.moves.model import MAX_TIMEOUT_S, MOST_IN_GROUP, Move, MoveGroup, MoveSpec
from reserver.moves.phases import MoveMode, MovePhase, MoveReason
from reserver.moves.workloads import read_wanted
from reserver.reservations.owner import OwnerRule, Replaced
from reserver.reservations.placement import ANYWHERE
from reserver.stores.codec import placement_codec
from reserver.stores.codec.demands import placement

CRD = Path(__file__).parents[3] / "scheduler-config/components/moves/crd.yaml"
WHOLE, SMALL, FOLLOWING = MOVES
CREATED = "2030-01-01T00:00:00Z"


def item(spec: Any, status: Any = None) -> podmove.MoveObject:
    metadata = {"name": "move", "namespace": "shop", "uid": "uid", "creationTimestamp": CREATED}
    said = {} if status is None else {"status": status}
    return decode(podmove.MoveObject, encode({"metadata": metadata, "spec": spec, **said}))


def read(**spec: Any) -> Move:
    return podmove.read_object(item({"pod": {"name": "web-0"}} | spec))


def test_a_move_says_what_is_wanted_and_how_far_it_is() -> None:
    move = podmove.read_object(item(WHOLE["spec"], WHOLE["status"]))
    assert (move.spec.pod, move.spec.uid) == (PodName("shop", "web-0"), "u")
    assert json.loads(move.spec.placement.text) == {"nodeSelector": {"zone": "a"}}
    assert (move.spec.timeout_s, move.spec.grace_period_s, move.spec.paused) == (5400.0, 30, True)
    assert (move.spec.group, move.spec.urgent) == (MoveGroup("drain", 3), True)
    status = move.status
    assert (status.phase, status.reason) == (MovePhase.LANDING, MoveReason.WAITS_FOR_REPLACEMENT)
    assert (status.source, status.target, status.seat) == ("worker-1", "worker-2", "web-0123")
    assert (status.controller, status.replacement.uid) == (Controller("ReplicaSet", "web"), "v")
    assert encode(podmove_status.show_status(status, 2)) == encode(WHOLE["status"])


def test_a_move_of_which_only_the_pod_is_said_begins_now_and_waits_for_windows_and_its_seat() -> (
    None
):
    """The command and the reader of a PodMove set the same defaults of a spec."""
    assert read().spec == MoveSpec(pod=PodName("shop", "web-0"))


def test_a_move_that_follows_another_says_which_pod_has_come_with_that() -> None:
    move = podmove.read_object(item(FOLLOWING["spec"], FOLLOWING["status"]))
    assert (move.spec.after, move.pod.name, move.status.uid) == ("first", "web-1", "v")
    assert move.deadline == (move.status.found_at or 0.0) + 600.0
    said = decode(podmove_status.StatusObject, encode(FOLLOWING["status"]))
    assert podmove_status.show_status(move.status, 2) == said
    written = manifests.manifest(move.spec.pod, manifests.SharedFields(), after="first")
    assert written["spec"]["pod"] == FOLLOWING["spec"]["pod"]


def test_a_move_that_says_little_goes_anywhere_with_a_seat_in_ten_minutes() -> None:
    spec = read().spec
    assert (spec.node, spec.placement, spec.mode) == ("", ANYWHERE, MoveMode.RESERVE_FIRST)
    assert (spec.timeout_s, spec.grace_period_s, spec.group.name) == (600.0, None, "")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"pod": {"name": "Web"}}, "spec.pod.name"),
        ({"pod": {"name": "web-0", "uid": "u" * 65}}, "spec.pod.uid"),
        ({"pod": {"name": "web-0", "uid": "u", "after": "first"}}, "spec.pod.uid"),
        ({"pod": {"name": "web-0", "after": "other/first"}}, "spec.pod.after"),
        ({"to": {"node": "a b"}}, "spec.to.node"),
        ({"to": {"node": "a", "nodeSelector": {"b": "c"}}}, "spec.to.nodeSelector"),
        ({"to": {"nodeSelector": {"a b": "c"}}}, "spec.to.nodeSelector.a b"),
        ({"to": {"nodeSelector": {f"l{n}": "" for n in range(17)}}}, "spec.to.nodeSelector"),
        ({"timeout": "25h"}, "spec.timeout"),
        ({"timeout": "0s"}, "spec.timeout"),
        ({"timeout": "soon"}, "spec.timeout"),
        ({"mode": "EvictOnly", "group": {"name": "a", "size": 2}}, "spec.group"),
        ({"group": {"name": "", "size": 2}}, "spec.group.name"),
        ({"group": {"name": "a", "size": 0}}, "spec.group.size"),
        ({"deleteOptions": {"gracePeriodSeconds": -1}}, "spec.deleteOptions.gracePeriodSeconds"),
        ({"pause": True}, "spec"),
        ({"pod": {"name": "web-0", "uid": ["u"] * 4000}}, "spec"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_the_name_of_the_field(
    spec: Any, path: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(**spec)
    assert refusal.value.path == path
    said = podmove_status.refused(refusal.value, 3)
    assert (said.phase, said.reason, said.observed_generation) == (
        MovePhase.FAILED,
        "InvalidSpec",
        3,
    )


# The CRD


@cache
def schema() -> dict[str, Any]:
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]
    return found


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("spec",), podmove.SpecObject),
        (("spec", "pod"), podmove.MovedPodObject),
        (("spec", "to"), podmove.TargetObject),
        (("spec", "deleteOptions"), podmove.DeleteOptionsObject),
        (("spec", "group"), podmove.MoveGroupObject),
        (("status",), podmove_status.StatusObject),
        (("status", "controller"), podmove_status.ControllerObject),
        (("status", "replacement"), podmove_status.ReplacementObject),
        (("status", "conditions"), Condition),
    ],
)
def test_the_schema_and_the_reader_know_the_same_fields(path: tuple[str, ...], kind: Any) -> None:
    part = schema()
    for step in path:
        part = part[step].get("items", part[step])["properties"]
    assert part.keys() == {field.encode_name for field in msgspec.structs.fields(kind)}


def test_the_schema_states_the_bounds_that_the_reader_keeps() -> None:
    spec = schema()["spec"]["properties"]
    assert spec["group"]["properties"]["size"]["maximum"] == MOST_IN_GROUP
    assert spec["to"]["properties"]["nodeSelector"]["maxProperties"] == podmove.MOST_LABELS
    grace = spec["deleteOptions"]["properties"]["gracePeriodSeconds"]
    assert grace["maximum"] == podmove.MOST_GRACE_S
    assert spec["ttlSecondsAfterFinished"]["maximum"] == podmove.MOST_KEPT_S
    assert f"duration('{int(MAX_TIMEOUT_S / 3600)}h')" in str(spec["timeout"])
    assert set(spec["mode"]["enum"]) == set(MoveMode)


def test_every_field_of_the_schema_is_described() -> None:
    def undescribed(part: dict[str, Any], path: str) -> list[str]:
        found = [] if part.get("description") else [path]
        inner = part.get("properties") or part.get("items", {}).get("properties", {})
        return found + [hit for name in inner for hit in undescribed(inner[name], f"{path}.{name}")]

    assert [undescribed(schema()[name], name) for name in ("spec", "status")] == [[], []]


# The seat


def demanded(**spec: Any) -> bytes:
    return encode({"metadata": {"name": "web-0", "uid": "u"}, "spec": spec})


def terms(found: Any) -> Any:
    return found["affinity"]["nodeAffinity"][shapes.REQUIRED]["nodeSelectorTerms"]


def test_a_seat_may_be_wherever_the_pod_may_but_not_where_it_is() -> None:
    found = placement(demanded(), leaves="worker-1", node="", selector={})
    leaves = {"key": "metadata.name", "operator": "NotIn", "values": ["worker-1"]}
    assert terms(found) == [{"matchFields": [leaves]}]
    assert found.keys() == {"affinity"}


def test_each_alternative_of_the_pod_keeps_the_seat_from_the_node_that_it_leaves() -> None:
    zones = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"
    ]
    affinity = {
        "nodeAffinity": {
            shapes.REQUIRED: {"nodeSelectorTerms": [*zones, {}]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
        }
    }
    found = placement(demanded(affinity=affinity), leaves="worker-1", node="worker-2", selector={})
    assert [term["matchExpressions"] for term in terms(found)] == [
        zone["matchExpressions"] for zone in zones
    ]  # The empty one matches nothing.
    assert all(
        [each["operator"] for each in term["matchFields"]] == ["NotIn", "In"]
        for term in terms(found)
    )


def test_a_seat_demands_what_the_pod_demands_and_prefers_nothing() -> None:
    spread = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    near = {"topologyKey": "zone", "matchLabelKeys": ["hash"], "labelSelector": {}}
    weighted = {"weight": 1, "podAffinityTerm": near}
    raw = demanded(
        nodeSelector={"disk": "ssd"},
        tolerations=[{"operator": "Exists", "tolerationSeconds": 300}],
        topologySpreadConstraints=[
            {**spread, "whenUnsatisfiable": "DoNotSchedule"},
            {**spread, "whenUnsatisfiable": "ScheduleAnyway"},
        ],
        affinity={
            "podAntiAffinity": {
                shapes.REQUIRED: [near],
                "preferredDuringSchedulingIgnoredDuringExecution": [weighted],
            }
        },
    )
    found = placement(raw, leaves="worker-1", node="", selector={"zone": "a"})
    assert found["nodeSelector"] == {"disk": "ssd", "zone": "a"}
    assert found["tolerations"] == [{"operator": "Exists"}]
    assert len(found["topologySpreadConstraints"]) == 1
    apart = found["affinity"]["podAntiAffinity"]
    assert apart == {shapes.REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}
    placement_codec.read(found, "shop")


def test_labels_that_the_pod_contradicts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the pod itself demands zone=b"):
        placement(demanded(nodeSelector={"zone": "b"}), leaves="a", node="", selector={"zone": "a"})


def test_a_seat_belongs_to_its_move_and_to_the_replacement_alone() -> None:
    move = podmove.read_object(item(SMALL["spec"]))
    hold = HoldSeat(
        seat=PodName("shop", "seat"),
        like=PodName("shop", "web-0"),
        uid="u",
        owner=OwnerRule(
            namespace="shop",
            pod="web-0",
            controller=Controller("StatefulSet", "web"),
            replaces=Replaced("u", frozenset({"b", "a"})),
        ),
        resources={"cpu": 1500, "memory": 2**30, "pods": 1},
        node="worker-2",
        placement=ANYWHERE,
        avoid="worker-1",
        expires_at=1_893_456_600.9,
    )
    body: Any = seat(move, hold, demanded())
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("PodMove", "uid", True)
    spec = json.loads(bytes(body["spec"]))
    (entry,) = spec["owners"]
    assert entry["replaces"] == {"uid": "u", "existing": ["a", "b"]}
    assert (entry["pod"], entry["controller"]["name"]) == ({"name": "web-0"}, "web")
    assert spec["resources"] == {"cpu": "1500m", "memory": "1Gi", "pods": "1"}
    assert (spec["policy"], spec["expiresAt"]) == ("Require", "2030-01-01T00:10:00Z")


@pytest.mark.parametrize(
    ("written", "replicas"),
    [
        ({"spec": {"replicas": 3}}, 3),
        ({"spec": {"replicas": 3}, "metadata": {"deletionTimestamp": CREATED}}, 0),
        ({"spec": {}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}, 0),
        ({"spec": {}, "status": {"conditions": [{"type": "Failed", "status": "False"}]}}, None),
    ],
)
def test_a_controller_says_how_many_pods_it_wants(written: Any, replicas: int | None) -> None:
    assert read_wanted(encode(written)).replicas == replicas


@pytest.mark.parametrize(("status", "failure"), [("True", "no more pods here"), ("False", "")])
def test_a_replicaset_says_why_it_cannot_make_a_pod(status: str, failure: str) -> None:
    condition = {"type": "ReplicaFailure", "status": status, "message": "no more pods here"}
    written = {"spec": {"replicas": 1}, "status": {"conditions": [condition]}}
    assert read_wanted(encode(written)) == (1, failure)
