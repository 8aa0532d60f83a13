"""The acknowledgement: what NAME-status says of each entry, and when."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import SHORT, SPEC, Form


def companion(corner: Corner, store: tuple[str, str]) -> dict[str, str] | None:
    """Return the data of a store's companion; None without a companion."""
    try:
        return corner.keys((store[0], f"{store[1]}-status"))
    except ApiException as exc:
        if exc.status != HTTPStatus.NOT_FOUND:
            raise
        return None


def status(corner: Corner, form: Form, key: str, pod: str = "owner") -> dict[str, Any] | None:
    """Return the status of the entry for a pod, None as long as there is none."""
    if form.is_object:
        return object_status(corner, key)
    text = (companion(corner, form.store) or {}).get(key)
    if text is None:
        return None
    said: dict[str, Any] = json.loads(text)
    return said.get(f"{corner.name}/{pod}") if form.is_list else said


def object_status(corner: Corner, key: str) -> dict[str, Any] | None:
    """Return the status of a Reservation in the words of a companion."""
    found = (corner.object(key) or {}).get("status")
    if found is None:
        return None
    backed = next(c for c in found["conditions"] if c["type"] == "Backed")
    is_backed = backed["status"] == "True"
    message = "" if is_backed else backed["message"]
    return {"phase": found["phase"], "backed": is_backed, "message": message}


def wait_status(
    corner: Corner, form: Form, key: str, says: str = "", **wanted: object
) -> dict[str, Any]:
    """Wait until the status has these fields and its message has these words; return the status."""

    def found() -> dict[str, Any] | None:
        said = status(corner, form, key)
        is_it = said is not None and wanted.items() <= said.items() and says in said["message"]
        return said if is_it else None

    try:
        said: dict[str, Any] = wait_for(found, f"{key} is {wanted} {says}")
    except TimeoutError as exc:
        raise AssertionError(f"{key}: {status(corner, form, key)}") from exc
    return said


def not_backed(corner: Corner, form: Form, key: str) -> list[str]:
    if form.is_object:
        selector = f"reason=NotBacked,involvedObject.name={key}"
        events = corner.api.list_namespaced_event(corner.name, field_selector=selector)
        return [event.message for event in events.items]
    return [text for text in corner.events("NotBacked", form.store[0]) if text.startswith(key)]


def test_a_hold_that_is_acknowledged_is_in_force(corner: Corner, form: Form) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(form, node, "owner", cpu="2000m")
    said = wait_status(corner, form, key, phase="Active", backed=True)
    assert said["message"] == ""
    assert form.is_object or len(said["digest"]) == 16
    corner.create_pod("stranger", {"cpu": "4"})
    corner.wait_refused("stranger", "held by reservation")


