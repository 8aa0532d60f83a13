"""The content of the status of a Reservation."""

from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from reserver.base.pacer import outcome
from reserver.k8s.objects.times import show_moment
from reserver.reservations.reservation import Ref
from reserver.stores.status import RoomReport
from tests.builders import NOW, name, node, pod
from tests.unit.stores.objects import W1, World, condition
from tests.unit.stores.test_object_cache import made

PATH = "/apis/reserver.io/v1alpha1/namespaces/shop/reservations"


async def test_an_object_that_holds_is_acknowledged() -> None:
    world = World()
    world.put(made(revision=7, slots=2, ttl="1h"))
    (status,) = await world.write()
    (request,) = world.client.requests
    assert request.path == f"{PATH}/web/status"
    assert request.body["metadata"] == {"resourceVersion": "7"}
    assert (status["phase"], status["claimed"], status["observedGeneration"]) == ("Active", 0, 1)
    assert status["placements"] == [{"node": "worker-1", "slots": 2}]
    assert status["expiresAt"] == "2030-03-17T18:46:40Z"
    assert condition(status)[:2] == ("True", "RoomHeld")
    assert condition(status, "Valid")[:2] == ("True", "Accepted")


@pytest.mark.parametrize("ttl", ["1h", "0"])
async def test_nothing_is_written_that_is_said_already(ttl: str) -> None:
    world = World()
    world.put(made(ttl=ttl))
    (status,) = await world.write()
    assert await world.write() == []
    again = World()
    kept = {field: said for field, said in status.items() if said is not None}  # As in the API.
    again.put(made(ttl=ttl, status=kept, revision=2))
    assert await again.write(later=5) == []


async def test_a_broken_one_says_what_is_wrong() -> None:
    world = World()
    world.put(made(owners=[]))
    (status,) = await world.write()
    assert status["phase"] == "Invalid"
    held, reason, message = condition(status, "Valid")
    assert (held, reason) == ("False", "InvalidSpec")
    assert message.startswith("spec.owners: is empty; name")


@pytest.mark.parametrize(("generation", "held_cpu"), [(1, 2000), (2, 4000)])
async def test_claims_that_the_status_tells_outlive_a_restart(
    generation: int, held_cpu: int
) -> None:
    """Claims of an older spec do not count."""
    world = World()
    twice: dict[str, Any] = {"slots": 2, "owners": [{"pod": {"name": "a"}}]}
    world.put(made(**twice))
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.pod_seen(pod("a", node="worker-1", claims=(seat,), cpu="1"))
    (status,) = await world.write()
    again = World()
    item = made(**twice, status=status, revision=2)
    metadata = msgspec.structs.replace(item.metadata, generation=generation)
    again.put(msgspec.structs.replace(item, metadata=metadata))
    assert again.state.ledger.held_on("worker-1")["cpu"] == held_cpu


async def test_a_claim_is_not_told_before_its_binding_is_seen() -> None:
    world = World()
    world.put(made(slots=2, owners=[{"pod": {"name": "a"}}, {"pod": {"name": "b"}}]))
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.assume(pod("a", cpu="1"), "worker-1", (seat.identity,))
    (status,) = await world.write()
    assert status["claims"] == []


async def test_claims_are_told_and_stay_told_when_their_pod_is_gone() -> None:
    world = World()
    world.put(made(slots=2, owners=[{"pod": {"name": "a"}}, {"pod": {"name": "b"}}]))
    await world.write()
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.pod_seen(pod("a", node="worker-1", claims=(seat,), cpu="1"))
    (status,) = await world.write(later=60)
    expected = {"pod": "shop/a", "uid": "uid-a", "node": "worker-1", "at": "2030-03-17T17:47:40Z"}
    assert (status["claimed"], status["claims"]) == (1, [expected])
    world.state.pod_gone(name("a"))
    assert await world.write(later=60) == []


