"""The reservations that a filter selects."""

from typing import Any

import pytest

from reserver.cluster.pod import Controller
from reserver.errors import InvalidInput
from reserver.grpc.selection import ReservationSelector
from reserver.v1 import reservation_pb2 as pb
from tests.builders import name, pod

PODS = {
    name("web-0"): pod("web-0", labels={"app": "web"}, controller=Controller("ReplicaSet", "web"))
}
OWNERS = {
    "named": {"pod": {"name": "web-0"}},
    "elsewhere": {"pod": {"name": "web-0", "namespace": "blog"}},
    "made": {"controller": {"kind": "ReplicaSet", "name": "web"}},
    "labelled": {"selector": {"match_labels": {"app": "web"}}},
    "not-db": {
        "selector": {"match_expressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}
    },
    "both": {"pod": {"name": "web-0"}, "selector": {"match_labels": {"app": "db"}}},
}


def reservation(owner: Any) -> pb.Reservation:
    spec = pb.ReservationSpec(owners=[pb.Owner(**owner)], node="worker-1")
    return pb.Reservation(id="shop/store/key", spec=spec)


@pytest.mark.parametrize(
    ("filter_", "meant"),
    [
        ({}, {"named", "elsewhere", "made", "labelled", "not-db", "both"}),
        ({"node": "worker-2"}, set()),
        ({"owner": "shop/web-0"}, {"named", "made", "labelled", "not-db"}),
        ({"owner": "blog/web-0"}, {"elsewhere"}),
        ({"owner": "shop/web-1"}, set()),
        ({"owner_namespace": "blog"}, {"elsewhere"}),
        ({"owner_controller": {"kind": "ReplicaSet", "name": "web"}}, {"made"}),
        (
            {"owner_controller": {"kind": "ReplicaSet", "name": "web", "namespace": "blog"}},
            set(),
        ),
        ({"owner_labels": {"app": "web"}}, {"labelled", "not-db"}),
        ({"owner_labels": {"app": "db"}}, {"both"}),
        ({"owner_labels": {"app": "web"}, "owner_namespace": "blog"}, set()),
        ({"owner": "shop/web-0", "owner_labels": {"app": "db"}}, set()),
    ],
)
def test_a_filter_means_those_that_may_be_claimed(filter_: Any, meant: set[str]) -> None:
    selection = ReservationSelector.of(pb.ReservationFilter(**filter_), PODS)
    assert {key for key, owner in OWNERS.items() if selection.covers(reservation(owner))} == meant


@pytest.mark.parametrize(
    ("filter_", "field"),
    [
        ({"owner": "web-0"}, "filter.owner"),
        ({"owner": "/"}, "filter.owner"),
        ({"owner_controller": {"kind": "ReplicaSet"}}, "filter.ownerController"),
        ({"label_selector": "team=shop,,"}, "filter.labelSelector"),
        ({"label_selector": ",".join(["a"] * 513)}, "filter.labelSelector"),
        (
            {
                "owner_controller": {"kind": "A", "name": "b", "namespace": "c"},
                "owner_namespace": "d",
            },
            "filter.ownerController.namespace",
        ),
    ],
)
def test_a_filter_that_means_nothing_is_refused(filter_: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ReservationSelector.of(pb.ReservationFilter(**filter_), PODS)
    assert caught.value.path == field


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ("", {"ours", "theirs", "bare"}),
        ("team=shop", {"ours"}),
        ("team in (shop,bank),!old", {"ours"}),
        ("team!=shop", {"theirs", "bare"}),
        ("team", {"ours", "theirs"}),
    ],
)
def test_a_selector_means_those_with_such_labels(selector: str, meant: set[str]) -> None:
    labels = {"ours": {"team": "shop"}, "theirs": {"team": "bank", "old": ""}, "bare": {}}
    selection = ReservationSelector.of(pb.ReservationFilter(label_selector=selector), {})
    shown = {key: pb.Reservation(id=f"shop/{key}", labels=each) for key, each in labels.items()}
    assert {key for key, each in shown.items() if selection.covers(each)} == meant
