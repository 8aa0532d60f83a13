"""Entries hold, broken entries are reported, ended entries are removed; in both stores."""

import dataclasses
from typing import Any

import pytest

from reserver.errors import Fault
from reserver.scheduling.bind import judge_bind
from tests.builders import NOW, pod
from tests.unit.stores.either_store import Items, Keys, World

BROKEN: dict[str, Any] = {"owners": []}


@pytest.fixture(params=[Keys, Items], ids=["configmap", "object"])
def world(request: pytest.FixtureRequest) -> World:
    made: World = request.param()
    return made


# Into the ledger.


def test_what_is_written_holds_and_what_is_removed_does_not(world: World) -> None:
    world.put("a")
    world.put("b")
    assert world.held == 4
    world.gone("b")
    assert world.held == 2
    world.gone("a")
    assert world.held == 0
    world.gone("a")
    assert world.store.entries(world.ref("a")) is None


def test_what_is_written_anew_replaces_what_was_said(world: World) -> None:
    world.put()
    world.put(revision=2, resources={"cpu": "5"})
    assert world.held == 5


def test_what_becomes_broken_holds_nothing_until_it_is_mended_and_costs_no_other(
    world: World,
) -> None:
    world.put("a")
    world.put("b")
    world.put("b", revision=2, **BROKEN)
    assert world.held == 2
    world.put("b", revision=3)
    assert world.held == 4


# Reports.


def test_a_problem_is_told_when_it_is_written_and_not_again(world: World) -> None:
    for revision in (1, 2, 3):
        world.put(revision=revision, **BROKEN)
        world.put("fine", revision=revision)
    (problem,) = world.reports
    assert problem.ref == world.ref()
    assert str(problem).startswith(f"r: {world.field}owners: is empty")
    assert [str(each) for each in world.store.problems()] == [str(problem)]
    assert [count for _, count in world.store.problem_counts()] == [1]
    world.put(revision=4)
    assert [count for _, count in world.store.problem_counts()] == [0]


def test_what_is_over_when_it_is_written_is_told(world: World) -> None:
    world.put(expiresAt="2001-01-01T00:00:00Z")
    (problem,) = world.reports
    assert str(problem).startswith(f"r: {world.field}expiresAt: lies in the past")
    assert world.held == 0


def test_what_could_not_be_judged_is_told_once_and_holds_on_until_it_is_written_anew(
    world: World,
) -> None:
    world.put()
    world.touched.clear()
    for _ in range(3):
        world.store.on_fault(world.ref(), Fault("", "went wrong", "report it"))
    assert [str(problem) for problem in world.reports] == ["r: went wrong; report it"]
    assert world.touched == [world.ref()]
    assert world.held == 2
    world.put(revision=2, slots=2)
    assert list(world.store.problems()) == []
    assert world.held == 4


# Bindings that are seen before the entries that they end, and after them.


@dataclasses.dataclass(frozen=True)
class Ended:
    says: str
    binding: int  # the resourceVersion that shows the owner bound
    writes: tuple[tuple[int, bool], ...]  # of the store: resourceVersion, seen by a list
    held: int  # CPUs, in the end
    listed: bool = False  # the pod, by a list


@pytest.mark.parametrize(
    "case",
    [
        Ended("written before", 20, ((10, False),), 0),
        Ended("written after, for the next pod of that name", 20, ((30, False),), 2),
        Ended("written before, says a list", 20, ((10, True),), 0),
        Ended("perhaps before, perhaps after", 20, ((30, True),), 2),
        Ended("certainly after: what stood before was known", 20, ((25, False), (30, True)), 2),
        Ended(
            "before the pod was listed, bound perhaps before that",
            20,
            ((10, False),),
            2,
            listed=True,
        ),
    ],
    ids=lambda case: case.says,
)
def test_an_owner_that_was_bound_before_it_is_seen_ends_only_what_it_can_have_meant(
    world: World, case: Ended
) -> None:
    owner = pod("owner", cpu="2")
    world.state.pod_seen(owner)
    bound = dataclasses.replace(owner, node="worker-1", revision=case.binding)
    world.state.pod_seen(bound, listed=case.listed)
    *before, (last, listed) = case.writes
    for revision, seen_by_list in before:
        world.gone("r", revision=revision, listed=seen_by_list)
    world.put(revision=last, listed=listed)
    assert world.held == case.held
    world.state.pod_gone(owner.name)
    assert world.held == case.held


@pytest.mark.parametrize(
    ("revision", "binding", "left"), [(10, 20, 0), (30, 20, 2)], ids=["before", "after"]
)
def test_what_is_written_after_a_binding_that_is_seen_late_is_not_ended_by_it(
    world: World, revision: int, binding: int, left: int
) -> None:
    owner = pod("owner", cpu="2")
    world.state.pod_seen(owner)
    world.put(revision=revision)
    world.state.pod_seen(dataclasses.replace(owner, node="worker-1", revision=binding))
    assert world.held == left


def test_what_an_owner_that_is_gone_had_ended_is_not_held_when_it_becomes_known(
    world: World,
) -> None:
    owner = pod("owner", cpu="2")
    world.state.pod_seen(dataclasses.replace(owner, node="worker-1", revision=20))
    world.state.pod_gone(owner.name)
    world.put(revision=10)
    assert world.held == 0
    assert world.is_to_go()


# Edits for the cleaner.


def test_nothing_is_removed_while_nothing_is_over(world: World) -> None:
    world.put()
    world.put("broken", **BROKEN)
    assert not world.is_to_go()
    assert not world.is_to_go("broken")
    assert not world.is_to_go("nothing")


def test_what_expired_is_removed(world: World) -> None:
    world.put(expiresAt="2030-03-17T17:46:50Z")
    world.put("other")
    assert not world.is_to_go(later=9.9)
    assert world.is_to_go(later=10)
    assert not world.is_to_go("other", later=10)


def test_what_was_claimed_by_a_bound_pod_is_removed(world: World) -> None:
    world.put()
    world.state.pod_seen(pod("owner", node="worker-1", cpu="2"))
    assert world.is_to_go()


def test_what_is_claimed_by_a_binding_under_way_is_removed_only_once_that_is_written(
    world: World,
) -> None:
    world.put()
    owner = pod("owner", cpu="2")
    world.state.pod_seen(owner)
    claims = judge_bind(owner, "worker-1", world.state, NOW).claims
    assert claims
    world.state.assume(owner, "worker-1", claims)
    assert world.held == 0
    assert not world.is_to_go()  # The binding may still fail, and then the seat is needed.
    world.state.confirm(owner.uid)
    world.state.pod_seen(pod("owner", node="worker-1", cpu="2"))
    assert world.is_to_go()


def test_a_reservation_with_slots_left_is_not_removed(world: World) -> None:
    world.put(slots=2)
    world.state.pod_seen(pod("owner", node="worker-1", cpu="2"))
    assert world.held == 2
    assert not world.is_to_go()
