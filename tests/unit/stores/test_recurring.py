"""Recurring entries in both kinds of stores: status, restarts, history and cleaning."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from reserver.base.schedule import Occurrence
from reserver.errors import InvalidInput
from reserver.reservations.enums import Outcome, StoreKind
from reserver.reservations.outcome import Ending, LastStatus, ending_of
from reserver.stores.codec import spec_codec
from reserver.stores.stores import Store, Stores
from tests.builders import NOW, pod, ref
from tests.unit.stores import companions, objects
from tests.unit.stores.companions import MISSING, W1, answer, said, spec
from tests.unit.stores.test_object_cache import World, made

HOUR, DAY = 3600.0, 86400.0
# NOW is 2030-03-17, 17:46:40 UTC, or 18:46:40 in Berlin.
NIGHTS = {"cron": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Berlin"}
BEGIN = NOW + 3 * HOUR + 13 * 60 + 20
END = BEGIN + 8 * HOUR
SHOWN = [
    {"startsAt": "2030-03-17T22:00:00+01:00", "endsAt": "2030-03-18T06:00:00+01:00"},
    {"startsAt": "2030-03-18T22:00:00+01:00", "endsAt": "2030-03-19T06:00:00+01:00"},
    {"startsAt": "2030-03-19T22:00:00+01:00", "endsAt": "2030-03-20T06:00:00+01:00"},
]
OWNERS = [{"selector": {"matchLabels": {"app": "batch"}}}]


async def test_the_status_of_an_entry_follows_its_occurrences_and_a_restart_keeps_claims() -> None:
    world = companions.World()
    world.now = BEGIN
    text = spec(ttl=0, owners=OWNERS, slots=2, schedule=NIGHTS)
    world.put(web=text, version="5")
    _, create = await world.write(MISSING, answer(1))
    assert said(create, "web")["occurrences"] == SHOWN
    (seat,) = world.state.ledger.seats(pod("a", labels={"app": "batch"}))
    bound = pod("a", labels={"app": "batch"}, node="worker-1", claims=[seat], cpu="1")
    world.state.pod_seen(replace(bound, revision=7))
    (patch,) = await world.write(answer(2))
    assert said(patch, "web")["claims"] == {"uid-a": 7}
    data = create.body["data"] | patch.body["data"]
    for now, held in ((BEGIN + HOUR, 2000), (BEGIN + DAY, 4000)):
        world.now = now
        world.restart()
        world.state.node_seen(W1)
        world.list_("6", web=text)
        await world.write(answer(2, data, seen="6"), *([answer(3)] if now > END else []))
        assert world.state.ledger.held_on("worker-1").get("cpu", 0) == held


async def test_the_status_of_an_object_follows_its_occurrences() -> None:
    world = objects.World()
    world.put(made(owners=OWNERS, slots=2, schedule=NIGHTS))
    (status,) = await world.write()
    assert (status["occurrences"], status["phase"]) == (SHOWN, "Pending")
    world.state.ledger.advance(BEGIN)
    (status,) = await world.write(later=BEGIN - NOW)
    assert (status["occurrences"], status["phase"]) == (SHOWN, "Active")
    world.state.ledger.advance(END)
    (status,) = await world.write(later=END - BEGIN)
    assert status["occurrences"][:2] == SHOWN[1:]
    assert status["phase"] == "Pending"


TWO_SLOTS: dict[str, Any] = {"owners": OWNERS, "slots": 2, "schedule": NIGHTS}


async def status_with_a_claim() -> Any:
    """Return the status of an occurrence in which a pod has claimed one of two slots."""
    world = objects.World()
    world.now = BEGIN
    world.put(made(**TWO_SLOTS))
    (seat,) = world.state.ledger.seats(pod("a", labels={"app": "batch"}))
    bound = pod("a", labels={"app": "batch"}, node="worker-1", claims=[seat], cpu="1")
    world.state.pod_seen(bound)
    (status,) = await world.write()
    return status


@pytest.mark.parametrize(("later", "held"), [(HOUR, 2000), (DAY, 4000)])
async def test_a_restart_keeps_the_claims_of_the_occurrence_that_a_status_is_about(
    later: float, held: int
) -> None:
    status = await status_with_a_claim()
    again = objects.World()
    again.now = BEGIN + later
    again.put(made(**TWO_SLOTS, status=status, revision=2))
    assert again.state.ledger.held_on("worker-1")["cpu"] == held


def test_each_occurrence_is_in_the_history_and_only_the_last_is_removed() -> None:
    ended: list[Ending] = []
    world = World()
    world.store.ended = ended.append
    stores = Stores({StoreKind.OBJECT: Store(world.store, Mock(), Mock())}, StoreKind.OBJECT)
    world.state.ledger._listener = stores
    schedule = NIGHTS | {"until": "2030-03-18T22:00:00+01:00"}
    world.put(made(owners=OWNERS, schedule=schedule))
    for at in (BEGIN, END, BEGIN + DAY):
        world.now = at
        assert world.edit() is None
    assert [(one.outcome, one.since, one.at) for one in ended] == [(Outcome.EXPIRED, BEGIN, END)]
    world.now = END + DAY
    assert world.edit() is not None
    world.store.drop(("shop", "web"))
    assert [(one.outcome, one.since) for one in ended[1:]] == [(Outcome.EXPIRED, BEGIN + DAY)]


@pytest.mark.parametrize(
    ("later", "found"),
    [(HOUR, []), (DAY, [(Outcome.EXPIRED, BEGIN, END, ["uid-a"])])],
    ids=["under way", "over"],
)
async def test_an_occurrence_that_ended_without_a_reserver_is_in_the_history(
    later: float, found: list[Any]
) -> None:
    status = await status_with_a_claim()
    again, ended = objects.World(), list[Ending]()
    again.now, again.store.ended = BEGIN + later, ended.append
    again.put(made(**TWO_SLOTS, status=status, revision=2))
    assert [summed(each) for each in ended] == found
    assert {claim.pod for each in ended for claim in each.claims} <= {"shop/a"}


@pytest.mark.parametrize(
    ("later", "found"),
    [(HOUR, []), (DAY, [(Outcome.EXPIRED, BEGIN, END, ["uid-a"])])],
    ids=["under way", "over"],
)
async def test_so_is_one_of_a_configmap(later: float, found: list[Any]) -> None:
    world = companions.World()
    world.now = BEGIN
    text = spec(ttl=0, owners=OWNERS, slots=2, schedule=NIGHTS)
    world.put(web=text, version="5")
    (seat,) = world.state.ledger.seats(pod("a", labels={"app": "batch"}))
    bound = pod("a", labels={"app": "batch"}, node="worker-1", claims=[seat], cpu="1")
    world.state.pod_seen(replace(bound, revision=7))
    _, create = await world.write(MISSING, answer(1))
    world.now = BEGIN + later
    world.restart()
    ended: list[Ending] = []
    world.store.ended = ended.append
    world.list_("6", web=text)
    world.client.script.append(answer(2, create.body["data"], seen="6"))
    await world.writer.recall(world.state.ledger)
    assert [summed(each) for each in ended] == found


@pytest.mark.parametrize("phase", ["Pending", "Invalid", "Strange"])
def test_an_occurrence_that_did_not_hold_is_not(phase: str) -> None:
    reservation = spec_codec.read(
        {"owners": OWNERS, "resources": {"cpu": "1"}, "node": "w", "schedule": NIGHTS},
        ref("r"),
        NOW,
    ).at(BEGIN + DAY)
    said = LastStatus(Occurrence(BEGIN, END), "Active", ())
    assert ending_of(reservation, said, BEGIN + DAY) is not None
    assert ending_of(reservation, replace(said, phase=phase), BEGIN + DAY) is None
    clock_set_back = reservation.at(BEGIN)
    assert ending_of(clock_set_back, said, BEGIN) is None


def summed(ending: Ending) -> tuple[Outcome, float, float, list[str]]:
    return ending.outcome, ending.since, ending.at, [claim.uid for claim in ending.claims]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"schedule": {"cron": "0 22 * *", "duration": "8h"}}, "schedule.cron"),
        ({"schedule": {"cron": "0 22 * * *", "duration": "25h"}}, "schedule.duration"),
        ({"schedule": NIGHTS | {"timeZone": "Mars/Base"}}, "schedule.timeZone"),
        ({"schedule": NIGHTS | {"count": 3}}, "schedule.count: needs a start"),
        ({"schedule": NIGHTS | {"lead": "169h"}}, "schedule.lead"),
        ({"schedule": NIGHTS | {"skip": ["soon"]}}, "schedule.skip[0]"),
        ({"schedule": NIGHTS, "ttl": "1h"}, "ttl: cannot be set together with schedule"),
        ({"schedule": NIGHTS, "expiresAt": "2031-01-01T00:00:00Z"}, "expiresAt: cannot be set"),
        (
            {
                "startsAt": "2030-01-01T00:00:00Z",
                "schedule": NIGHTS | {"count": 3, "until": "2031-01-01T00:00:00Z"},
            },
            "schedule.count: cannot be set together with until",
        ),
    ],
)
def test_a_wrong_schedule_is_told_with_its_field(fields: dict[str, Any], message: str) -> None:
    document = {"owners": OWNERS, "resources": {"cpu": "1"}, "node": "w"} | fields
    with pytest.raises(InvalidInput) as refused:
        spec_codec.read(document, ref("r"), NOW)
    assert str(refused.value).startswith(message)
