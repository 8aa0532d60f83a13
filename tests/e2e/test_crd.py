"""Reservation objects: their columns, events, claims and ends; a CRD that comes back."""

from __future__ import annotations

import re
import subprocess
import time
from functools import partial
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from hack.controlplane.build import bin_dir
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECT
from tests.e2e.test_crd_validation import GOOD

CRD_NAME = "reservations.reserver.io"


def test_a_bad_one_that_the_api_server_takes_is_told_and_costs_no_other(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    owners = [{"pod": {"name": "a", "namespace": "kube-system"}}]
    corner.write_object("theft", GOOD | {"node": node, "owners": owners})
    corner.write_object("nonsense", GOOD | {"node": node, "resources": {"Cpu": "1"}})
    corner.reserve(OBJECT, node, "owner", cpu="3")
    corner.wait_held(node)

    def conditions(name: str) -> dict[str, Any]:
        status = (corner.object(name) or {}).get("status", {})
        return {c["type"]: c for c in status.get("conditions", ())}

    for name, words in (
        ("theft", "spec.owners[0]: namespace 'kube-system'"),
        ("nonsense", "spec.resources.Cpu"),
    ):
        found = wait_for(partial(conditions, name), f"{name} has conditions")
        assert found["Valid"]["status"] == "False"
        assert words in found["Valid"]["message"]
        wait_for(partial(_event, corner, words), f"an event says {words}")


def _event(corner: Corner, words: str) -> bool:
    return any(words in message for message in corner.events("InvalidReservation"))


def test_a_claimed_one_is_deleted_and_an_event_stays(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    name = corner.reserve(OBJECT, node, "owner", cpu="2")
    corner.wait_held(node)
    corner.create_pod("owner", {"cpu": "2"})
    assert corner.wait_bound("owner") == node
    wait_for(lambda: corner.object(name) is None, "the object is gone")
    wait_for(lambda: corner.events("Claimed"), "an event says why")


def test_an_expired_one_is_deleted(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    name = corner.reserve(OBJECT, node, "owner", cpu="2", expires_in=3)
    wait_for(lambda: corner.object(name) is None, "the object is gone")
    wait_for(lambda: corner.events("Expired"), "an event says why")


def test_claims_are_told_slot_by_slot(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="8")
    owners = [{"pod": {"name": "first"}}, {"pod": {"name": "second"}}]
    spec = {"owners": owners, "resources": {"cpu": "2"}, "slots": 2, "node": node, "ttl": "1h"}
    corner.write_object("pair", spec)
    corner.wait_held(node)
    corner.create_pod("first", {"cpu": "2"})
    corner.wait_bound("first")

    def claims() -> list[dict[str, str]]:
        found = (corner.object("pair") or {}).get("status", {})
        said: list[dict[str, str]] = found.get("claims", [])
        return said

    (claim,) = wait_for(claims, "the claim is told")
    assert (claim["pod"], claim["node"]) == (f"{corner.name}/first", node)
    assert claim["uid"] == corner.pod("first").metadata.uid
    status = (corner.object("pair") or {})["status"]
    assert (status["phase"], status["claimed"]) == ("Active", 1)
    assert status["placements"] == [{"node": node, "slots": 2}]


def test_another_spec_is_another_reservation_and_is_acknowledged_anew(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    spec = GOOD | {"node": node}
    corner.write_object("web", spec)

    def generation() -> int:
        found = (corner.object("web") or {}).get("status", {})
        return int(found.get("observedGeneration", 0))

    wait_for(lambda: generation() == 1, "it is acknowledged")
    corner.write_object("web", spec | {"resources": {"cpu": "4"}})
    wait_for(lambda: generation() == 2, "it is acknowledged anew")
    corner.create_pod("stranger", {"cpu": "1"})
    corner.wait_refused("stranger", "held by reservation")


def test_a_ttl_counts_from_the_creation(corner: Corner) -> None:
    corner.write_object("hour", GOOD | {"ttl": "1h"})

    def expires() -> str:
        return str((corner.object("hour") or {}).get("status", {}).get("expiresAt") or "")

    text = wait_for(expires, "the expiry is told")
    created = (corner.object("hour") or {})["metadata"]["creationTimestamp"]
    form = "%Y-%m-%dT%H:%M:%SZ"
    seconds = time.mktime(time.strptime(text, form)) - time.mktime(time.strptime(created, form))
    assert seconds == 3600


def _kubectl(corner: Corner, *arguments: str) -> str:
    kubectl = bin_dir() / "kubectl"
    command = [str(kubectl), "--kubeconfig", str(corner.kubeconfig), "-n", corner.name, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.controlplane
def test_kubectl_shows_what_people_ask_for(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))
    owners = [*GOOD["owners"], {"controller": {"kind": "Deployment", "name": "web"}}]
    said = {"owners": owners, "slots": 2, "expiresAt": expires, "description": "for the move"}
    spec = GOOD | said | {"node": node}
    corner.write_object("web", spec)
    _kubectl(corner, "wait", "rsv/web", "--for=condition=Backed", "--timeout=60s")
    header, row = (re.split("   +", line) for line in _kubectl(corner, "get", "rsv").splitlines())
    assert header == ["NAME", "PHASE", "REASON", "NODES", "CLAIMED", "EXPIRES", "AGE"]
    assert row[:-1] == ["web", "Active", "RoomHeld", node, "0/2", expires]
    header, row = (
        re.split("   +", line) for line in _kubectl(corner, "get", "rsv", "-o", "wide").splitlines()
    )
    columns = "NAME PHASE REASON NODES RESOURCES OWNERS CLAIMED EXPIRES AGE"
    assert header == [*columns.split(), "BACKED", "AUTHOR", "DESCRIPTION"]
    assert row[4:6] == ["2 × cpu 2", "pod/owner, deployment/web"]
    assert (row[-2], row[-1]) == ("True", "for the move")  # Nobody knows the author.


@pytest.mark.controlplane
def test_kubectl_explains_every_field(corner: Corner) -> None:
    corner.write_object("web", GOOD)
    for part in ("", ".spec", ".spec.owners.pod", ".status", ".status.claims"):
        told = wait_for(partial(_explain, corner, f"reservations{part}"), f"explain {part}")
        assert "<no description>" not in told, told
    assert "a duration from the object's creation" in _explain(corner, "reservations.spec.ttl")


def _explain(corner: Corner, path: str) -> str:
    """Return what kubectl explains; nothing while the API server does not publish it yet."""
    try:
        return _kubectl(corner, "explain", path)
    except subprocess.CalledProcessError:
        return ""


@pytest.mark.controlplane
def test_a_crd_that_is_removed_and_comes_back_needs_no_restart(
    corner: Corner, reserver: ReserverProcess
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    crds: Any = client.ApiextensionsV1Api(corner.api.api_client)
    crd = crds.read_custom_resource_definition(CRD_NAME)
    crds.delete_custom_resource_definition(CRD_NAME)
    try:
        wait_for(lambda: not _has(crds), "the CRD is gone")
        corner.create_pod("early", {"cpu": "1"})
    finally:
        crd.metadata = client.V1ObjectMeta(name=CRD_NAME)
        wait_for(lambda: _create(crds, crd), "the CRD is back")
    assert corner.wait_bound("early") == node
    corner.delete_pod("early")
    wait_for(lambda: _reserve(corner, node), "Reservations are taken again")
    corner.wait_held(node)
    assert reserver.metric('reserver_lists_total{collection="reservations"}') > 0


def _has(crds: Any) -> bool:
    found = crds.list_custom_resource_definition().items
    return CRD_NAME in [crd.metadata.name for crd in found]


def _create(crds: Any, crd: Any) -> bool:
    try:
        crds.create_custom_resource_definition(crd)
    except ApiException:
        return False
    return True


def _reserve(corner: Corner, node: str) -> str | None:
    try:
        return corner.reserve(OBJECT, node, "owner", cpu="3")
    except ApiException:
        return None
