"""The scheduler of the embedded cluster, as an extender and its users see it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest
from aiohttp import web

from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode, encode
from reserver_demo.clock import SystemClock
from reserver_demo.cluster import EmbeddedCluster
from reserver_demo.scheduler.loop import RETRY_S, Scheduler
from reserver_demo.scheduler.view import ClusterView, fit_message, parse_pod
from tests.unit.sim.clocks import ManualClock
from tests.unit.sim.fake_extender import PODS, FakeExtender, Json

MERGE = "application/merge-patch+json"


@pytest.fixture
async def extender() -> AsyncIterator[FakeExtender]:
    fake = FakeExtender()
    app = web.Application()
    app.add_routes([web.post("/filter", fake.filter), web.post("/bind", fake.bind)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield fake
    await runner.cleanup()


@asynccontextmanager
async def _cluster(
    extender: FakeExtender, nodes: int = 3, clock: ManualClock | None = None
) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster() as cluster, aiohttp.ClientSession() as session:
        extender.client = cluster.client
        for number in range(nodes):
            await cluster.create_node(f"n{number}")
        times = clock or SystemClock()
        scheduler = Scheduler(cluster.client, session, times, extender.url)
        scheduling = asyncio.create_task(scheduler.run())
        yield cluster
        scheduling.cancel()
        await asyncio.wait({scheduling})


async def _create(cluster: EmbeddedCluster, name: str, cpu: str = "1", **spec: object) -> None:
    resources = {"requests": {"cpu": cpu}}
    containers = [{"name": "main", "image": "x:1", "resources": resources}]
    body = {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
    await cluster.client.send("POST", PODS, body)


async def _until(cluster: EmbeddedCluster, name: str, wanted: Callable[[Json], object]) -> Json:
    """Return a pod once a condition holds."""
    query = {"fieldSelector": f"metadata.name={name}"}
    async with asyncio.timeout(20):
        async for event in cluster.client.watch(PODS, query):
            pod: Json = msgspec.json.decode(event.object)
            if wanted(pod):
                return pod
    raise AssertionError(name)


def _is_running(pod: Json) -> bool:
    return bool(pod["status"]["phase"] == "Running")


def _refusal(pod: Json) -> Json:
    conditions = pod["status"].get("conditions", ())
    return next(
        (c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), {}
    )


async def _events(cluster: EmbeddedCluster, name: str, reason: str) -> list[Json]:
    """Return the events of a pod once there is an event."""
    query = {"fieldSelector": f"involvedObject.name={name},reason={reason}"}
    async with asyncio.timeout(20):
        async for event in cluster.client.watch("/api/v1/events", query):
            return [msgspec.json.decode(event.object)]
    raise AssertionError(name)


async def test_a_pod_gets_a_node_and_runs(extender: FakeExtender) -> None:
    async with _cluster(extender) as cluster:
        await _create(cluster, "a")
        pod = await _until(cluster, "a", _is_running)
        assert pod["spec"]["nodeName"] == "n0"
        (event,) = await _events(cluster, "a", "Scheduled")
        assert event["message"] == "Successfully assigned default/a to n0"
        await cluster.client.send("DELETE", f"{PODS}/a")
        async with asyncio.timeout(20):
            while b'"name":"a"' in await cluster.client.send("GET", PODS):
                continue


async def test_pods_spread_over_the_emptiest_nodes(extender: FakeExtender) -> None:
    async with _cluster(extender) as cluster:
        placed = []
        for name in ("a", "b", "c"):
            await _create(cluster, name)
            placed.append((await _until(cluster, name, _is_running))["spec"]["nodeName"])
        assert placed == ["n0", "n1", "n2"]


async def test_a_filter_call_is_kube_schedulers(extender: FakeExtender) -> None:
    async with _cluster(extender) as cluster:
        await _create(cluster, "a", cpu="3")
        pod = await _until(cluster, "a", _is_running)
    (args,) = extender.filters
    assert set(args) == {"Pod", "Nodes", "NodeNames"}
    assert args["Nodes"] is None
    assert sorted(args["NodeNames"]) == ["n0", "n1", "n2"]
    assert args["Pod"]["metadata"]["uid"] == pod["metadata"]["uid"]
    assert "kind" not in args["Pod"]
    expected = {"PodName": "a", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"]}
    assert extender.binds == [{**expected, "Node": "n0"}]


async def test_only_nodes_that_pass_the_own_filters_are_sent(extender: FakeExtender) -> None:
    async with _cluster(extender) as cluster:
        await cluster.create_node("big", {"cpu": "16"}, {"size": "big"})
        await _create(cluster, "a", cpu="8")
        await _until(cluster, "a", _is_running)
        await _create(cluster, "b", nodeSelector={"size": "big"})
        await _until(cluster, "b", _is_running)
        await _create(cluster, "c", cpu="64")
        refused = await _until(cluster, "c", _refusal)
    assert [args["NodeNames"] for args in extender.filters] == [["big"], ["big"]]
    condition = _refusal(refused)
    assert condition["reason"] == "Unschedulable"
    assert condition["message"] == "0/4 nodes are available: 4 Insufficient cpu."


async def test_a_refused_pod_says_why_and_is_tried_when_it_changes(
    extender: FakeExtender,
) -> None:
    extender.allow["a"] = ()
    async with _cluster(extender) as cluster:
        await _create(cluster, "a")
        refused = await _until(cluster, "a", _refusal)
        assert _refusal(refused)["message"] == ("0/3 nodes are available: 3 held by reservation x.")
        (event,) = await _events(cluster, "a", "FailedScheduling")
        assert event["type"] == "Warning"
        assert event["message"] == _refusal(refused)["message"]
        extender.allow["a"] = ("n2",)
        poke = {"metadata": {"annotations": {"poke": "1"}}}
        await cluster.client.send("PATCH", f"{PODS}/a", poke, media=MERGE)
        pod = await _until(cluster, "a", _is_running)
        assert pod["spec"]["nodeName"] == "n2"


async def test_a_nomination_wakes_a_pod_and_is_cleared_if_it_is_refused(
    extender: FakeExtender,
) -> None:
    extender.allow["a"] = ()
    async with _cluster(extender) as cluster:
        await _create(cluster, "a")
        await _until(cluster, "a", _refusal)
        nomination = {"status": {"nominatedNodeName": "n1"}}
        await cluster.client.send("PATCH", f"{PODS}/a/status", nomination, media=MERGE)
        await _until(cluster, "a", lambda pod: "nominatedNodeName" not in pod["status"])
        extender.allow["a"] = ("n1",)
        await cluster.client.send("PATCH", f"{PODS}/a/status", nomination, media=MERGE)
        pod = await _until(cluster, "a", _is_running)
    assert pod["spec"]["nodeName"] == "n1"


async def test_an_error_is_retried_after_a_pause(extender: FakeExtender) -> None:
    extender.error = "not ready"
    clock = ManualClock()
    async with _cluster(extender, clock=clock) as cluster:
        await _create(cluster, "a")
        refused = await _until(cluster, "a", _refusal)
        assert _refusal(refused)["reason"] == "SchedulerError"
        assert _refusal(refused)["message"] == "not ready"
        for number in range(2, 5):
            await clock.asleep(RETRY_S)
            assert len(extender.filters) == number - 1
            clock.advance(RETRY_S)
            await extender.calls(number)


async def test_an_extender_that_is_down_is_an_error() -> None:
    down = FakeExtender(url="http://127.0.0.1:1")
    async with _cluster(down) as cluster:
        await _create(cluster, "a")
        refused = await _until(cluster, "a", _refusal)
    assert _refusal(refused)["reason"] == "SchedulerError"


async def test_a_failed_binding_gives_the_room_back(extender: FakeExtender) -> None:
    extender.bind_error = "held"
    clock = ManualClock()
    async with _cluster(extender, nodes=1, clock=clock) as cluster:
        await _create(cluster, "a", cpu="4")
        refused = await _until(cluster, "a", _refusal)
        assert _refusal(refused)["reason"] == "SchedulerError"
        assert _refusal(refused)["message"] == "held"
        extender.bind_error = ""
        await _create(cluster, "b", cpu="4")
        await _until(cluster, "b", _is_running)


async def test_a_decision_holds_its_room_before_the_binding_is_through(
    extender: FakeExtender,
) -> None:
    async with _cluster(extender, nodes=1) as cluster:
        await asyncio.gather(*(_create(cluster, f"p{number}") for number in range(6)))
        async with asyncio.timeout(20):
            refused = 0
            async for event in cluster.client.watch(PODS, {}):
                refused += bool(_refusal(msgspec.json.decode(event.object)))
                if refused >= 2:
                    break
    assert len({args["PodName"] for args in extender.binds}) == 4


async def test_no_nodes_at_all(extender: FakeExtender) -> None:
    async with _cluster(extender, nodes=0) as cluster:
        await _create(cluster, "a")
        refused = await _until(cluster, "a", _refusal)
    assert _refusal(refused)["message"] == "no nodes available to schedule pods"


async def test_higher_priority_is_served_first(extender: FakeExtender) -> None:
    async with _cluster(extender, nodes=1) as cluster:
        await _create(cluster, "first", cpu="4")
        await _until(cluster, "first", _is_running)
        await _create(cluster, "low", cpu="4")
        await _create(cluster, "high", cpu="4", priorityClassName="system-node-critical")
        for name in ("low", "high"):
            await _until(cluster, name, _refusal)
        await cluster.client.send("DELETE", f"{PODS}/first")
        await _until(cluster, "high", _is_running)
        low = await _until(cluster, "low", _refusal)
    assert "nodeName" not in low["spec"]


async def test_pods_of_other_schedulers_are_left_alone(extender: FakeExtender) -> None:
    async with _cluster(extender) as cluster:
        await _create(cluster, "theirs", schedulerName="other")
        await _create(cluster, "ours")
        await _until(cluster, "ours", _is_running)
    assert [args["Pod"]["metadata"]["name"] for args in extender.filters] == ["ours"]


@pytest.mark.parametrize(
    ("spec", "node", "reasons"),
    [
        ({}, {"unschedulable": True}, ("node(s) were unschedulable",)),
        (
            {"nodeSelector": {"zone": "b"}, "cpu": "100"},
            {},
            ("node(s) didn't match Pod's node affinity/selector",),
        ),
        ({"nodeSelector": {"zone": "a"}, "cpu": "100"}, {}, ("Insufficient cpu",)),
        ({"cpu": "4"}, {}, ()),
        ({"cpu": "4001m"}, {}, ("Insufficient cpu",)),
        ({"cpu": "5", "memory": "9Gi"}, {}, ("Insufficient cpu", "Insufficient memory")),
    ],
)
def test_the_first_filter_gives_the_reasons(
    spec: Json, node: Json, reasons: tuple[str, ...]
) -> None:
    wanted = {name: spec.pop(name) for name in ("cpu", "memory") if name in spec}
    container = {"name": "c", "resources": {"requests": wanted}}
    body = {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    labels = {"name": "n", "labels": {"zone": "a"}}
    raw = encode({"metadata": labels, "spec": node, "status": {"allocatable": allocatable}})
    why = ClusterView().why_not(parse_pod(encode(body)), decode(NodeObject, raw).value())
    assert sorted(why) == sorted(reasons)


def test_a_refusal_is_worded_as_kube_scheduler_does() -> None:
    reasons = {
        "a": ("Insufficient cpu",),
        "b": ("Too many pods", "Insufficient cpu"),
        "c": ("held by reservation x",),
    }
    assert fit_message(5, reasons) == (
        "0/5 nodes are available: 1 Too many pods, 1 held by reservation x, 2 Insufficient cpu."
    )
