"""Two pods change places on full nodes, through a third one: a move follows another."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from reserver.moves.controller import LOOK_AGAIN_S
from reserver.moves.model import MOST_IN_A_ROW
from tests.unit.k8s.crashes import crash_at_each_write, done_or_not
from tests.unit.moves.api_server import MOVES, PODS, SEATS
from tests.unit.moves.world import World

GROUP = {"name": "swap", "size": 1}


class Swap(World):
    """Pods web and db fill a node each, and change places."""

    def __init__(self) -> None:
        super().__init__(nodes=3, cpu="4")
        self.others = ("db",)
        self.make_pod("worker-2", of="db")

    def write(self, **aside: Any) -> None:
        """Write the PodMoves of a round."""
        uids = {name: self.pods(name)[0]["metadata"]["uid"] for name in ("web", "db")}
        common = {"group": GROUP}
        aside = {"to": {"node": "worker-3"}, **common, **aside}
        self.move({"name": "web-0", "uid": uids["web"]}, "swap-0", **aside)
        there = {"to": {"node": "worker-1"}, **common}
        self.move({"name": "db-1", "uid": uids["db"]}, "swap-1", **there)
        home = {"to": {"node": "worker-2"}, **common}
        self.move({"name": "web-0", "after": "swap-0"}, "swap-2", **home)

    def ends(self) -> list[tuple[str, str]]:
        statuses = (self.status_of(f"swap-{number}") for number in range(3))
        return [(each["phase"], each["reason"]) for each in statuses]


@pytest.fixture
async def world() -> Swap:
    made = Swap()
    await made.start()
    return made


async def test_two_pods_change_places(world: Swap) -> None:
    world.write()
    await world.settle()
    assert world.ends() == [("Succeeded", "Landed")] * 3
    assert (world.nodes_of("web"), world.nodes_of("db")) == (["worker-2"], ["worker-1"])
    last = world.status_of("swap-2")
    came = world.status_of("swap-0")["replacement"]
    assert (last["pod"], last["podUID"], last["from"]) == (came["name"], came["uid"], "worker-3")
    assert world.evictions == ["web-0", "db-1", came["name"]]


async def test_nobody_leaves_the_room_of_a_second_step_before_it_is_held(world: Swap) -> None:
    world.write()
    world.schedules = False
    await world.rounds(8)
    assert world.status_of("swap-0")["phase"] == "Landing"
    between, last = world.status_of("swap-1"), world.status_of("swap-2")
    assert (between["phase"], between["reason"]) == ("Evicting", "WaitsForGroup")
    assert "shop/swap-2 of its group has no seat yet" in between["message"]
    assert (last["phase"], last["reason"]) == ("Pending", "WaitsForMove")
    assert "swap-0, which brings the pod" in last["message"]
    world.schedules = True
    await world.settle()
    assert world.ends() == [("Succeeded", "Landed")] * 3


async def begun(**aside: Any) -> Swap:
    """Return the world of a round that has just written its moves."""
    world = Swap()
    await world.start()
    world.write(**aside)
    return world


@done_or_not
async def test_reserver_is_killed_at_every_write_of_a_swap_in_turn(*, is_done: bool) -> None:
    def judge(world: Swap) -> None:
        assert world.ends() == [("Succeeded", "Landed")] * 3
        assert (world.nodes_of("web"), world.nodes_of("db")) == (["worker-2"], ["worker-1"])

    assert await crash_at_each_write(begun, judge, is_done=is_done) >= 24


@done_or_not
async def test_whenever_reserver_is_killed_a_swap_whose_first_step_fails_moves_nothing(
    *, is_done: bool
) -> None:
    def judge(world: Swap) -> None:
        assert world.ends() == [
            ("Failed", "PlanOutdated"),
            ("Failed", "GroupFailed"),
            ("Aborted", "NothingToFollow"),
        ]
        assert (world.nodes_of("web"), world.nodes_of("db")) == (["worker-1"], ["worker-2"])
        assert not world.evictions

    nowhere = partial(begun, to={"node": "worker-9"})
    assert await crash_at_each_write(nowhere, judge, is_done=is_done) >= 4


ENDS = {
    "it is called off": ("there is no PodMove swap-0 in the namespace shop", "delete"),
    "it has no time": ("the PodMove swap-0 has failed (DeadlineExceeded)", "late"),
    "its controller has all the pods that it wants": (
        "the PodMove swap-0 has succeeded (NotReplaced), and brought no pod",
        "scale",
    ),
}


@pytest.mark.parametrize(("says", "how"), ENDS.values(), ids=ENDS)
async def test_a_second_step_is_dropped_with_the_first(world: Swap, says: str, how: str) -> None:
    world.write(**({"timeout": "1s"} if how == "late" else {}))
    world.schedules = False
    await world.rounds(3 if how == "late" else 8)
    if how == "delete":
        world.api.remove(f"{MOVES}/swap-0")
        for seat in world.api.of(SEATS):  # As the garbage collector does.
            if seat["metadata"]["name"].startswith("swap-0"):
                world.api.remove(f"{SEATS}/{seat['metadata']['name']}")
    elif how == "scale":
        world.replicas = 0
    world.schedules = True
    world.api.now += 30
    await world.settle()
    last = world.status_of("swap-2")
    assert (last["phase"], last["reason"]) == ("Aborted", "NothingToFollow")
    assert last["message"] == says
    assert world.status_of("swap-1")["reason"] == "GroupFailed"
    assert world.nodes_of("db") == ["worker-2"]


async def test_what_follows_in_a_circle_or_itself_ends_at_once(world: Swap) -> None:
    for name, after in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "d")):
        world.move({"name": "web-0", "after": after}, name)
    await world.settle(rounds=5)
    for name in "abcd":
        status = world.status_of(name)
        assert (status["phase"], status["reason"]) == ("Aborted", "NothingToFollow"), name
    assert "or they form a cycle" in world.status_of("d")["message"]


async def test_so_many_may_follow_each_other_and_no_more(world: Swap) -> None:
    names = [f"m{number}" for number in range(MOST_IN_A_ROW + 1)]
    world.move("web-0", names[0], paused=True)
    for after, name in pairwise(names):
        world.move({"name": "web-0", "after": after}, name)
    await world.rounds(3)
    assert [world.status_of(name)["reason"] for name in names] == [
        "Paused",
        *["WaitsForMove"] * (MOST_IN_A_ROW - 1),
        "NothingToFollow",
    ]


async def test_of_two_that_follow_one_move_the_older_one_has_its_pod(world: Swap) -> None:
    world.move("web-0", "first", to={"node": "worker-3"})
    world.others = ()
    world.api.remove(f"{PODS}/db-1")
    world.move({"name": "web-0", "after": "first"}, "older", to={"node": "worker-2"})
    world.api.now += 1
    world.move({"name": "web-0", "after": "first"}, "younger", to={"node": "worker-1"})
    await world.settle()
    assert world.status_of("older")["reason"] == "Landed"
    younger = world.status_of("younger")
    assert (younger["phase"], younger["reason"]) == ("Aborted", "MovedAlready")
    assert world.nodes_of("web") == ["worker-2"]


async def test_a_move_that_is_written_after_its_follower_is_waited_for(world: Swap) -> None:
    world.move({"name": "web-0", "after": "first"}, "second", to={"nodeSelector": {}})
    await world.rounds(3)
    status = world.status_of("second")
    assert (status["phase"], status["reason"]) == ("Pending", "WaitsForMove")
    world.move("web-0", "first", to={"node": "worker-3"}, ttlSecondsAfterFinished=0)
    await world.rounds(30, LOOK_AGAIN_S)
    assert f"{MOVES}/first" not in world.api.objects
    assert world.status_of("second")["reason"] == "Landed"


async def test_one_of_another_pod_is_not_followed(world: Swap) -> None:
    world.move("db-1", "first", to={"node": "worker-3"})
    world.move({"name": "web-0", "after": "first"}, "second")
    await world.settle()
    status = world.status_of("second")
    assert (status["phase"], status["reason"]) == ("Aborted", "NothingToFollow")
    assert status["message"] == "the PodMove first moves the pod db-1, and not web-0"


async def test_one_that_cannot_be_read_is_not_followed(world: Swap) -> None:
    world.move("web-0", "first", timeout="never")
    world.move({"name": "web-0", "after": "first"}, "second")
    await world.settle()
    assert "the PodMove first: spec.timeout" in world.status_of("second")["message"]
    assert world.status_of("second")["phase"] == "Aborted"


async def test_the_time_of_a_second_step_begins_when_its_pod_has_come(world: Swap) -> None:
    world.move("web-0", "first", to={"node": "worker-3"})
    second = {"name": "web-0", "after": "first"}
    world.move(second, "second", to={"node": "worker-2"}, timeout="60s")
    world.schedules = False
    await world.rounds(3, 100)
    assert world.status_of("second")["phase"] == "Pending"
    world.schedules = True
    await world.rounds(5)
    assert world.status_of("second")["phase"] == "Reserving"
    world.api.now += 61
    await world.round()
    assert world.status_of("second")["reason"] == "DeadlineExceeded"
    assert world.nodes_of("web") == ["worker-3"]
