"""Extensions and updates of reservations whose slots pods have claimed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.reservations.enums import StoreKind
from reserver.scheduling.bind import judge_bind
from reserver.stores.stores import Stores
from reserver.v1 import reservation_pb2 as pb
from tests.integration.grpc.calls import refused, shown, spec, watched
from tests.integration.world import CONFIGMAPS, OBJECTS, World, again
from tests.waiting import until


async def test_slots_that_were_claimed_come_back_only_where_there_is_room(world: World) -> None:
    owners = [pb.Owner(pod=pb.PodOwner(name=f"web-{n}", namespace="shop")) for n in range(2)]
    wanted = pb.ReservationSpec(owners=owners, node="worker-1", resources={"cpu": "1"}, slots=2)
    ref = (await world.api.Create(pb.CreateRequest(name="first", spec=wanted))).reservation.id
    ledger = world.running.assembly.ledger
    pods = "/api/v1/namespaces/shop/pods"
    where = {"nodeName": "worker-1", "containers": [{"name": "c", "image": "i"}]}
    named = {"metadata": {"name": "web-0"}, "spec": where}
    await world.cluster.client.send("POST", pods, named)
    await until(lambda: ledger.held_on("worker-1")["cpu"] != 2000)
    await world.cluster.client.send("DELETE", f"{pods}/web-0", {"gracePeriodSeconds": 0})
    await until(lambda: not world.running.assembly.state.pods)
    await world.api.Create(pb.CreateRequest(name="second", spec=spec(cpu="3")))

    longer = pb.ExtendRequest(name=ref, ttl={"seconds": 7200})
    _, reason, _ = await refused(world.api.Extend(longer))
    assert reason == "PARTLY_CLAIMED"
    await world.api.Update(pb.UpdateRequest(name=ref, spec=wanted))  # The same keeps its claim.
    assert ledger.held_on("worker-1")["cpu"] == 4000
    wanted.policy = pb.POLICY_REQUIRE
    _, reason, _ = await refused(world.api.Update(pb.UpdateRequest(name=ref, spec=wanted)))
    assert reason == "NO_ROOM"
    wanted.slots = 1
    again = (await world.api.Update(pb.UpdateRequest(name=ref, spec=wanted))).reservation
    assert (again.status.backed, ledger.held_on("worker-1")["cpu"]) == (True, 4000)


async def claimed(world: World, *, by_edition: bool) -> str:
    """Create a reusable reservation and claim it; return its id once the claim is observed."""
    wanted = pb.CreateRequest(name="train", spec=spec(reusable=True))
    made = (await world.api.Create(wanted)).reservation
    ((known, _),) = world.running.assembly.ledger
    claims = json.dumps([known.edition if by_edition else known.identity])
    metadata = {"name": "web-0", "annotations": {"reserver.io/claims": claims}}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    where = {"nodeName": "worker-1", "containers": [container]}
    pods = "/api/v1/namespaces/shop/pods"
    await world.cluster.client.send("POST", pods, {"metadata": metadata, "spec": where})
    await watched(world, lambda seen: seen.status.phase == pb.PHASE_CLAIMED)
    return str(made.id)


async def test_what_is_reusable_is_extended_while_pods_have_its_slots(
    world: World, tmp_path: Path
) -> None:
    """Extended by each way to write it; a restart keeps the claim, too."""
    name, client = await claimed(world, by_edition=False), world.cluster.client
    longer = await world.api.Extend(pb.ExtendRequest(name=name, ttl={"seconds": 7200}))
    assert longer.reservation.status.phase == pb.PHASE_CLAIMED
    later = spec(reusable=True, ttl={"seconds": 9000})
    updated = await world.api.Update(pb.UpdateRequest(name=name, spec=later))
    assert updated.reservation.status.phase == pb.PHASE_CLAIMED
    assert updated.reservation.etag != longer.reservation.etag

    written = json.loads((await world.written())["train"]) | {"expiresAt": "2040-01-31T10:00:00Z"}
    path, patch = f"{CONFIGMAPS}/reservations", {"data": {"train": json.dumps(written)}}
    if world.writes_objects:
        path, patch = f"{OBJECTS}/train", {"spec": written}
    await client.send("PATCH", path, patch, media="application/merge-patch+json")
    await watched(world, lambda seen: seen.spec.expires_at.ToDatetime().year == 2040)
    assert (await shown(world.api, name)).status.phase == pb.PHASE_CLAIMED
    assert not world.running.assembly.ledger.held_on("worker-1")
    kind = StoreKind.OBJECT if world.writes_objects else StoreKind.CONFIGMAP
    async with again(tmp_path, kind) as api:
        assert (await shown(api, name)).status.phase == pb.PHASE_CLAIMED


async def test_claims_of_an_older_version_are_not_lost_by_an_extension(world: World) -> None:
    name = await claimed(world, by_edition=True)
    longer = pb.ExtendRequest(name=name, ttl={"seconds": 7200})
    _, reason, _ = await refused(world.api.Extend(longer))
    assert reason == "PARTLY_CLAIMED"
    later = spec(reusable=True, cpu="1", ttl={"seconds": 7200})
    await world.api.Create(pb.CreateRequest(name="rest", spec=spec(owner="web-1", cpu="3")))
    _, reason, _ = await refused(world.api.Update(pb.UpdateRequest(name=name, spec=later)))
    assert reason == "NO_ROOM"


async def test_no_pod_claims_a_slot_while_its_reservation_is_being_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await world.api.Create(pb.CreateRequest(name="train", spec=spec(slots=2)))).reservation
    state, now = world.running.assembly.state, world.running.assembly.clock
    pod = {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.cluster.client.send("POST", "/api/v1/namespaces/shop/pods", pod)
    name = PodName("shop", "web-0")
    await until(lambda: name in state.pods)
    refusals = list[str | None]()
    edit = Stores.edit

    async def slow(self: Stores, *change: Any) -> bool:
        refusals.append(judge_bind(state.pods[name], "worker-1", state, now()).refusal)
        return await edit(self, *change)

    monkeypatch.setattr(Stores, "edit", slow)
    await world.api.Extend(pb.ExtendRequest(name=made.id, ttl={"seconds": 7200}))
    await world.api.Update(pb.UpdateRequest(name=made.id, spec=spec(slots=3)))
    assert refusals == ["must wait for a change of its reservation"] * 2
    verdict = judge_bind(state.pods[name], "worker-1", state, now())
    assert (verdict.refusal, len(verdict.claims)) == (None, 1)
