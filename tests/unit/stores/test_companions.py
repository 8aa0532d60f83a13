"""The companions of ConfigMaps: created, corrected and written for the version that was seen."""

import pytest
from structlog.testing import capture_logs

from reserver.base.pacer import outcome
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.stores.configmap import companion_codec
from reserver.stores.configmap.companion import REREAD_EVERY_S
from tests.unit.k8s.fakes import refused
from tests.unit.stores.companions import (
    COLLECTION,
    MISSING,
    PATH,
    W1,
    World,
    answer,
    said,
    spec,
    written,
)


async def test_a_companion_that_is_missing_is_made() -> None:
    world = World()
    world.put(web=spec(), broken="{")
    get, create = await world.write(MISSING, answer(1))
    assert (get.verb, get.path) == ("get", PATH)
    assert (create.verb, create.path) == ("create", COLLECTION)
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert create.body["metadata"]["labels"] == {companion_codec.LABEL: "store"}
    digest = next(iter(world.state.ledger))[0].digest
    expected = {"phase": "Active", "backed": True, "digest": digest, "message": ""}
    assert said(create, "web") == expected
    assert said(create, "broken")["phase"] == "Invalid"
    assert world.writer.writes == 1


async def test_nothing_is_made_for_a_store_that_says_nothing() -> None:
    world = World()
    world.put()
    assert len(await world.write(MISSING)) == 1
    assert await world.write() == []


async def test_nothing_is_written_of_a_store_that_is_only_partly_taken() -> None:
    world, _ = await written(web=spec())
    data = {key: spec() for key in ("web", "api", "db")}
    new = ConfigMapObject(metadata=Metadata("store", "shop", "uid-1", "2"), data=data)
    steps = world.store.put(new)
    while "db" not in world.store.keys(("shop", "store")):
        next(steps)
        assert await world.write() == []
    outcome(steps)
    (patch,) = await world.write(answer(2))
    assert set(patch.body["data"]) == {"api", "db"}


async def test_what_went_while_reserver_was_away_is_said_no_more() -> None:
    world = World()
    world.put()
    _, patch = await world.write(answer(1, {"gone": "{}"}), answer(2))
    assert patch.body["data"] == {"gone": None}


async def test_nothing_is_asked_while_nothing_changes() -> None:
    world, _ = await written(web=spec())
    assert await world.write() == []
    world.put(web=spec() + " ")
    assert await world.write() == []


async def test_what_comes_changes_and_goes_is_written_for_the_version_that_was_seen() -> None:
    world, _ = await written(web=spec(), api=spec(), same=spec())
    world.put(web=spec(resources={"cpu": "1"}), same=spec(), new=spec(node="ghost"))
    (patch,) = await world.write(answer(2))
    assert (patch.verb, patch.path) == ("patch", PATH)
    assert patch.body["metadata"] == {"resourceVersion": "1"}
    assert patch.body["data"].keys() == {"web", "api", "new"}
    assert patch.body["data"]["api"] is None
    assert "'ghost' does not exist" in said(patch, "new")["message"]
    world.put(same=spec())
    (patch,) = await world.write(answer(3))
    assert patch.body == {
        "metadata": {"resourceVersion": "2"},
        "data": {"web": None, "new": None},
    }


async def test_after_a_restart_only_what_differs_is_written() -> None:
    world, data = await written(web=spec(), api=spec())
    world.restart()
    world.state.node_seen(W1)
    world.put(web=spec(), api=spec(resources={"cpu": "1"}))
    get, patch = await world.write(answer(7, data | {"gone": "{}"}), answer(8))
    assert get.verb == "get"
    assert patch.body["metadata"] == {"resourceVersion": "7"}
    assert patch.body["data"].keys() == {"api", "gone"}
    assert patch.body["data"]["gone"] is None


# Two reservers, people, and Kubernetes itself.


@pytest.mark.parametrize("status", [404, 409])
async def test_a_write_that_somebody_forestalled_is_made_anew_for_what_is_there(
    status: int,
) -> None:
    world, data = await written(web=spec())
    world.put(web=spec(), api=spec(), new=spec())
    with capture_logs() as logs:
        assert len(await world.write(refused(status))) == 1
        _, again = await world.write(answer(5, data | {"api": "{}"}), answer(6))
    assert again.body["metadata"] == {"resourceVersion": "5"}
    assert again.body["data"].keys() == {"api", "new"}
    assert logs == []


async def test_a_companion_that_somebody_made_first_is_taken_as_it_is() -> None:
    _, data = await written(web=spec())
    other = World()
    other.put(web=spec())
    assert len(await other.write(MISSING, refused(409))) == 2
    assert len(await other.write(answer(1, data))) == 1
    assert other.writer.writes == 0


async def test_a_companion_that_was_edited_or_deleted_is_mended_within_a_minute() -> None:
    world, data = await written(web=spec())
    assert len(await world.write(answer(1, data), later=REREAD_EVERY_S)) == 1
    _, patch = await world.write(answer(9, {"web": "Active"}), answer(10), later=REREAD_EVERY_S)
    assert patch.body["data"] == data
    _, create = await world.write(MISSING, answer(11), later=REREAD_EVERY_S)
    assert create.body["data"] == data


async def test_a_configmap_that_is_no_companion_of_the_store_is_left_alone() -> None:
    world = World()
    world.put(web=spec())
    with capture_logs() as logs:
        (get,) = await world.write(answer(1, uid="uid-other"))
        await world.write(answer(1, uid="uid-other"), later=30)
    assert get.verb == "get"
    assert [log["event"] for log in logs] == ["status cannot be written, retrying"]
    assert "belongs to something else" in logs[0]["why"]


async def test_what_is_no_companion_is_forgotten_with_its_store() -> None:
    world = World()
    world.put(web=spec())
    await world.write(answer(1, uid="uid-other"))
    outcome(world.store.drop(("shop", "store")))
    await world.write(answer(1, uid="uid-other"), later=30)
    assert await world.write(later=30) == []


async def test_a_store_made_anew_gets_a_companion_of_its_own() -> None:
    world, data = await written(web=spec())
    world.put(uid="uid-2", web=spec(), api=spec())
    await world.write(answer(1, data))  # Of the former store: Kubernetes is about to delete it.
    _, create = await world.write(MISSING, answer(2), later=30)
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "uid-2"
    assert create.body["data"].keys() == {"web", "api"}


async def test_the_companion_of_a_configmap_that_is_no_store_any_more_says_nothing() -> None:
    world, _ = await written(web=spec())
    outcome(world.store.drop(("shop", "store")))
    (patch,) = await world.write(answer(2))
    assert patch.body["data"] == {"web": None}
    assert await world.write(later=REREAD_EVERY_S) == []


async def test_the_companion_of_a_store_that_is_gone_is_forgotten() -> None:
    world, _ = await written(web=spec())
    outcome(world.store.drop(("shop", "store")))
    assert len(await world.write(MISSING)) == 1
    assert len(await world.write(MISSING)) == 1
    assert await world.write(later=REREAD_EVERY_S) == []
