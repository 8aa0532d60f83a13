"""Every method of the contract on the real control plane, over both stores, called by grpcurl."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane.kubeconfig import kubectl
from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.cluster import Corner
from tests.e2e.curl import Curl, Refused
from tests.e2e.plugin import Plugin

pytestmark = pytest.mark.controlplane


@pytest.fixture
def corner(rpc_corner: Corner) -> Corner:
    return rpc_corner


@pytest.fixture
def curl(served: ReserverProcess) -> Curl:
    return Curl(served.grpc_address)


@pytest.fixture
def nodes(corner: Corner, curl: Curl) -> list[str]:
    """Two nodes of 4 CPUs that reserver has seen."""
    nodes = corner.add_nodes(2, cpu="4")

    def seen() -> bool:
        listed = curl.call("CapacityService/ListNodes", node_names=nodes)
        return len(listed.get("nodes", ())) == len(nodes)

    wait_for(seen, "reserver sees the nodes")
    return nodes


def wanted(corner: Corner, node: str, cpu: str = "3", owner: str = "owner") -> dict[str, Any]:
    pod = {"namespace": corner.name, "name": owner}
    return {"owners": [{"pod": pod}], "node": node, "resources": {"cpu": cpu}, "ttl": "600s"}


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.words


def audited(served: ReserverProcess, **fields: str) -> bool:
    *lines, _ = served.log.read_text().split("\n")  # The last is being written.
    told = [json.loads(line) for line in lines if '"audit"' in line]
    return any(fields.items() <= line.items() for line in told)


def test_the_services_are_listed_described_and_healthy(curl: Curl) -> None:
    listed = curl.run("list").splitlines()
    for service in ("ReservationService", "CapacityService", "SchedulerService"):
        assert f"reserver.v1.{service}" in listed
        health = curl.run("grpc.health.v1.Health/Check", data={"service": f"reserver.v1.{service}"})
        assert '"SERVING"' in health
    assert "rpc CreateSet" in curl.run("describe", "reserver.v1.ReservationService")


def test_a_reservation_from_create_to_release(
    corner: Corner, curl: Curl, nodes: list[str], served: ReserverProcess
) -> None:
    name = f"{corner.name}-move"
    request = {"name": name, "spec": wanted(corner, nodes[0]), "request_id": name}
    made = curl.call("ReservationService/Create", **request)["reservation"]
    placements = [{"node": nodes[0], "slots": 1}]
    active = {"phase": "PHASE_ACTIVE", "backed": True, "reason": "RoomHeld"}
    assert made["status"] == {**active, "placements": placements}
    assert curl.call("ReservationService/Create", **request)["reservation"]["id"] == made["id"]
    assert curl.call("ReservationService/Get", name=name)["reservation"] == made
    by_id = curl.call("ReservationService/Get", name=made["id"])["reservation"]
    assert by_id["etag"] == made["etag"]
    taken = refused(lambda: curl.call("ReservationService/Create", **request | {"request_id": ""}))
    assert "Code: AlreadyExists" in taken

    smaller = wanted(corner, nodes[0], cpu="2")
    now = curl.call("ReservationService/Update", name=name, spec=smaller, etag=made["etag"])
    assert now["reservation"]["spec"]["resources"] == {"cpu": "2"}
    stale = {"name": name, "spec": smaller, "etag": made["etag"]}
    assert "Code: Aborted" in refused(lambda: curl.call("ReservationService/Update", **stale))
    large = {"name": name, "spec": wanted(corner, nodes[0], cpu="5")}
    assert "CAN_NEVER_FIT" in refused(lambda: curl.call("ReservationService/Update", **large))

    moment = "2040-01-01T00:00:00Z"
    longer = curl.call("ReservationService/Extend", name=name, expires_at=moment)
    assert longer["reservation"]["spec"]["expires_at"] == moment
    free = curl.call("CapacityService/ListNodes", node_names=[nodes[0]], slot={"cpu": "1"})
    assert free["nodes"][0]["resources"]["cpu"]["held"] == "2"
    assert free["nodes"][0]["fits"] == "2"

    assert curl.call("ReservationService/Release", name=name) == {}
    assert "Code: NotFound" in refused(lambda: curl.call("ReservationService/Get", name=name))
    free = curl.call("CapacityService/ListNodes", node_names=[nodes[0]])
    assert free["nodes"][0]["resources"]["cpu"]["held"] == "0"
    for method in ("Create", "Update", "Extend", "Release"):
        assert audited(served, call=f"ReservationService/{method}", what=name, code="OK")
    assert audited(served, call="ReservationService/Update", what=name, code="ABORTED")


def test_what_others_write_is_listed_changed_and_released(
    corner: Corner, curl: Curl, nodes: list[str]
) -> None:
    spec = {"owners": [{"pod": {"name": "web-0"}}], "node": nodes[0], "resources": {"cpu": "1"}}
    corner.write_object("mine", spec)
    mine = f"{corner.name}/mine"
    found = wait_for(lambda: _found(curl, mine), "the object is seen")
    assert found["status"]["backed"]
    spec["resources"] = {"cpu": "2"}
    assert curl.call("ReservationService/Update", name=mine, spec=spec)
    longer = curl.call("ReservationService/Extend", name=mine, ttl="7200s")["reservation"]
    assert longer["spec"]["expires_at"] < found["spec"]["expires_at"]  # Two hours, not a day.
    written = corner.object("mine")
    assert written is not None
    assert written["spec"]["resources"] == {"cpu": "2"}
    foreign = spec | {"owners": [{"pod": {"name": "web-0", "namespace": "elsewhere"}}]}
    words = refused(lambda: curl.call("ReservationService/Update", name=mine, spec=foreign))
    assert "Code: InvalidArgument" in words
    curl.call("ReservationService/Release", name=mine)
    assert corner.object("mine") is None


def _found(curl: Curl, name: str) -> Any:
    try:
        return curl.call("ReservationService/Get", name=name)["reservation"]
    except Refused:
        return None


def test_lists_are_filtered_and_paged_and_a_watch_resumes(
    corner: Corner, curl: Curl, nodes: list[str]
) -> None:
    names = [f"{corner.name}-{number}" for number in range(3)]
    entries = [
        {"name": name, "spec": wanted(corner, node, cpu="1", owner=name)}
        for name, node in zip(names, (nodes[0], nodes[0], nodes[1]), strict=True)
    ]
    made = curl.call("ReservationService/CreateSet", reservations=entries)["reservations"]
    assert [each["name"] for each in made] == names

    def listed(**filter_: Any) -> list[str]:
        answer = curl.call(
            "ReservationService/List", filter={"owner_namespace": corner.name, **filter_}
        )
        return [each["name"] for each in answer.get("reservations", ())]

    assert listed() == names
    assert listed(node=nodes[1]) == names[2:]
    assert listed(owner=f"{corner.name}/{names[1]}") == [names[1]]
    assert listed(phases=["PHASE_PENDING"]) == []
    mine = {"owner_namespace": corner.name}
    page = curl.call("ReservationService/List", filter=mine, page_size=2)
    rest = curl.call("ReservationService/List", filter=mine, page_token=page["next_page_token"])
    assert [each["name"] for each in rest["reservations"]] == names[2:]

    told = curl.stream("ReservationService/Watch", lambda told: len(told) == 4, filter=mine)
    assert [each["kind"] for each in told[:4]] == ["KIND_ADDED"] * 3 + ["KIND_BOOKMARK"]
    token = told[-1]["resume_token"]
    for name in names:
        curl.call("ReservationService/Release", name=name)

    def gone(told: list[Any]) -> list[str]:
        deleted = (each["reservation"] for each in told if each["kind"] == "KIND_DELETED")
        return sorted(each["name"] for each in deleted)

    resumed = {"filter": mine, "resume_token": token}
    told = curl.stream("ReservationService/Watch", lambda told: gone(told) == names, **resumed)
    assert gone(told) == names


def test_what_is_wrong_is_named(corner: Corner, curl: Curl, nodes: list[str]) -> None:
    bad = wanted(corner, nodes[0], cpu="lots")
    words = refused(lambda: curl.call("ReservationService/Create", name=corner.name, spec=bad))
    assert "Code: InvalidArgument" in words
    assert '"field": "spec.resources.cpu"' in words
    assert "Code: NotFound" in refused(lambda: curl.call("ReservationService/Release", name="no"))


def test_what_if_says_what_a_set_would_lack(corner: Corner, curl: Curl, nodes: list[str]) -> None:
    fits = [wanted(corner, node) for node in nodes]
    verdict = curl.call("CapacityService/WhatIf", reservations=fits)
    assert verdict["fits"]
    assert [each["parts"][0]["node"] for each in verdict["placements"]] == nodes
    lacks = curl.call("CapacityService/WhatIf", reservations=[*fits, fits[0]])
    assert [shortage["index"] for shortage in lacks["shortages"]] == [2]
    assert not curl.call("CapacityService/WhatIf", reservations=[wanted(corner, "no")]).get("fits")


def test_explain_says_why_a_pod_waits(corner: Corner, curl: Curl, nodes: list[str]) -> None:
    for node in nodes:
        spec = wanted(corner, node)
        curl.call("ReservationService/Create", name=f"{corner.name}-{node}", spec=spec)
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")
    asked = {"pod_namespace": corner.name, "pod_name": "stranger"}
    said = curl.call("CapacityService/Explain", **asked)["explanation"]
    assert said["pod"] == f"{corner.name}/stranger"
    assert "held by reservation" in json.dumps(said)
    words = refused(lambda: curl.call("CapacityService/Explain", **asked | {"pod_name": "no"}))
    assert "NO_SUCH_POD" in words
    for node in nodes:
        curl.call("ReservationService/Release", name=f"{corner.name}-{node}")


def test_a_plugin_places_an_owner_on_its_seat_and_strangers_beside_it(
    corner: Corner, curl: Curl, nodes: list[str], served: ReserverProcess
) -> None:
    seat, other = nodes
    curl.call("ReservationService/Create", name=corner.name, spec=wanted(corner, seat))
    owner = Plugin(corner, curl, "owner", "3")
    stranger = Plugin(corner, curl, "stranger", "2")
    assert owner.filter(nodes)["node_names"] == [seat]
    assert stranger.filter(nodes)["node_names"] == [other]
    assert "held by reservation" in stranger.filter([seat])["refused"][seat]
    assert "NOT_BOUND" in refused(lambda: stranger.bind(seat))

    (claim,) = owner.reserve(seat)["claims"]
    assert corner.name in claim
    assert owner.unreserve() == {}
    assert owner.reserve(seat)["claims"] == [claim]
    assert owner.bind(seat) == {}
    assert owner.bind(seat) == {}  # Once more: it is bound.
    assert corner.node_of("owner") == seat
    assert claim in corner.pod("owner").metadata.annotations["reserver.io/claims"]
    gone = f"there is no reservation '{corner.name}'"
    wait_for(lambda: gone in _why_not(curl, corner.name), "the claimed reservation is gone")
    assert audited(served, call="SchedulerService/Bind", what=f"{corner.name}/owner", code="OK")


def test_a_pod_that_changes_after_it_was_reserved_is_bound_as_it_is_or_not_at_all(
    corner: Corner, curl: Curl, nodes: list[str], kubeconfig: Path
) -> None:
    """Whether Reserver's watch has shown it by then or not: the API server compares."""
    held, _ = nodes
    curl.call("ReservationService/Create", name=corner.name, spec=wanted(corner, held))
    grows, is_labelled = (Plugin(corner, curl, name, "500m") for name in ("grows", "labelled"))
    for plugin in (grows, is_labelled):
        plugin.reserve(held)
    container = {"name": "main", "resources": {"requests": {"cpu": "4"}}}
    patch = json.dumps({"spec": {"containers": [container]}})
    asked = ("-n", corner.name, "patch", "pod", "grows", "--subresource=resize", "-p", patch)
    assert "patched" in kubectl(kubeconfig, *asked)
    kubectl(kubeconfig, "-n", corner.name, "label", "pod", "labelled", "moment=later")
    assert "held by reservation" in refused(lambda: grows.bind(held))
    assert corner.node_of("grows") is None
    assert is_labelled.bind(held) == {}
    assert corner.node_of("labelled") == held
    curl.call("ReservationService/Release", name=corner.name)


def _why_not(curl: Curl, name: str) -> str:
    try:
        curl.call("ReservationService/Get", name=name)
    except Refused as exc:
        return exc.words
    return ""


def test_a_plugin_is_told_where_it_is_of_use_to_evict(
    corner: Corner, curl: Curl, nodes: list[str]
) -> None:
    held, free = nodes
    curl.call("ReservationService/Create", name=corner.name, spec=wanted(corner, held))
    small = [Plugin(corner, curl, f"small-{number}", "1") for number in range(2)]
    for plugin, node in zip(small, nodes, strict=True):
        plugin.bind(node)
    large = Plugin(corner, curl, "large", "4")
    victims = {node: [plugin.uid] for plugin, node in zip(small, nodes, strict=True)}
    assert large.preempt(victims) == [free]
    curl.call("ReservationService/Release", name=corner.name)
    assert sorted(large.preempt(victims)) == sorted(nodes)
