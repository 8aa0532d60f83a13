"""SchedulerService and CapacityService on the embedded cluster, called with the generated stubs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from reserver.cluster.pod import PodName
from reserver.extender import bindings
from reserver.v1 import capacity_pb2, reservation_pb2
from reserver.v1 import scheduler_pb2 as pb
from reserver.v1.capacity_pb2_grpc import CapacityServiceStub
from reserver.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.integration.grpc.calls import refused, spec
from tests.integration.world import World, serving
from tests.waiting import until

NODES = ("worker-1", "worker-2")


class Desk:
    """A cluster and all its services."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state = world.running.assembly.state
        self.scheduler: Any = SchedulerServiceStub(world.channel)
        self.capacity: Any = CapacityServiceStub(world.channel)

    async def reserve(self, name: str, **kwargs: Any) -> None:
        await self.world.api.Create(reservation_pb2.CreateRequest(name=name, spec=spec(**kwargs)))

    async def pod(self, name: str, cpu: str = "2", *, borrows: bool = False) -> dict[str, Any]:
        """Create a pod and return it once reserver has seen it."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        tolerations = [{"key": "reserver.io/lent", "operator": "Exists"}] if borrows else []
        spec = {"containers": [container], "tolerations": tolerations}
        body = {"metadata": {"name": name}, "spec": spec}
        path = "/api/v1/namespaces/shop/pods"
        made = json.loads(await self.world.cluster.client.send("POST", path, body))
        await until(lambda: PodName("shop", name) in self.state.pods)
        return dict(made)

    def used(self, node: str) -> int:
        snapshot = self.state.snapshot
        row = snapshot.row(node)
        assert row is not None
        return int(snapshot.requested[row, snapshot.columns["cpu"]])


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with serving(tmp_path, *NODES) as world:
        yield Desk(world)


def place(pod: dict[str, Any], node: str) -> dict[str, str]:
    metadata = pod["metadata"]
    return {
        "pod_namespace": metadata["namespace"],
        "pod_name": metadata["name"],
        "pod_uid": metadata["uid"],
        "node": node,
    }


def sent(pod: dict[str, Any]) -> bytes:
    return json.dumps(pod).encode()


async def test_filter_keeps_strangers_away_and_shows_owners_their_seat(desk: Desk) -> None:
    await desk.reserve("a", cpu="3")
    stranger, owner = await desk.pod("stranger"), await desk.pod("web-0")
    answer = await desk.scheduler.Filter(pb.FilterRequest(pod=sent(stranger), node_names=NODES))
    assert list(answer.node_names) == ["worker-2"]
    answer = await desk.scheduler.Filter(pb.FilterRequest(pod=sent(owner), node_names=NODES))
    assert list(answer.node_names) == ["worker-1"]
    answer = await desk.scheduler.Filter(
        pb.FilterRequest(pod=sent(stranger), node_names=["worker-1"])
    )
    assert "held by reservation" in answer.refused["worker-1"]


async def test_what_is_reserved_for_a_pod_is_taken_until_it_is_unreserved(desk: Desk) -> None:
    first, second = await desk.pod("first", cpu="3"), await desk.pod("second", cpu="3")
    await desk.reserve("elsewhere", node="worker-1", cpu="1")  # So that what is free is compared.
    await desk.scheduler.Reserve(pb.ReserveRequest(**place(first, "worker-1")))
    await desk.scheduler.Reserve(pb.ReserveRequest(**place(first, "worker-1")))
    assert desk.used("worker-1") == 3000
    code, reason, _ = await refused(
        desk.scheduler.Reserve(pb.ReserveRequest(**place(second, "worker-1")))
    )
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_BOUND")
    code, *_ = await refused(desk.scheduler.Bind(pb.BindRequest(**place(first, "worker-2"))))
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    for _ in range(2):
        uid = first["metadata"]["uid"]
        await desk.scheduler.Unreserve(pb.UnreserveRequest(pod_uid=uid))
    assert desk.used("worker-1") == 0
    await desk.scheduler.Bind(pb.BindRequest(**place(second, "worker-1")))
    assert desk.used("worker-1") == 3000


async def test_bind_writes_what_reserve_has_taken(desk: Desk) -> None:
    await desk.reserve("seat", cpu="3")
    owner = await desk.pod("web-0")
    taken = await desk.scheduler.Reserve(pb.ReserveRequest(**place(owner, "worker-1")))
    assert [claim.partition("@")[0] for claim in taken.claims] == [
        "reserver-system/reservations/seat"
    ]
    await desk.scheduler.Bind(pb.BindRequest(**place(owner, "worker-1")))
    await desk.scheduler.Bind(pb.BindRequest(**place(owner, "worker-1")))
    path = "/api/v1/namespaces/shop/pods/web-0"
    bound = json.loads(await desk.world.cluster.client.send("GET", path))
    assert bound["spec"]["nodeName"] == "worker-1"
    assert "seat" in bound["metadata"]["annotations"]["reserver.io/claims"]


async def test_who_reserves_and_never_binds_loses_the_node(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindings, "RESERVED_S", 0.0)
    pod = await desk.pod("first", cpu="3")
    await desk.scheduler.Reserve(pb.ReserveRequest(**place(pod, "worker-1")))
    await until(lambda: not desk.used("worker-1"))


async def test_nobody_is_evicted_for_room_that_stays_held(desk: Desk) -> None:
    await desk.reserve("a", cpu="3")
    low, high = await desk.pod("low", cpu="1"), await desk.pod("high", cpu="2")
    await desk.scheduler.Bind(pb.BindRequest(**place(low, "worker-1")))
    victims = {"worker-1": pb.PreemptRequest.Victims(pod_uids=[low["metadata"]["uid"]])}
    request = pb.PreemptRequest(pod=sent(high), victims=victims)
    assert not (await desk.scheduler.Preempt(request)).node_names


@pytest.mark.parametrize("missing", ["pod_namespace", "pod_name", "pod_uid", "node"])
async def test_a_pod_that_is_not_named_is_told(desk: Desk, missing: str) -> None:
    whole = {"pod_namespace": "shop", "pod_name": "a", "pod_uid": "u", "node": "worker-1"}
    code, _, fields = await refused(desk.scheduler.Bind(pb.BindRequest(**{**whole, missing: ""})))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert list(fields.values()) == ["is empty; name the pod and its node"]
    code, _, fields = await refused(desk.scheduler.Filter(pb.FilterRequest(node_names=NODES)))
    assert list(fields) == ["pod"]


async def test_nodes_show_what_is_free_and_how_much_fits(desk: Desk) -> None:
    await desk.reserve("a", cpu="1500m")
    request = capacity_pb2.ListNodesRequest(slot={"cpu": "1"})
    first, second = (await desk.capacity.ListNodes(request)).nodes
    cpu = first.resources["cpu"]
    assert (cpu.allocatable, cpu.requested, cpu.held, cpu.free) == ("4", "0", "1500m", "2500m")
    assert (first.fits, second.fits) == (2, 4)
    only = capacity_pb2.ListNodesRequest(node_names=["worker-2", "nowhere"])
    assert [node.node for node in (await desk.capacity.ListNodes(only)).nodes] == ["worker-2"]
    bad = capacity_pb2.ListNodesRequest(slot={"cpu": "much"})
    code, _, fields = await refused(desk.capacity.ListNodes(bad))
    assert (code, list(fields)) == (grpc.StatusCode.INVALID_ARGUMENT, ["slot.cpu"])


@pytest.mark.parametrize(
    ("many", "field"),
    [
        ({"slot": {f"example.com/{n}": "1" for n in range(65)}}, "slot"),
        ({"node_names": ["worker-2"] * 20_001}, "nodeNames"),
    ],
)
async def test_a_list_of_nodes_is_asked_for_with_few_words(
    desk: Desk, many: dict[str, Any], field: str
) -> None:
    request = capacity_pb2.ListNodesRequest(**many)
    code, _, fields = await refused(desk.capacity.ListNodes(request))
    assert (code, list(fields)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def test_nodes_show_what_pods_borrow(desk: Desk) -> None:
    desk.state.snapshot.lending.is_on = True
    lend = reservation_pb2.Lend(below_priority=100)
    await desk.reserve("a", cpu="2", lend=lend)
    guest = await desk.pod("guest", cpu="3", borrows=True)
    await desk.scheduler.Bind(pb.BindRequest(**place(guest, "worker-1")))
    first, second = (await desk.capacity.ListNodes(capacity_pb2.ListNodesRequest())).nodes
    cpu = first.resources["cpu"]
    assert (cpu.requested, cpu.held, cpu.borrowed, cpu.free) == ("3", "0", "2", "1")
    assert second.resources["cpu"].borrowed == "0"


async def test_what_if_says_what_a_set_would_lack_and_holds_nothing(desk: Desk) -> None:
    await desk.reserve("a", cpu="3")
    request = capacity_pb2.WhatIfRequest(
        reservations=[spec("worker-2"), spec("worker-1", cpu="2"), spec("nowhere")]
    )
    answer = await desk.capacity.WhatIf(request)
    assert not answer.fits
    assert [(each.index, each.never) for each in answer.shortages] == [(1, False), (2, True)]
    assert len(desk.world.running.assembly.ledger) == 1
    fits = capacity_pb2.WhatIfRequest(reservations=[spec("worker-2")])
    assert (await desk.capacity.WhatIf(fits)).fits
    bad = capacity_pb2.WhatIfRequest(reservations=[spec(cpu="x")])
    _, _, fields = await refused(desk.capacity.WhatIf(bad))
    assert list(fields) == ["reservations[0].resources.cpu"]


async def test_explain_says_why_a_pod_is_pending(desk: Desk) -> None:
    await desk.reserve("a", cpu="3")
    await desk.pod("stranger")
    request = capacity_pb2.ExplainRequest(pod_namespace="shop", pod_name="stranger")
    said = json_format.MessageToDict((await desk.capacity.Explain(request)).explanation)
    assert said["pod"] == "shop/stranger"
    assert said["available"] == 1
    nobody = capacity_pb2.ExplainRequest(pod_namespace="shop", pod_name="nobody")
    code, reason, _ = await refused(desk.capacity.Explain(nobody))
    assert (code, reason) == (grpc.StatusCode.NOT_FOUND, "NO_SUCH_POD")