def test_an_entry_that_is_written_anew_is_acknowledged_anew(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(SPEC, node, "owner", cpu="1")
    before = wait_status(corner, SPEC, key, phase="Active")
    corner.reserve(SPEC, node, "owner", cpu="3")

    def is_another() -> bool:
        now = status(corner, SPEC, key) or before
        return bool(now["digest"] != before["digest"])

    wait_for(is_another, "the digest is another")
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")


def test_a_broken_entry_says_what_is_wrong_with_it(corner: Corner) -> None:
    node = f"{corner.name}-w0-0"
    good = {"pod": "owner", "namespace": corner.name, "cpu": 1, "mem": 0}
    items = [good | {"expire": int(time.time()) + 600}, good | {"cpu": -1}]
    corner.patch_store(SHORT.store, {node: json.dumps(items)})
    spec = f"{corner.name}.typo"
    corner.patch_store(SPEC.store, {spec: "node: n\nownres: []"})
    try:
        wait_status(corner, SPEC, spec, "ownres", phase="Invalid", backed=False)
        wait_status(corner, SHORT, node, phase="Failed", backed=False)
        second = json.loads((companion(corner, SHORT.store) or {})[node])["[1]"]
        assert (second["phase"], second["backed"]) == ("Invalid", False)
        assert second["message"].startswith("[1].cpu: -1 is negative; write")
    finally:
        corner.patch_store(SPEC.store, {spec: None})


def test_a_hold_on_a_node_that_does_not_exist_is_backed_once_it_does(corner: Corner) -> None:
    node = f"{corner.name}-late-1"
    key = corner.reserve(SPEC, node, "owner", cpu="2")
    wait_status(corner, SPEC, key, f"node '{node}' does not exist", phase="Failed", backed=False)
    assert corner.add_nodes(1, cpu="4", prefix=f"{corner.name}-late") == [node]
    wait_status(corner, SPEC, key, phase="Active", backed=True)


@pytest.mark.parametrize("taker", ["critical", "bound-by-hand"])
def test_a_hold_whose_room_is_taken_says_so_with_an_event_until_it_is_free_again(
    corner: Corner, form: Form, taker: str
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(form, node, "owner", cpu="3000m")
    wait_status(corner, form, key, phase="Active", backed=True)
    if taker == "critical":
        assert corner.run_agent("2") == node
    else:
        corner.create_pod("taker", {"cpu": "2"}, nodeName=node)
    said = wait_status(corner, form, key, f"{node} has too little cpu", backed=False)
    assert said["phase"] == "Active"
    wait_for(lambda: not_backed(corner, form, key), "the event is there")
    corner.stop_agent() if taker == "critical" else corner.delete_pod("taker")
    wait_status(corner, form, key, phase="Active", backed=True)
    assert len(not_backed(corner, form, key)) == 1


def test_a_hold_on_room_that_is_taken_is_kept_and_takes_effect_as_room_appears(
    corner: Corner,
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.create_pod("before", {"cpu": "3"})
    corner.wait_bound("before")
    key = corner.reserve(SPEC, node, "owner", cpu="4")
    wait_status(corner, SPEC, key, phase="Active", backed=False)
    corner.delete_pod("before")
    wait_status(corner, SPEC, key, phase="Active", backed=True)
    corner.create_pod("stranger", {"cpu": "1"})
    corner.wait_refused("stranger", "held by reservation")


def test_a_hold_on_a_cordoned_node_says_so_until_it_is_uncordoned(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(SPEC, node, "owner", cpu="2")
    wait_status(corner, SPEC, key, phase="Active", backed=True, message="")
    corner.api.patch_node(node, {"spec": {"unschedulable": True}})

    def said() -> str:
        return str((status(corner, SPEC, key) or {}).get("message"))

    wait_for(lambda: f"{node} is cordoned" in said(), "the reservation says so")
    corner.api.patch_node(node, {"spec": {"unschedulable": False}})
    wait_status(corner, SPEC, key, phase="Active", backed=True, message="")


def test_a_status_goes_with_its_entry(corner: Corner, configmap_form: Form) -> None:
    form = configmap_form
    (node,) = corner.add_nodes(1, cpu="4")
    key = corner.reserve(form, node, "owner", cpu="2000m")
    wait_status(corner, form, key, phase="Active")
    corner.patch_store(form.store, {key: None})
    gone = "the status is gone"
    wait_for(lambda: key not in (companion(corner, form.store) or {}), gone)


@pytest.fixture
def own_store(corner: Corner) -> Iterator[Form]:
    """A store ConfigMap of this test's own."""
    namespace, name = SPEC.store[0], corner.name
    metadata = {"name": name, "labels": {"reserver.io/store": "true"}}
    corner.api.create_namespaced_config_map(namespace, {"metadata": metadata})
    yield Form("own", (namespace, name), SPEC.write)
    with suppress(ApiException):
        corner.api.delete_namespaced_config_map(name, namespace)
    gone = "Reserver has read that the store is gone"  # Thousands of entries take a while.
    wait_for(lambda: not companion(corner, (namespace, name)), gone)


def acknowledge(corner: Corner, form: Form) -> None:
    """Write a reservation, and return once it is acknowledged."""
    (node,) = corner.add_nodes(1, cpu="4")
    key = f"{node}.owner"
    text = form.write(node, "owner", corner.name, time.time() + 600, cpu="2")
    corner.patch_store(form.store, {key: text})
    wait_for(lambda: key in (companion(corner, form.store) or {}), "it is acknowledged")


def test_the_companion_goes_with_its_store(corner: Corner, own_store: Form) -> None:
    acknowledge(corner, own_store)
    namespace, name = own_store.store
    corner.api.delete_namespaced_config_map(name, namespace)
    wait_for(lambda: companion(corner, own_store.store) is None, "the companion is gone")


def test_a_store_that_is_a_store_no_more_acknowledges_nothing(
    corner: Corner, own_store: Form
) -> None:
    acknowledge(corner, own_store)
    namespace, name = own_store.store
    unlabel = {"metadata": {"labels": {"reserver.io/store": None}}}
    corner.api.patch_namespaced_config_map(name, namespace, unlabel)
    wait_for(lambda: companion(corner, own_store.store) == {}, "nothing is said any more")


def test_a_companion_is_no_store_even_if_somebody_labels_it_as_one(
    corner: Corner, own_store: Form
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    text = own_store.write(node, "owner", corner.name, time.time() + 600, cpu="2")
    corner.patch_store(own_store.store, {"first": text})
    wait_for(lambda: companion(corner, own_store.store), "it is acknowledged")
    namespace, name = own_store.store
    label = {"metadata": {"labels": {"reserver.io/store": "true"}}}
    corner.api.patch_namespaced_config_map(f"{name}-status", namespace, label)
    corner.patch_store(own_store.store, {"second": text})
    wait_for(lambda: "second" in (companion(corner, own_store.store) or {}), "the next is")
    assert companion(corner, (namespace, f"{name}-status")) is None


@pytest.mark.release
@pytest.mark.controlplane
def test_ten_thousand_entries_are_acknowledged_in_a_handful_of_writes(
    corner: Corner, own_store: Form, reserver: ReserverProcess
) -> None:
    (node,) = corner.add_nodes(1, cpu="64", pods=20_000)
    spec = {"node": node, "resources": {"cpu": "1m"}, "ttl": 0}
    data = {
        f"r{number}": json.dumps(
            spec | {"owners": [{"pod": {"name": f"p{number}"}}]}, separators=(",", ":")
        )
        for number in range(10_000)
    }
    before = reserver.metric("reserver_status_writes_total")
    corner.patch_store(own_store.store, data)
    wait_for(lambda: len(companion(corner, own_store.store) or {}) == len(data), "all are there")
    said = (companion(corner, own_store.store) or {}).values()
    assert {(s["phase"], s["backed"]) for s in map(json.loads, said)} == {("Active", True)}
    assert reserver.metric("reserver_status_writes_total") - before <= 5
