"""Reservations that are created as a set: all of them hold, or none."""

import asyncio
from typing import Any

from reserver.errors import ApiError, NotReady, Taken
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.stores.edits import Deletion
from reserver.stores.object.edits import Abandonment
from tests.builders import NOW, pod
from tests.unit.k8s.fakes import NO_ANSWER, refused
from tests.unit.stores.desks import HOME, ItemDesk, item
from tests.unit.stores.object_writer.desk import Make, ref
from tests.waiting import until


def first_of(set_id: str, key: str = "a", version: int = 1, says: str = "2") -> dict[str, Any]:
    annotations = {"reserver.io/unfinished-set": says}
    return item(key, version, labels={"reserver.io/set": set_id}, annotations=annotations)


def member_of(set_id: str, key: str = "b", version: int = 1) -> dict[str, Any]:
    return item(key, version, labels={"reserver.io/set": set_id})


async def test_a_set_is_unfinished_until_all_of_it_is_written(desk: Make) -> None:
    made: ItemDesk = desk(item("a"), item("b"), lambda: first_of(made.set_id), item("a"))
    task = made.insert("a", "b")
    assert made.held == 2
    assert await task is None
    bodies = [request.body for request in made.client.requests if request.verb == "create"]
    labels = [body["metadata"]["labels"] for body in bodies]
    assert labels[0] == labels[1]
    annotated = [body["metadata"].get("annotations") for body in bodies]
    assert annotated == [{"reserver.io/unfinished-set": "2"}, None]
    assert made.client.requests[-1].body[-1] == {
        "op": "remove",
        "path": "/metadata/annotations/reserver.io~1unfinished-set",
    }


async def test_a_set_of_which_one_is_refused_is_taken_back(desk: Make) -> None:
    made = desk(item("a"), refused(403))
    task = made.insert("a", "b")
    await until(lambda: made.store.is_unfinished(ref("a")))
    made.show(first_of(made.set_id))
    assert isinstance(made.due("a"), Abandonment)
    made.show(first_of(made.set_id, version=2, says="abandoned"))
    deletion = made.due("a")
    assert isinstance(deletion, Deletion)
    assert deletion.reason == "Unfinished"
    assert made.store.is_unfinished(ref("a"))
    assert not task.done()
    made.gone("a")
    assert isinstance(await task, ApiError)
    assert made.held == 0
    assert not made.store.is_unfinished(ref("a"))


async def test_a_set_of_which_the_first_is_refused_leaves_nothing(desk: Make) -> None:
    made = desk(refused(409))
    assert isinstance(await made.insert("a", "b"), Taken)
    assert made.held == 0
    assert len(made.client.requests) == 1


async def test_a_set_whose_first_is_deleted_meanwhile_is_taken_back(desk: Make) -> None:
    made = desk(item("a"), item("b"), refused(404))
    task = made.insert("a", "b")
    await until(lambda: made.store.is_unfinished(ref("a")))
    made.gone("a")
    made.show(member_of(made.set_id))
    await until(lambda: made.due("b") is not None)
    made.gone("b")
    assert isinstance(await task, NotReady)
    assert made.held == 0


async def test_a_set_whose_end_was_written_without_an_answer_stands(desk: Make) -> None:
    def begun() -> dict[str, Any]:
        return first_of(made.set_id)

    def ended() -> dict[str, Any]:
        return member_of(made.set_id, "a")

    made = desk(item("a"), item("b"), begun, NO_ANSWER, ended)
    assert await made.insert("a", "b") is None
    assert [request.verb for request in made.client.requests[2:]] == ["get", "patch", "get"]


def test_whoever_starts_takes_back_what_nobody_finishes_the_first_last() -> None:
    made = ItemDesk(asyncio.TaskGroup())
    made.show(first_of("x"), member_of("x"), member_of("y", "c"), item("d"))
    assert made.store.abandon_unfinished() == (f"{HOME}/x",)
    assert made.store.is_unfinished(ref("a"))
    assert isinstance(made.due("a"), Abandonment)
    assert [made.due(key) is not None for key in "bcd"] == [False, False, False]
    made.touched.clear()
    made.show(first_of("x", version=2, says="abandoned"))
    assert ref("b") in made.touched
    assert [made.due(key) is not None for key in "abcd"] == [False, True, False, False]
    made.touched.clear()
    made.gone("b")
    assert ref("a") in made.touched
    assert made.due("a") is not None
    made.gone("a")
    made.show(member_of("x", "e"))  # Written by a request that was still under way.
    assert made.due("e") is not None
    assert made.due("c") is None


