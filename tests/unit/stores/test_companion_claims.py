"""Claims in the companion of a ConfigMap, and their recovery at a start."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.k8s.objects.times import show_moment
from reserver.reservations.reservation import Written
from reserver.stores.configmap.companion import REREAD_EVERY_S
from reserver.stores.configmap.companion_codec import SEEN
from tests.builders import pod
from tests.unit.stores.companions import MISSING, W1, World, answer, said, spec, written


def bound(name: str, revision: int) -> Pod:
    return replace(pod(name, node="worker-1", cpu="1"), revision=revision)


async def test_claims_are_recorded_and_outlive_a_restart() -> None:
    owners = [{"pod": {"name": name}} for name in "abc"]
    world, data = await written(web=spec(slots=3, owners=owners))
    (web,) = world.state.ledger.seats(pod("a"))
    for name, revision in (("a", 7), ("b", 9)):
        world.state.pod_seen(replace(bound(name, revision), claims=frozenset({web.identity})))
    (patch,) = await world.write(answer(2))
    assert said(patch, "web")["claims"] == {"uid-a": 7, "uid-b": 9}
    data |= patch.body["data"]
    world.restart()
    world.state.node_seen(W1)
    world.put(web=spec(slots=3, owners=owners), version="6")
    assert world.state.ledger.held_on("worker-1")["cpu"] == 6000
    await world.write(answer(2, data), answer(3))
    assert world.state.ledger.held_on("worker-1")["cpu"] == 2000


async def test_claims_are_recalled_from_a_store_that_was_written_after_them() -> None:
    web = spec(slots=2, resources={"cpu": "1"}, owners=[{"pod": {"name": n}} for n in "ab"])
    world = World()
    world.put(web=web, version="5")
    _, create = await world.write(MISSING, answer(1))
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.pod_seen(replace(bound("a", 7), claims=frozenset({seat.identity})))
    (recorded,) = await world.write(answer(2))
    assert recorded.body["metadata"]["annotations"] == {SEEN: "5"}
    world.put(web=web, version="19")  # Only its metadata.
    (noted,) = await world.write(answer(3))
    assert noted.body == {"metadata": {"resourceVersion": "2", "annotations": {SEEN: "19"}}} | {
        "data": {}
    }
    world.put(web=web, other=spec(node="worker-2"), version="20")
    (last,) = await world.write(answer(4))
    assert last.body["metadata"]["annotations"] == {SEEN: "20"}
    assert await world.write() == []
    data = create.body["data"] | recorded.body["data"] | last.body["data"]
    world.restart()
    world.state.node_seen(W1)
    world.list_("20", web=web, other=spec(node="worker-2"))
    await world.write(answer(4, data, seen="20"))
    assert world.state.ledger.held_on("worker-1")["cpu"] == 1000


@pytest.mark.parametrize("first", [0, 20], ids=["written before", "written anew since"])
async def test_claims_that_may_be_of_what_stood_there_before_wait_for_the_history(
    first: int,
) -> None:
    web = spec(slots=2, resources={"cpu": "1"}, owners=[{"pod": {"name": n}} for n in "ab"])
    world, data = await written(web=web)
    (seat,) = world.state.ledger.seats(pod("a"))
    world.state.pod_seen(replace(bound("a", 7), claims=frozenset({seat.identity})))
    (recorded,) = await world.write(answer(2))
    world.restart()
    world.state.node_seen(W1)
    world.list_("21", web=web)
    await world.write(answer(2, data | recorded.body["data"], seen="9"))
    ledger = world.state.ledger
    assert (ledger.held_on("worker-1")["cpu"], ledger.past.unsure_since()) == (2000, 9)
    assert await world.write() == []  # Neither forgotten, nor said to be of what stands there.
    ledger.past.narrow(seat.ref, seat.identity, Written(first, first or 8))
    assert (ledger.held_on("worker-1")["cpu"], ledger.past.unsure_since()) == (
        2000 if first else 1000,
        None,
    )
    (last,) = await world.write(answer(3))
    if first:
        assert "claims" not in said(last, "web")
    else:
        assert last.body["metadata"]["annotations"] == {SEEN: "21"}


async def test_claims_of_which_no_history_tells_are_given_up() -> None:
    web = spec(slots=2, resources={"cpu": "1"}, owners=[{"pod": {"name": n}} for n in "ab"])
    world, data = await written(web=web)
    data["web"] = data["web"][:-1] + ',"claims":{"uid-a":7}}'
    world.restart()
    world.state.node_seen(W1)
    world.list_("21", web=web)
    await world.write(answer(2, data))
    world.state.ledger.past.end()
    (patch,) = await world.write(answer(3))
    assert "claims" not in said(patch, "web")
    # Another client writes the claims back.
    _, patch = await world.write(answer(9, data), answer(10), later=REREAD_EVERY_S + 1)
    assert "claims" not in said(patch, "web")
    assert world.state.ledger.past.unsure_since() is None


@pytest.mark.parametrize("claims", ['["u"]', '{"u":"7"}', "7", '{"u":-1}', '{"u":1e99}', "{}"])
async def test_records_that_somebody_has_spoilt_count_for_nothing(claims: str) -> None:
    world, data = await written(web=spec(slots=3))
    data["web"] = data["web"][:-1] + f',"claims":{claims}' + "}"
    world.restart()
    world.state.node_seen(W1)
    world.put(web=spec(slots=3), version="6")
    await world.write(answer(2, data), answer(3))
    assert world.state.ledger.held_on("worker-1")["cpu"] == 6000


async def test_since_when_it_is_idle_is_recorded_and_outlives_a_restart() -> None:
    idle = spec(owners=[{"selector": {"matchLabels": {"a": "b"}}}], releaseIfIdle="10m")
    world = World()
    world.state.ledger.past.end()
    world.state.ledger.advance(world.now)
    world.put(web=idle)
    _, create = await world.write(MISSING, answer(1))
    reported = said(create, "web")["idleSince"]
    assert reported == "2030-03-17T17:46:40Z"
    world.restart()
    world.state.node_seen(W1)
    world.now += 599
    world.state.ledger.advance(world.now)
    world.put(web=idle)
    world.client.script.append(answer(1, create.body["data"]))
    await world.writer.recall(world.state.ledger)
    world.state.ledger.past.end()
    (web,) = (each.ref for each, _ in world.state.ledger)
    world.state.ledger.advance(world.now)
    assert show_moment(world.state.ledger.idle_since(web)) == reported
    world.state.ledger.advance(world.now + 1)
    (patch,) = await world.write(answer(2))
    assert (said(patch, "web")["phase"], said(patch, "web")["idleSince"]) == ("Expired", reported)
