"""The storm's expectations of reservations for groups of pods, and its findings."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest

from hack.bed.install import SPEC_STORE
from hack.chaos.book import Book, SeenPod
from hack.chaos.group_audit import GroupRemains
from hack.chaos.groups import Group, Groups, yaml_text
from hack.chaos.scale import NODE_CPU
from hack.chaos.standing import Standing

PLACE = "reserver-system/e2e/chaos.web"


def group(**more: Any) -> Group:
    known: dict[str, Any] = {
        "name": "web",
        "namespace": "chaos",
        "app": "web",
        "store": SPEC_STORE,
        "write": yaml_text,
        "owners": [{"controller": {"kind": "ReplicaSet", "name": "web"}}],
        "node": "n",
        "placement": {},
        "cpu": 500,
        "slots": 2,
        "expires": int(time.time()) + 600,
        "policy": "Prefer",
        "is_reusable": False,
    }
    return Group(**(known | more))


def pod(name: str, node: str = "n", *claims: str) -> SeenPod:
    return SeenPod(name=name, uid=name, node=node, cpu=500, claims=frozenset(claims))


class Scene:
    """A group on two nodes, in the storm."""

    def __init__(self, **more: Any) -> None:
        self.group = group(**more)
        self.groups = Groups()
        self.groups.add(self.group)
        self.book = Book(["m", "n"], 1.0, self.groups)
        self.phases = {"Claimed": 0, "Pending": 0}

    def claim(self, *names: str) -> None:
        for name in names:
            self.book.pod_seen(pod(name, "n", PLACE))

    def remains(self, *, stands: bool = True, recorded: Iterable[str] = ()) -> GroupRemains:
        claimants = frozenset(recorded)
        found = [Standing(self.group.ref, None, claimants=claimants)] if stands else []
        return GroupRemains.of(found, self.book, self.groups, self._metric)

    def _metric(self, name: str) -> float:
        (phase,) = (phase for phase in self.phases if f'"{phase}"' in name)
        return self.phases[phase]


def test_what_is_held_shrinks_with_each_claim_and_grows_back_if_it_is_reusable() -> None:
    for is_reusable, left in ((False, 500), (True, 1000)):
        scene = Scene(is_reusable=is_reusable)
        assert scene.groups.held()["n"] == 1000
        scene.claim("web-1")
        assert scene.groups.held()["n"] == 500
        scene.book.pod_gone("web-1")
        assert scene.groups.held()["n"] == left


def test_where_reserver_has_placed_it_it_is_held() -> None:
    scene = Scene(node="")
    assert scene.groups.held()[""] == 1000
    scene.groups.placed({PLACE: {"m": 1, "n": 1}, "unicore/reservation/n": {}})
    assert scene.groups.held() == {"m": 500, "n": 500, "": 0}


@pytest.mark.parametrize(
    ("more", "claims"), [({}, []), ({}, ["web-1"]), ({"is_reusable": True}, ["web-1"])]
)
def test_one_that_should_stand_is_no_complaint(more: dict[str, Any], claims: list[str]) -> None:
    scene = Scene(**more)
    scene.claim(*claims)
    recorded = () if scene.group.is_reusable else claims
    assert scene.remains(recorded=recorded) == GroupRemains(1, ())


def test_one_that_does_not_record_who_claimed_a_slot_and_is_gone_is_told() -> None:
    scene = Scene()
    scene.claim("web-1")
    scene.book.pod_gone("web-1")
    assert scene.remains(recorded=["other"]).violations == (f"claims of {PLACE} forgotten: web-1",)


@pytest.mark.parametrize("more", [{"is_over": True}, {"expires": 1}])
def test_one_that_stands_though_it_is_over_is_told(more: dict[str, Any]) -> None:
    scene = Scene(**more)
    assert scene.remains().violations == (f"reservation of a group leaked: {PLACE}",)
    assert scene.remains(stands=False).violations == ()


def test_one_that_is_claimed_has_to_go_unless_it_is_reusable() -> None:
    scene = Scene()
    scene.claim("web-1", "web-2")
    scene.book.pod_gone("web-1")
    assert scene.remains().violations == (f"reservation of a group leaked: {PLACE}",)
    scene = Scene(is_reusable=True)
    scene.claim("web-1", "web-2")
    assert scene.remains().violations == ("reserver has 0 Claimed, the stores say 1",)
    scene.phases["Claimed"] = 1
    assert scene.remains() == GroupRemains(0, ())


def test_one_without_a_place_is_pending() -> None:
    scene = Scene(node="")
    assert scene.remains().violations == ("reserver has 0 Pending, the stores say 1",)
    scene.phases["Pending"] = 1
    assert scene.remains() == GroupRemains(0, ())


def test_a_pod_that_waits_for_a_free_slot_is_told_if_the_slot_has_its_room() -> None:
    scene = Scene()
    scene.book.pod_seen(pod("web-1", ""))
    scene.book.pod_seen(pod("webbing-1", ""))
    assert scene.remains().violations == (f"web-1 waits, and {PLACE} has a slot for it on n",)
    big = SeenPod(name="big", uid="big", node="n", cpu=7500, claims=frozenset())
    scene.book.pod_seen(big)
    assert scene.remains().violations == ()


def test_whole_nodes_stay_held_and_owners_have_room_there_as_long_as_they_fit() -> None:
    scene = Scene(node="", slots=1, cpu=3000, is_whole=True, is_reusable=True)
    assert "nodes" in scene.group.text()
    assert scene.groups.held() == {"": NODE_CPU}
    scene.phases["Pending"] = 1
    assert scene.remains() == GroupRemains(0, ())
    scene.groups.placed({PLACE: {"n": 1}})
    scene.phases["Pending"] = 0
    scene.claim("web-1")
    assert scene.remains() == GroupRemains(1, ())
    assert scene.groups.held() == {"": NODE_CPU - 3000}
    scene.book.pod_seen(pod("web-2", ""))
    assert scene.remains().violations == (f"web-2 waits, and {PLACE} has a slot for it on n",)
    scene.book.pod_seen(SeenPod(name="b", uid="b", node="n", cpu=5000, claims=frozenset()))
    assert scene.remains().violations == ()


@pytest.mark.parametrize(
    ("landed", "left"),
    [(("m",), {"m": 0, "n": 1, "": 1}), (("x",), {"m": 1, "n": 1, "": 0})],
    ids=["on a place", "on a place that was never written"],
)
def test_a_claim_takes_the_slot_of_its_node_or_one_without_a_node(
    landed: tuple[str, ...], left: dict[str, int]
) -> None:
    claimed = group(node="", slots=3, placed={"m": 1, "n": 1})
    claimed.pods.update({f"uid-{node}": node for node in landed})
    assert claimed.left == left
