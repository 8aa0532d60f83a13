"""Reservations that name no node: placed, kept waiting, moved, in both stores."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml

from hack.reserver_process import ReserverProcess, wait_for
from reserver.k8s.objects.times import show_moment
from tests.e2e.cluster import GROUP, Corner
from tests.e2e.forms import OBJECT, SPEC, Form
from tests.e2e.test_status import status, wait_status


@pytest.fixture(params=[SPEC, OBJECT], ids=lambda form: form.name)
def form(request: pytest.FixtureRequest) -> Form:
    """Each way to write a reservation without a node."""
    return request.param  # type: ignore[no-any-return]


def write(corner: Corner, form: Form, name: str, **spec: Any) -> str:
    """Write a reservation that may be anywhere in a corner; return its key."""
    owner = {"pod": {"name": spec.pop("owner", name), "namespace": corner.name}}
    placement = {"nodeSelector": {GROUP: corner.name}} | spec.pop("placement", {})
    whole = {"owners": [owner], "placement": placement, "ttl": "1h"} | spec
    if form.is_object:
        return corner.write_object(name, whole)
    key = f"{corner.name}.{name}"
    corner.patch_store(form.store, {key: yaml.safe_dump(whole)})
    return key


def parts(corner: Corner, form: Form, key: str) -> dict[str, int]:
    """Return where a reservation is written to be: slots by node."""
    if form.is_object:
        placements = (corner.object(key) or {}).get("status", {}).get("placements", [])
    else:
        text = corner.keys(form.store).get(key, "{}")
        placements = yaml.safe_load(text).get("placements") or []
    return {part["node"]: part["slots"] for part in placements}


def wait_placed(corner: Corner, form: Form, key: str) -> str:
    """Return the node of a reservation that says it is in force."""
    wait_status(corner, form, key, phase="Active", backed=True)
    ((node, _),) = parts(corner, form, key).items()
    return node


def test_its_owner_lands_where_it_was_placed_and_nobody_else_does(
    corner: Corner, form: Form
) -> None:
    small, large = *corner.add_nodes(1, cpu="2"), *corner.add_nodes(1, cpu="8")
    key = write(corner, form, "owner", resources={"cpu": "4"})
    assert wait_placed(corner, form, key) == large
    corner.create_pod("stranger", {"cpu": "5"})
    corner.wait_refused("stranger", "held by reservation")
    corner.create_pod("owner", {"cpu": "4"})
    assert corner.wait_bound("owner") == large
    wait_for(lambda: key not in corner.texts(form), "the entry is over")
    assert small != large


def test_one_that_does_not_fit_says_why_and_is_placed_when_a_node_comes(
    corner: Corner, form: Form
) -> None:
    corner.add_nodes(2, cpu="4")
    key = write(corner, form, "owner", resources={"cpu": "6"})
    said = wait_status(corner, form, key, "2 Insufficient cpu", phase="Pending", backed=False)
    assert "nodes are available: " in said["message"]
    wait_for(lambda: _told(corner, form, "NotPlaced", key), "an event says so")
    (node,) = corner.add_nodes(1, cpu="8")
    wait_for(lambda: parts(corner, form, key), "it is placed")
    assert wait_placed(corner, form, key) == node
    wait_for(lambda: _told(corner, form, "Placed", key), "an event says so")


def _told(corner: Corner, form: Form, reason: str, key: str) -> list[str]:
    if form.is_object:
        return corner.events(reason)
    return [text for text in corner.events(reason, form.store[0]) if text.startswith(key)]


def test_one_that_waits_gets_what_a_pod_gives_back(corner: Corner, form: Form) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.create_pod("before", {"cpu": "3"})
    corner.wait_bound("before")
    key = write(corner, form, "owner", resources={"cpu": "2"})
    wait_status(corner, form, key, phase="Pending")
    corner.delete_pod("before")
    wait_for(lambda: parts(corner, form, key), "it is placed")
    assert wait_placed(corner, form, key) == node


def test_it_is_moved_when_its_node_goes(corner: Corner, form: Form) -> None:
    first, second = corner.add_nodes(2, cpu="4")
    key = write(corner, form, "owner", resources={"cpu": "3"})
    before = wait_placed(corner, form, key)
    other = second if before == first else first
    corner.api.delete_node(before)
    corner.nodes.remove(before)
    wait_for(lambda: parts(corner, form, key) == {other: 1}, "it is moved")
    wait_status(corner, form, key, phase="Active", backed=True)
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")
    corner.create_pod("owner", {"cpu": "3"})
    assert corner.wait_bound("owner") == other


def test_it_waits_when_its_node_goes_and_no_other_has_room(corner: Corner, form: Form) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = write(corner, form, "owner", resources={"cpu": "3"})
    wait_placed(corner, form, key)
    corner.api.delete_node(node)
    corner.nodes.remove(node)
    wait_status(corner, form, key, "available", phase="Pending", backed=False)


@pytest.mark.controlplane
def test_a_restart_keeps_the_place(corner: Corner, reserver: ReserverProcess, form: Form) -> None:
    nodes = corner.add_nodes(3, cpu="4")
    key = write(corner, form, "owner", resources={"cpu": "2"}, placement={"strategy": "spread"})
    node = wait_placed(corner, form, key)
    # Now another one is the emptiest, and would be chosen.
    corner.create_pod("neighbour", {"cpu": "2"}, nodeName=node)
    corner.wait_bound("neighbour")
    reserver.restart()
    for name in nodes:
        corner.create_pod(
            f"stranger-{name}", {"cpu": "1"}, nodeSelector={"kubernetes.io/hostname": name}
        )
    corner.wait_refused(f"stranger-{node}", "held by reservation")
    assert parts(corner, form, key) == {node: 1}


def test_slots_are_divided_over_nodes_and_each_owner_takes_one(corner: Corner, form: Form) -> None:
    nodes = corner.add_nodes(2, cpu="4")
    owners = [{"pod": {"name": f"owner-{n}", "namespace": corner.name}} for n in range(3)]
    key = write(corner, form, "owner", owners=owners, slots=3, resources={"cpu": "2"})
    wait_status(corner, form, key, phase="Active", backed=True)
    assert sorted(parts(corner, form, key).values()) == [1, 2]
    assert set(parts(corner, form, key)) == set(nodes)
    for number in range(3):
        corner.create_pod(f"owner-{number}", {"cpu": "2"})
    for number in range(3):
        corner.wait_bound(f"owner-{number}")
    wait_for(lambda: key not in corner.texts(form), "the entry is over")


def test_an_owner_that_has_to_land_there_waits_for_the_place(corner: Corner, form: Form) -> None:
    corner.add_nodes(1, cpu="4")
    key = write(corner, form, "owner", policy="Require", resources={"cpu": "6"})
    wait_status(corner, form, key, phase="Pending")
    corner.create_pod("owner", {"cpu": "1"})
    corner.wait_refused("owner", "waiting for a place of reservation")
    (node,) = corner.add_nodes(1, cpu="8")
    assert corner.wait_bound("owner") == node


def idle_since(corner: Corner, form: Form, key: str) -> str:
    """Return since when no pod uses a reservation, as its status says; empty while one does."""
    if form.is_object:
        return str((corner.object(key) or {}).get("status", {}).get("idleSince") or "")
    return str((status(corner, form, key) or {}).get("idleSince") or "")


def set_idle_since(corner: Corner, form: Form, key: str, since: float) -> None:
    """Let a status say that no pod has used a reservation since a moment, unix seconds."""
    told = {"idleSince": show_moment(since)}
    if form.is_object:
        corner.write_object_status(key, told)
    else:
        said = json.dumps((status(corner, form, key) or {}) | told, separators=(",", ":"))
        corner.patch_store((form.store[0], f"{form.store[1]}-status"), {key: said})


@pytest.mark.controlplane
def test_what_no_pod_uses_is_released_in_time_through_a_restart(corner: Corner, form: Form) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    owners = [{"selector": {"matchLabels": {"app": "web"}, "namespace": corner.name}}]
    spec: dict[str, Any] = {"owners": owners, "resources": {"cpu": "2"}, "slots": 2}
    key = write(corner, form, "web", **spec, releaseIfIdle="1m")
    assert wait_placed(corner, form, key) == node
    first = wait_for(lambda: idle_since(corner, form, key), "nobody uses it")
    corner.create_pod("web-1", {"cpu": "2"}, labels={"app": "web"})
    corner.wait_bound("web-1")
    wait_for(lambda: not idle_since(corner, form, key), "a pod uses it")
    corner.delete_pod("web-1")
    assert wait_for(lambda: idle_since(corner, form, key), "nobody uses it") >= first
    with ReserverProcess.all_down():
        set_idle_since(corner, form, key, time.time() - 5)
    corner.create_pod("stranger", {"cpu": "4"})
    corner.wait_refused("stranger", "held by reservation")  # Its time has not come.
    with ReserverProcess.all_down():
        set_idle_since(corner, form, key, time.time() - 58)
    wait_for(lambda: key not in corner.texts(form), "it is released")
    assert corner.wait_bound("stranger") == node
    space = None if form.is_object else form.store[0]
    wait_for(
        lambda: any("released when idle" in each for each in corner.events("Idle", space)),
        "an event says why",
    )


@pytest.mark.controlplane
def test_a_claimed_slot_is_replaced_and_a_restart_replaces_none_again(
    corner: Corner, reserver: ReserverProcess, form: Form
) -> None:
    first, second = sorted(corner.add_nodes(2, cpu="4"))
    owners = [{"selector": {"matchLabels": {"app": "web"}, "namespace": corner.name}}]
    key = write(corner, form, "web", owners=owners, resources={"cpu": "3"}, refill=True)
    taken = wait_placed(corner, form, key)
    other = second if taken == first else first
    corner.create_pod("web-1", {"cpu": "3"}, labels={"app": "web"})
    assert corner.wait_bound("web-1") == taken
    wait_for(lambda: parts(corner, form, key) == {taken: 1, other: 1}, "it is replaced")
    reserver.restart()
    corner.create_pod("stranger", {"cpu": "2"}, nodeSelector={"kubernetes.io/hostname": other})
    corner.wait_refused("stranger", "held by reservation")
    assert parts(corner, form, key) == {taken: 1, other: 1}
    corner.create_pod("web-2", {"cpu": "3"}, labels={"app": "web"})
    assert corner.wait_bound("web-2") == other
    wait_status(corner, form, key, "Insufficient cpu", phase="Pending")  # No room for a third.
    corner.delete_pod("web-1")
    wait_status(corner, form, key, phase="Active", backed=True)
    corner.create_pod("web-3", {"cpu": "3"}, labels={"app": "web"})
    assert corner.wait_bound("web-3") == taken