def test_a_set_that_is_finished_after_all_is_left_alone() -> None:
    """The writer of the set still runs next to the Reserver that has just started."""
    made = ItemDesk(asyncio.TaskGroup())
    made.show(first_of("x"))
    made.store.abandon_unfinished()
    made.show(member_of("x", "b", 2), member_of("x", "c", 3))
    assert made.due("b") is None
    made.show(member_of("x", "a", 4))
    assert [made.due(key) for key in "abc"] == [None, None, None]
    assert not any(map(made.store.is_unfinished, map(ref, "abc")))
    made.gone("a")
    assert made.due("b") is None


def test_what_says_that_it_leads_a_set_and_is_of_none_costs_the_others_nothing() -> None:
    """A tenant who wrote that had all Reservations without a set deleted by the next to start."""
    made = ItemDesk(asyncio.TaskGroup())
    lead = item("x", annotations={"reserver.io/unfinished-set": "2"})
    lead["metadata"]["namespace"] = "shop"
    made.show(lead, item("a"), item("b"))
    assert made.store.abandon_unfinished() == ()
    assert [made.due(key) for key in "ab"] == [None, None]
    assert not made.store.is_unfinished(ref("a"))


def test_sets_that_somebody_else_abandons_leave_nothing_behind() -> None:
    made = ItemDesk(asyncio.TaskGroup())
    for number in range(100):
        made.show(first_of(f"x{number}", says="abandoned"), member_of(f"x{number}"))
        made.gone("b", "a")
    assert not any(vars(made.store._sets)[part] for part in ("_of", "_members", "_abandoned"))


async def test_a_set_that_another_reserver_has_taken_back_is_not_finished(desk: Make) -> None:
    made: ItemDesk = desk(item("a"), item("b"), lambda: first_of(made.set_id, says="abandoned"))
    task = made.insert("a", "b")
    await until(lambda: made.store.is_unfinished(ref("a")))
    made.show(first_of(made.set_id, says="abandoned"), member_of(made.set_id))
    assert made.due("b") is not None
    made.gone("b", "a")
    assert isinstance(await task, NotReady)
    assert [request.verb for request in made.client.requests] == ["create", "create", "get"]


async def test_a_set_whose_end_is_refused_after_a_request_without_an_answer_may_stand(
    desk: Make,
) -> None:
    def begun() -> dict[str, Any]:
        return first_of(made.set_id)

    made: ItemDesk = desk(item("a"), item("b"), begun, NO_ANSWER, begun, refused(403))
    task = made.insert("a", "b")
    await until(lambda: made.store.is_unfinished(ref("a")))
    made.show(first_of(made.set_id), member_of(made.set_id))
    assert isinstance(made.due("a"), Abandonment)
    assert made.due("b") is None
    made.show(member_of(made.set_id, "a", version=3))
    assert await task is None
    assert [made.due(key) for key in "ab"] == [None, None]


def test_who_may_write_elsewhere_has_no_set_of_this_namespace_deleted() -> None:
    made = ItemDesk(asyncio.TaskGroup())
    lead = first_of("x")
    lead["metadata"]["namespace"] = "shop"
    made.show(lead, member_of("x"))
    assert made.store.abandon_unfinished() == ("shop/x",)
    assert made.due("b") is None
    assert made.store.due_edit(Ref.of_object("shop", "a"), NOW) is not None


def test_the_first_of_a_set_outlives_its_claim_until_the_set_is_whole() -> None:
    made = ItemDesk(asyncio.TaskGroup())
    made.show(first_of("x"))
    (seat,) = [reservation for reservation, _ in made.state.ledger]
    made.state.pod_seen(pod("owner-a", node="worker-1", claims=[seat], cpu="1"))
    assert made.state.ledger.phase(seat.ref) is Phase.CLAIMED
    assert made.due("a") is None
    made.touched.clear()
    made.show(member_of("x", "a", version=2))
    assert ref("a") in made.touched
    assert made.due("a") is not None
