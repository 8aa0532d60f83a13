"""Nodes and events."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.api import Api, Json


@pytest.fixture
async def node(api: Api) -> AsyncIterator[str]:
    """The path of a node that is gone after the test."""
    body = {
        "metadata": {"name": api.namespace, "labels": {"zone": "a"}},
        "status": {"capacity": {"cpu": 4, "memory": "8192Mi", "pods": "110"}},
    }
    assert (await api.post("/api/v1/nodes", body)).status == 201
    path = f"/api/v1/nodes/{api.namespace}"
    yield path
    await api.delete(path)


async def test_a_node_may_come_with_its_status(api: Api, node: str) -> None:
    status = (await api.get(node)).body["status"]
    assert status["capacity"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
    assert status["allocatable"] == status["capacity"]


async def test_a_nodes_status_and_the_rest_are_written_apart(api: Api, node: str) -> None:
    change: Json = {"spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": "3"}}}
    main = await api.patch(node, change)
    assert main.body["spec"]["unschedulable"] is True
    assert main.body["status"]["allocatable"]["cpu"] == "4"
    change = {"spec": {"unschedulable": False}, "status": {"allocatable": {"cpu": "3"}}}
    status = await api.patch(f"{node}/status", change)
    assert status.body["spec"]["unschedulable"] is True
    assert status.body["status"]["allocatable"]["cpu"] == "3"


async def test_uncordoning_leaves_nothing_behind(api: Api, node: str) -> None:
    await api.patch(node, {"spec": {"unschedulable": True}})
    name = node.rpartition("/")[2]
    query = {"fieldSelector": f"metadata.name={name},spec.unschedulable=true"}
    assert (await api.get("/api/v1/nodes", **query)).names == [name]
    answer = await api.patch(node, {"spec": {"unschedulable": False}})
    assert "unschedulable" not in answer.body["spec"]


async def test_a_nodes_deletion_is_answered_with_a_status(api: Api, node: str) -> None:
    gone = await api.delete(node)
    assert (gone.status, gone.body["kind"]) == (200, "Status")
    assert gone.body["details"]["kind"] == "nodes"
    assert (await api.get(node)).status == 404


def _event(name: str, namespace: str, kind: str = "Pod") -> Json:
    involved = {"kind": kind, "name": "one", "namespace": namespace, "apiVersion": "v1"}
    return {
        "metadata": {"name": name},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": "Testing",
        "message": "a test",
        "type": "Normal",
        "source": {"component": "contract"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }


async def test_events_are_found_by_what_they_are_about(api: Api) -> None:
    made = await api.post(api.path("events"), _event("one.1", api.namespace))
    assert made.status == 201
    for selector in (
        "involvedObject.name=one,involvedObject.kind=Pod",
        f"involvedObject.namespace={api.namespace},reason=Testing,type=Normal",
        "source=contract",
    ):
        assert (await api.get(api.path("events"), fieldSelector=selector)).names == ["one.1"]
    assert (await api.get(api.path("events"), fieldSelector="involvedObject.name=x")).names == []


async def test_an_event_can_be_counted_up(api: Api) -> None:
    await api.post(api.path("events"), _event("one.1", api.namespace))
    patch = {"count": 2, "lastTimestamp": "2026-01-01T00:01:00Z"}
    answer = await api.patch(api.path("events", "one.1"), patch)
    assert (answer.status, answer.body["count"]) == (200, 2)


async def test_an_event_lives_where_its_object_does(api: Api) -> None:
    other = await api.post(api.path("events"), _event("one.1", "default"))
    assert other.outline == (422, "Invalid")
    clusterwide = await api.post(api.path("events"), _event("one.1", "", "Node"))
    assert clusterwide.outline == (422, "Invalid")