async def test_a_hold_without_room_says_so_once_with_an_event() -> None:
    world = World()
    world.put(made())
    await world.write()
    world.state.pod_seen(pod("taker", node="worker-1", cpu="64"))
    (status,) = await world.write(later=5)
    assert condition(status)[:2] == ("False", "NotEnoughRoom")
    assert "worker-1 has too little cpu" in condition(status)[2]
    assert [reason for reason, _ in world.warned] == ["NotBacked"]
    since = {c["type"]: c["lastTransitionTime"] for c in status["conditions"]}
    assert since == {"Valid": "2030-03-17T17:46:40Z", "Backed": "2030-03-17T17:46:45Z"}
    world.state.pod_gone(name("taker"))
    (status,) = await world.write()
    assert condition(status)[0] == "True"
    assert len(world.warned) == 1


async def test_a_node_that_is_missing_is_told() -> None:
    world = World(node("another", cpu="4"))
    world.put(made())
    (status,) = await world.write()
    assert status["phase"] == "Failed"
    assert condition(status)[:2] == ("False", "NodeNotFound")
    assert [reason for reason, _ in world.warned] == ["NodeNotFound"]


async def test_one_that_is_to_start_says_when() -> None:
    world = World()
    world.put(made(startsAt="2040-01-01T00:00:00Z", ttl="0"))
    (status,) = await world.write()
    assert status["phase"] == "Pending"
    assert condition(status)[:2] == ("False", "NotStarted")
    assert status["expiresAt"] is None


async def test_a_node_that_is_cordoned_is_told_to_what_holds_on_it_and_to_nothing_else() -> None:
    world = World(W1, node("worker-2", cpu="64"))
    world.put(made(), made("elsewhere", node="worker-2"))
    await world.write()
    touched: list[Ref] = []
    room = RoomReport(touched.append)
    outcome(room.report(world.state, world.now))
    touched.clear()
    world.state.node_seen(replace(W1, unschedulable=True))
    outcome(room.report(world.state, world.now))
    assert [ref.key for ref in touched] == ["web"]
    (status,) = await world.write()
    assert condition(status)[:2] == ("True", "NodeCordoned")
    world.state.node_seen(W1)
    (status,) = await world.write()
    assert condition(status)[:2] == ("True", "RoomHeld")
    assert world.warned == []


GPU: Any = {"cpu": "1", "example.com/gpu": "1"}


def test_of_all_that_a_new_device_concerns_a_step_reports_one() -> None:
    world = World()
    world.put(*(made(f"r-{number}", resources={"cpu": "1m"}) for number in range(50)))
    touched: list[Ref] = []
    room = RoomReport(touched.append)
    outcome(room.report(world.state, world.now))
    touched.clear()
    world.state.node_seen(node("worker-9", **GPU))
    for steps, _ in enumerate(room.report(world.state, world.now), start=1):
        assert len(touched) == steps
    assert sorted(ref.key for ref in touched) == sorted(f"r-{number}" for number in range(50))


async def test_a_status_says_since_when_it_is_idle_and_a_restart_reads_it() -> None:
    world = World()
    world.state.ledger.past.end()
    world.state.ledger.advance(NOW)
    idle = partial(
        made, releaseIfIdle="10m", ttl=0, owners=[{"selector": {"matchLabels": {"a": "b"}}}]
    )
    world.put(idle())
    (status,) = await world.write()
    assert status["idleSince"] == "2030-03-17T17:46:40Z"
    again = World()
    again.state.ledger.advance(NOW + 599)
    again.now = NOW + 599
    again.put(idle(status=status, revision=2))
    again.state.ledger.past.end()
    assert await again.write() == []
    again.state.ledger.advance(NOW + 600)
    (over,) = await again.write(later=1)
    assert (over["phase"], over["idleSince"]) == ("Expired", status["idleSince"])
    assert condition(over)[:2] == ("False", "Idle")
    assert again.store.due_edit(Ref.of_object("shop", "web"), NOW + 600) is not None


async def test_another_reservers_later_moment_is_taken_from_the_status() -> None:
    world = World()
    world.state.ledger.past.end()
    world.state.ledger.advance(NOW)
    world.put(made(releaseIfIdle="10m", ttl=0))
    (status,) = await world.write()
    ref = Ref.of_object("shop", "web")
    for later, said in ((30, "17:47:10"), (-30, "17:47:10")):
        moment = show_moment(NOW + later)
        world.put(
            made(releaseIfIdle="10m", ttl=0, status=status | {"idleSince": moment}, revision=9)
        )
        assert show_moment(world.state.ledger.idle_since(ref))[11:19] == said
