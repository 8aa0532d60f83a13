"""Reservations that are moved from one store to the other while they hold."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from hack.reserver_process import wait_for
from tests.e2e.cluster import GROUP, Corner
from tests.e2e.forms import STORE

HOME = STORE[0]


@pytest.fixture
def store(corner: Corner) -> Iterator[tuple[str, str]]:
    """A store ConfigMap of this test's own."""
    metadata = {"name": corner.name, "labels": {"reserver.io/store": "true"}}
    corner.api.create_namespaced_config_map(HOME, {"metadata": metadata})
    yield HOME, corner.name
    with suppress(ApiException):
        corner.api.delete_namespaced_config_map(corner.name, HOME)


def migrate(corner: Corner, source: str, destination: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reserver", "migrate", "--from", source, "--to", destination]
    command += ["--kubeconfig", str(corner.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def spec(corner: Corner, node: str, *owners: str, cpu: str = "1") -> str:
    named = [{"pod": {"name": owner, "namespace": corner.name}} for owner in owners]
    said = {"owners": named, "resources": {"cpu": cpu}, "node": node, "slots": len(owners)}
    return json.dumps(said | {"expiresAt": "2040-01-01T00:00:00Z"})


def _status(corner: Corner, name: str) -> dict[str, Any]:
    status: dict[str, Any] = (corner.object(name, HOME) or {}).get("status", {})
    return status


def _is_claimed(corner: Corner, name: str) -> bool:
    return bool(_status(corner, name).get("claimed") == 1)


def _warnings(corner: Corner) -> list[str]:
    return [text for text in corner.events("NotBacked", HOME) if corner.name in text]


@pytest.mark.release
def test_a_full_node_keeps_its_holds_backed_and_no_claim_is_lost_there_and_back(
    corner: Corner, store: tuple[str, str]
) -> None:
    """Each of ten has two slots; of one the owner lands meanwhile, of the other afterwards."""
    (node,) = corner.add_nodes(1, cpu="20")
    names = [f"{corner.name}-r{number}" for number in range(10)]
    corner.patch_store(store, {n: spec(corner, node, f"{n}-a", f"{n}-b") for n in names})
    corner.wait_held(node, "1")  # All ten.
    corner.create_pod("stranger", {"cpu": "1"})
    corner.wait_refused("stranger", "held by reservation")

    here, there = f"configmap:{'/'.join(store)}", f"crd:{HOME}"
    with ThreadPoolExecutor(1) as pool:
        migration = pool.submit(migrate, corner, here, there)
        for name in names:
            corner.create_pod(f"{name}-a", {"cpu": "1"})
        moved = migration.result()
    assert moved.returncode == 0, moved.stderr
    assert corner.keys(store) == {}
    assert {corner.wait_bound(f"{name}-a") for name in names} == {node}
    for name in names:
        wait_for(partial(_is_claimed, corner, name), f"{name} is claimed")
        backed = {c["type"]: c["status"] for c in _status(corner, name)["conditions"]}
        assert backed == {"Valid": "True", "Backed": "True"}

    moved = migrate(corner, there, here)
    assert moved.returncode == 0, moved.stderr
    assert corner.keys(store).keys() == set(names)
    assert [name for name in names if corner.object(name, HOME)] == []
    for name in names:
        corner.create_pod(f"{name}-b", {"cpu": "1"})
    assert {corner.wait_bound(f"{name}-b") for name in names} == {node}
    wait_for(lambda: corner.keys(store) == {}, "all are claimed")
    assert corner.node_of("stranger") is None
    assert _warnings(corner) == []


def test_what_was_placed_stays_where_it_is_there_and_back(
    corner: Corner, store: tuple[str, str]
) -> None:
    first, second = corner.add_nodes(2, cpu="4")
    owners = [{"pod": {"name": name, "namespace": corner.name}} for name in ("a", "b")]
    placement = {"nodeSelector": {GROUP: corner.name}, "strategy": "spread"}
    said = {"owners": owners, "resources": {"cpu": "3"}, "slots": 2, "placement": placement}
    name = f"{corner.name}-r"
    corner.patch_store(store, {name: json.dumps(said | {"expiresAt": "2040-01-01T00:00:00Z"})})

    def placed() -> list[dict[str, Any]] | None:
        said: dict[str, Any] = json.loads(corner.keys(store).get(name, "{}"))
        return said.get("placements")

    parts = wait_for(placed, "it is placed")
    assert {part["node"]: part["slots"] for part in parts} == {first: 1, second: 1}
    here, there = f"configmap:{'/'.join(store)}", f"crd:{HOME}"
    assert migrate(corner, here, there).returncode == 0
    assert _status(corner, name)["placements"] == parts
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")
    assert migrate(corner, there, here).returncode == 0
    assert placed() == parts
    corner.create_pod("a", {"cpu": "3"})
    corner.create_pod("b", {"cpu": "3"})
    assert {corner.wait_bound("a"), corner.wait_bound("b")} == {first, second}


def test_items_of_lists_are_moved_one_by_one_and_broken_ones_stay(
    corner: Corner, store: tuple[str, str]
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    item = {"namespace": corner.name, "cpu": 2000, "mem": 0, "expire": 2_200_000_000}
    items = [item | {"pod": "first"}, item | {"pod": "broken", "cpu": -1}, item | {"pod": "second"}]
    corner.patch_store(store, {node: json.dumps(items)})
    corner.wait_held(node)
    moved = migrate(corner, f"configmap:{'/'.join(store)}", f"crd:{HOME}")
    assert moved.returncode == 1
    assert "[1].cpu: -1 is negative" in moved.stderr
    assert [left["pod"] for left in json.loads(corner.keys(store)[node])] == ["broken"]
    corner.create_pod("first", {"cpu": "2"})
    corner.create_pod("second", {"cpu": "2"})
    assert corner.wait_bound("first") == corner.wait_bound("second") == node


def test_what_is_no_store_is_refused(corner: Corner) -> None:
    for source, destination in (("crd:a", "crd:b"), ("x", "crd:b"), ("configmap:a", "crd:b")):
        refused = migrate(corner, source, destination)
        assert refused.returncode == 2
        assert "--from: " in refused.stderr or "--to: " in refused.stderr
    gone = migrate(corner, "configmap:reserver-system/no-such", "crd:reserver-system")
    assert gone.returncode == 2
    assert "no-such" in gone.stderr
