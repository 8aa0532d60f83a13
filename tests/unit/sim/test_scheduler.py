"""The embedded cluster as an extender sees it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from aiohttp import web

from reserver.sim.client import ApiClient
from reserver.sim.cluster import ClusterOptions, EmbeddedCluster
from reserver.sim.scheduler.loop import SchedulerOptions
from tests.unit.sim.clocks import ManualClock

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
Json = dict[str, Any]


@dataclass
class FakeExtender:
    """Answers what a test wants, and remembers what it was asked.

    Attributes:
        allow: which of the names pass, by pod; all of them if it is not there.
        error: the Error of every answer to Filter.
        surplus: names that every answer to Filter has besides.
        bind_error: the Error of every answer to Bind.
    """

    allow: dict[str, Sequence[str]] = field(default_factory=dict)
    error: str = ""
    surplus: Sequence[str] = ()
    bind_error: str = ""
    url: str = ""
    client: ApiClient | None = None
    filters: list[Json] = field(default_factory=list)
    binds: list[Json] = field(default_factory=list)
    asked: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def filter(self, request: web.Request) -> web.Response:
        args = await request.json()
        self.filters.append(args)
        names, pod = args["NodeNames"], args["Pod"]["metadata"]["name"]
        passing = [name for name in names if name in self.allow.get(pod, names)]
        failed = {name: "held by reservation x" for name in names if name not in passing}
        async with self.asked:
            self.asked.notify_all()
        passing += self.surplus
        answer = {"NodeNames": passing, "FailedAndUnresolvableNodes": failed, "Error": self.error}
        return web.json_response(answer)

    async def bind(self, request: web.Request) -> web.Response:
        args = await request.json()
        self.binds.append(args)
        if not self.bind_error and self.client:
            body = {
                "metadata": {"name": args["PodName"], "uid": args["PodUID"]},
                "target": {"kind": "Node", "name": args["Node"]},
            }
            await self.client.send("POST", f"{PODS}/{args['PodName']}/binding", body)
        return web.json_response({"Error": self.bind_error})

    async def calls(self, number: int) -> list[Json]:
        """Return the Filter calls once there are so many."""
        async with asyncio.timeout(20), self.asked:
            await self.asked.wait_for(lambda: len(self.filters) >= number)
        return self.filters


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
    extender: FakeExtender | None = None,
    nodes: int = 3,
    clock: ManualClock | None = None,
    **options: Any,
) -> AsyncIterator[EmbeddedCluster]:
    url = extender.url if extender else None
    scheduler = SchedulerOptions(extender_url=url, **options)
    async with EmbeddedCluster(ClusterOptions(scheduler=scheduler), clock) as cluster:
        if extender:
            extender.client = cluster.client
        for number in range(nodes):
            await cluster.create_node(f"n{number}")
        yield cluster


async def _create(cluster: EmbeddedCluster, name: str, cpu: str = "1", **spec: object) -> None:
    resources = {"requests": {"cpu": cpu}}
    containers = [{"name": "main", "image": "x:1", "resources": resources}]
    body = {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
    await cluster.client.send("POST", PODS, body)


async def _until(cluster: EmbeddedCluster, name: str, wanted: Callable[[Json], object]) -> Json:
    """Return a pod once it is as wanted."""
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
    """Return the events about a pod once there is one."""
    query = {"fieldSelector": f"involvedObject.name={name},reason={reason}"}
    async with asyncio.timeout(20):
        async for event in cluster.client.watch("/api/v1/events", query):
            return [msgspec.json.decode(event.object)]
    raise AssertionError(name)


async def test_a_pod_gets_a_node_and_runs() -> None:
    async with _cluster() as cluster:
        await _create(cluster, "a")
        pod = await _until(cluster, "a", _is_running)
        assert pod["spec"]["nodeName"] == "n0"
        (event,) = await _events(cluster, "a", "Scheduled")
        assert event["message"] == "Successfully assigned default/a to n0"
        await cluster.client.send("DELETE", f"{PODS}/a")
        async with asyncio.timeout(20):
            while b'"name":"a"' in await cluster.client.send("GET", PODS):
                continue


async def test_pods_spread_over_the_emptiest_nodes() -> None:
    async with _cluster() as cluster:
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


async def test_a_sample_goes_round(extender: FakeExtender) -> None:
    extender.allow["a"] = ()
    async with _cluster(extender, nodes=5, sample=2) as cluster:
        await _create(cluster, "a")
        for number in range(2, 5):
            await extender.calls(number)
            poke = {"metadata": {"annotations": {"poke": str(number)}}}
            await cluster.client.send("PATCH", f"{PODS}/a", poke, media=MERGE)
        calls = await extender.calls(5)
    assert [args["NodeNames"] for args in calls[:5]] == [
        ["n0", "n1"],
        ["n2", "n3"],
        ["n4", "n0"],
        ["n1", "n2"],
        ["n3", "n4"],
    ]


async def test_a_nominated_node_is_tried_first_and_alone(extender: FakeExtender) -> None:
    extender.allow["a"] = ("n4",)
    async with _cluster(extender, nodes=5, sample=2) as cluster:
        await _create(cluster, "a")
        await _until(cluster, "a", _refusal)
        nomination = {"status": {"nominatedNodeName": "n4"}}
        await cluster.client.send("PATCH", f"{PODS}/a/status", nomination, media=MERGE)
        pod = await _until(cluster, "a", _is_running)
    assert pod["spec"]["nodeName"] == "n4"
    assert "nominatedNodeName" not in pod["status"]
    assert extender.filters[-1]["NodeNames"] == ["n4"]


async def test_a_refused_nomination_is_followed_by_a_full_pass_and_cleared(
    extender: FakeExtender,
) -> None:
    extender.allow["a"] = ()
    async with _cluster(extender) as cluster:
        await _create(cluster, "a")
        await _until(cluster, "a", _refusal)
        nomination = {"status": {"nominatedNodeName": "n1"}}
        await cluster.client.send("PATCH", f"{PODS}/a/status", nomination, media=MERGE)
        async with asyncio.timeout(20):
            while ["n1"] not in [args["NodeNames"] for args in extender.filters]:
                await extender.calls(len(extender.filters) + 1)
        place = [args["NodeNames"] for args in extender.filters].index(["n1"])
        calls = await extender.calls(place + 2)
        assert len(calls[place + 1]["NodeNames"]) == 3
        await _until(cluster, "a", lambda pod: "nominatedNodeName" not in pod["status"])


async def test_an_attempt_that_breaks_down_clears_the_nomination(extender: FakeExtender) -> None:
    extender.allow["waiting"] = ()
    async with _cluster(extender, nodes=1) as cluster:
        await _create(cluster, "waiting", cpu="3")
        await _until(cluster, "waiting", _refusal)
        extender.error = "busy"
        nomination = {"status": {"nominatedNodeName": "n0"}}
        await cluster.client.send("PATCH", f"{PODS}/waiting/status", nomination, media=MERGE)
        await _until(cluster, "waiting", lambda pod: "nominatedNodeName" not in pod["status"])


async def test_an_error_is_retried_after_its_back_off_only(extender: FakeExtender) -> None:
    extender.error = "not ready"
    clock = ManualClock()
    async with _cluster(extender, clock=clock) as cluster:
        await _create(cluster, "a")
        refused = await _until(cluster, "a", _refusal)
        assert _refusal(refused)["reason"] == "SchedulerError"
        assert _refusal(refused)["message"] == "not ready"
        for number, wait in enumerate((2, 3, 5, 9, 11, 11), start=2):
            await clock.asleep(wait)
            assert len(extender.filters) == number - 1
            clock.advance(wait)
            await extender.calls(number)


async def test_names_that_were_not_asked_for_are_an_error(extender: FakeExtender) -> None:
    extender.surplus = ["elsewhere"]
    async with _cluster(extender) as cluster:
        await _create(cluster, "a")
        refused = await _until(cluster, "a", _refusal)
    assert _refusal(refused)["message"] == (
        f'extender "{extender.url}" claims a filtered node "elsewhere" which is not found in the '
        "input node list"
    )


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


async def test_no_nodes_at_all() -> None:
    async with _cluster(nodes=0) as cluster:
        await _create(cluster, "a")
        refused = await _until(cluster, "a", _refusal)
    assert _refusal(refused)["message"] == "no nodes available to schedule pods"


async def test_higher_priority_is_served_first() -> None:
    async with _cluster(nodes=1, clock=ManualClock()) as cluster:
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
