"""The status of a reservation is written once per change, in both stores."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reserver.reservations.reservation import Ref
from tests.builders import name, node, pod
from tests.unit.k8s.fakes import NO_ANSWER, Request, ScriptedClient, refused
from tests.unit.stores import companions, objects
from tests.unit.stores.test_object_cache import made


class Said:
    """The current status of a reservation, in the words of both kinds of statuses."""

    def __init__(self, status: dict[str, Any]) -> None:
        backed = (c for c in status.get("conditions", ()) if c["type"] == "Backed")
        self.phase = status["phase"]
        self.is_backed = status.get("backed", next(backed, {"status": ""})["status"] == "True")


class Companions(ScriptedClient):
    """An API server that keeps companions, unless the script has an error for a write."""

    def __init__(self) -> None:
        super().__init__()
        self.data: dict[str, str] | None = None
        self.version = 0

    async def _next(self, request: Request) -> Any:
        if request.verb == "get" and self.data is None:
            raise companions.MISSING
        if request.verb == "get":
            return companions.answer(self.version, self.data)
        self.requests.append(request)
        if self.script:
            raise self.script.pop(0)
        self.version += 1
        self.data = (self.data or {}) | request.body["data"]
        return companions.answer(self.version, self.data)


class Keys:
    """The companion of a ConfigMap."""

    def __init__(self) -> None:
        self.world = companions.World()
        self.world.client = Companions()
        self.world.writer.client = self.world.client
        self.world.state.is_complete = True

    def put(self, generation: int = 1, **changes: Any) -> None:
        del generation  # A ConfigMap counts none.
        self.world.put(r=companions.spec(**changes))

    def gone(self) -> None:
        self.world.put()

    async def write(self, *errors: Exception, later: float = 0.0) -> list[Said]:
        requests = await self.world.write(*errors, later=later)
        texts = (request.body["data"].get("r") for request in requests)
        return [Said(json.loads(text)) for text in texts if text]


class Items:
    """The status of an object."""

    def __init__(self) -> None:
        self.world = objects.World()

    def put(self, **changes: Any) -> None:
        self.world.put(made("r", **{"ttl": 0} | changes))

    def gone(self) -> None:
        self.world.store.drop(("shop", "r"))

    async def write(self, *errors: Exception, later: float = 0.0) -> list[Said]:
        return [Said(status) for status in await self.world.write(*errors, later=later)]


Place = Keys | Items


@pytest.fixture(params=[Keys, Items], ids=["configmap", "object"])
def place(request: pytest.FixtureRequest) -> Place:
    make: Callable[[], Place] = request.param
    return make()


async def test_what_holds_is_acknowledged_once(place: Place) -> None:
    place.put()
    (said,) = await place.write()
    assert (said.phase, said.is_backed) == ("Active", True)
    assert await place.write() == []


async def test_what_is_broken_says_so(place: Place) -> None:
    place.put(owners=[])
    (said,) = await place.write()
    assert (said.phase, said.is_backed) == ("Invalid", False)


async def test_a_node_that_is_missing_is_told(place: Place) -> None:
    place.put(node="ghost")
    (said,) = await place.write()
    assert (said.phase, said.is_backed) == ("Failed", False)
    assert [reason for reason, _ in place.world.warned] == ["NodeNotFound"]
    place.world.state.node_seen(node("ghost", cpu="4"))
    (said,) = await place.write()
    assert (said.phase, said.is_backed) == ("Active", True)


async def test_a_hold_without_room_says_so_with_one_event(place: Place) -> None:
    place.put()
    await place.write()
    place.world.state.pod_seen(pod("taker", node="worker-1", cpu="64"))
    (said,) = await place.write()
    assert (said.phase, said.is_backed) == ("Active", False)
    assert await place.write() == []
    assert [reason for reason, _ in place.world.warned] == ["NotBacked"]
    place.world.state.pod_gone(name("taker"))
    (said,) = await place.write()
    assert said.is_backed
    assert len(place.world.warned) == 1


async def test_the_first_status_is_an_acknowledgement_and_lost_room_a_violation(
    place: Place,
) -> None:
    acknowledged, violated = list[Ref](), list[Ref]()
    place.world.writer.acknowledged = acknowledged.append
    place.world.writer.violated = violated.append
    place.put()
    await place.write()
    (ref,) = acknowledged
    assert place.world.state.ledger.since(ref)
    for _ in range(2):
        place.world.state.pod_seen(pod("taker", node="worker-1", cpu="64"))
        await place.write()
        place.world.state.pod_gone(name("taker"))
        await place.write()
    assert violated == [ref, ref]
    place.world.state.node_gone("worker-1")
    await place.write()
    assert (len(acknowledged), len(violated)) == (1, 2)  # A node that is gone takes no room.


async def test_what_never_had_its_room_or_is_edited_is_no_violation(place: Place) -> None:
    violated = list[Ref]()
    place.world.writer.violated = violated.append
    place.put(resources={"cpu": "65"})
    await place.write()
    place.put(generation=2)
    await place.write()
    place.put(resources={"cpu": "65"}, generation=3)
    (said,) = await place.write()
    assert (said.phase, said.is_backed) == ("Active", False)
    assert not violated


async def test_what_time_and_pods_change_is_said(place: Place) -> None:
    place.put(expiresAt="2030-03-17T17:46:50Z", slots=2, owners=[{"pod": {"name": "a"}}] * 1)
    await place.write()
    assert await place.write(later=9.9) == []
    (said,) = await place.write(later=0.1)
    assert said.phase == "Expired"


async def test_what_a_pod_claims_is_said(place: Place) -> None:
    place.put()
    await place.write()
    (seat,) = place.world.state.ledger.seats(pod("a"))
    place.world.state.pod_seen(pod("a", node="worker-1", claims=(seat,), cpu="2"))
    (said,) = await place.write()
    assert said.phase == "Claimed"


@pytest.mark.parametrize("error", [NO_ANSWER, refused(500), refused(403), refused(409)])
async def test_a_write_that_fails_is_made_later(place: Place, error: Exception) -> None:
    place.put()
    assert len(await place.write(error)) == 1
    assert place.world.writer.writes == 0
    (said,) = await place.write(later=40)
    assert said.phase == "Active"
    assert place.world.writer.writes == 1
    assert await place.write(later=1) == []


async def test_what_came_and_went_is_not_missed(place: Place) -> None:
    place.put()
    place.gone()
    assert await place.write() == []
