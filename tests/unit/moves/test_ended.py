"""Ended PodMoves count in their groups, and cost others nothing however many there are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.base.pacer import Pacer
from reserver.cluster.pod import PodName
from reserver.k8s.objects.objects import decode, encode
from reserver.moves.arbitration import Ruling, arbitrate
from reserver.moves.arbitration_loop import ArbitrationLoop
from reserver.moves.groups import Contender
from reserver.moves.index import MOST_ENDED, MoveIndex
from reserver.moves.model import GroupMember, MoveGroup
from reserver.moves.phases import ENDED, MovePhase, MoveReason
from reserver.moves.podmove import MoveObject
from reserver.moves.workloads import Workloads
from tests.builders import state_of
from tests.steps import lines
from tests.unit.k8s.fakes import ScriptedClient
from tests.unit.moves.build import NOW, metadata
from tests.unit.moves.test_groups import ANY, contender, ruled


def shown(
    name: str,
    phase: str = "",
    group: tuple[str, int] | None = ("g", 2),
    space: str = "shop",
    *,
    across: bool = False,
    revision: int = 1,
) -> MoveObject:
    """Return a PodMove as a watch shows it."""
    spec: dict[str, object] = {"pod": {"name": name, "uid": f"pod-{space}-{name}"}}
    if group is not None:
        spec["group"] = {"name": group[0], "size": group[1], "acrossNamespaces": across}
    item: dict[str, object] = {"metadata": metadata(space, name, revision), "spec": spec}
    if phase:
        item["status"] = {"phase": phase, "reason": "WaitsForTurn", "message": "m"}
    return decode(MoveObject, encode(item))


class World:
    """PodMoves as they were last seen, and their rulings."""

    def __init__(self, *moves: MoveObject) -> None:
        state = state_of()
        self.moves = MoveIndex(lambda _: None)
        workloads = Workloads(ScriptedClient(), state.pods)
        self.loop = ArbitrationLoop(lambda: NOW, self.moves, state, workloads, lambda _: None)
        for each in moves:
            self.moves.put(each)

    async def ruled(self, name: str = "open", space: str = "shop") -> Ruling:
        await self.loop.look(Pacer())
        ruling = self.loop.of(PodName(space, name))
        assert ruling is not None
        return ruling


OPEN = shown("open", "Evicting")

MEMBERS = {
    "has moved": (shown("m", "Succeeded"), True, ""),
    "has failed": (shown("m", "Failed"), False, "shop/m"),
    "was aborted": (shown("m", "Aborted"), True, ""),
    "has moved in another group": (shown("m", "Succeeded", ("h", 2)), False, ""),
    "has failed in another group": (shown("m", "Failed", ("h", 2)), False, ""),
    "has moved alone": (shown("m", "Succeeded", None), False, ""),
    "has moved in another namespace": (shown("m", "Succeeded", space="blog"), False, ""),
    "says that it is listed": (shown("m", "Succeeded", across=True), False, ""),
}


@pytest.mark.parametrize(("member", "may", "failed"), MEMBERS.values(), ids=MEMBERS.keys())
async def test_what_has_ended_counts_in_its_group(
    member: MoveObject, *, may: bool, failed: str
) -> None:
    ruling = await World(member, OPEN).ruled()
    assert (ruling.turn.may_evict, ruling.failed_member) == (may, failed)


async def test_what_was_deleted_or_ends_later_counts_as_it_is() -> None:
    world = World(shown("m", "Succeeded"), OPEN)
    world.moves.drop(PodName("shop", "m"))
    assert not (await world.ruled()).turn.may_evict
    world.moves.put(shown("m", "Reserving", revision=2))
    assert not (await world.ruled()).turn.may_evict
    world.moves.put(shown("m", "Succeeded", revision=3))
    assert (await world.ruled()).turn.may_evict


async def test_what_has_ended_counts_in_a_group_that_lists_it() -> None:
    ended = shown("m", "Succeeded", space="blog", across=True)
    world = World(ended, shown("open", "Evicting", across=True))
    assert not (await world.ruled()).turn.may_evict
    listed = [
        GroupMember(PodName(space, name), f"pod-{space}-{name}")
        for space, name in (("shop", "open"), ("blog", "m"))
    ]
    world.loop.declared = {"g": frozenset(listed)}
    assert (await world.ruled()).turn.may_evict


def kept(number: int, group: str = "old", phase: str = "Aborted") -> list[MoveObject]:
    return [shown(f"{group}-{n:05}", phase, (group, 1)) for n in range(number)]


async def test_a_group_of_many_that_have_ended_pushes_no_small_one_out() -> None:
    many = kept(MOST_ENDED + 9), shown("again", "Evicting", ("old", 1))
    world = World(shown("m", "Succeeded"), *many[0], many[1], OPEN)
    assert len(list(world.loop._contenders())) == 2 + MOST_ENDED
    assert (await world.ruled()).turn.may_evict
    assert (await world.ruled("again")).turn.may_evict
    # Another namespace has as many.
    world.moves.put(shown("m", "Failed", ("x", 1), "blog"))
    world.moves.put(shown("open", "Evicting", ("x", 1), "blog"))
    assert (await world.ruled(space="blog")).failed_member == "blog/m"


def test_of_more_the_last_ones_count() -> None:
    first, last = shown("first", "Failed", ("old", 1)), shown("last", "Failed", ("old", 1))
    world = World(first, *kept(MOST_ENDED), last, shown("open", "Evicting", ("old", 1)))
    names = {each.move.name.name for each in world.loop._contenders()}
    assert ("first" in names, "last" in names) == (False, True)


def test_a_pass_does_not_grow_with_what_has_ended() -> None:
    """It took 0.3 s of 50,000, a tenth of a second in one step."""
    few = World(*kept(MOST_ENDED), shown("open", "Evicting", ("old", 1)))
    many = World(*kept(MOST_ENDED * 2), shown("open", "Evicting", ("old", 1)))
    taken = [lines(lambda: list(world.loop._contenders())) for world in (few, many)]  # noqa: B023
    assert taken[0] == taken[1]
    alone = [
        World(*kept(number, "other"), shown("open", "Evicting", None)) for number in (10, 2_000)
    ]
    taken = [lines(lambda: list(world.loop._contenders())) for world in alone]  # noqa: B023
    assert taken[0] == taken[1]


@pytest.mark.parametrize("phase", sorted(ENDED))
def test_no_step_of_the_arbitration_looks_at_all_that_have_ended(phase: MovePhase) -> None:
    group = MoveGroup("g", 1)
    moves = [contender(f"m{n}", phase, group=group) for n in range(2_000)]
    moves.append(contender("open", MovePhase.EVICTING, group=group))
    steps, longest, is_over = arbitrate(moves, (), {}, NOW, ANY), 0, False

    def step() -> None:
        nonlocal is_over
        is_over = next(steps, steps) is steps

    while not is_over:
        longest = max(longest, lines(step))
    assert longest < 500


FAILURES = [
    contender(
        name,
        MovePhase.FAILED,
        group=MoveGroup("g", 1),
        reason=MoveReason.GROUP_FAILED if name == "a" else MoveReason.SEAT_IMPOSSIBLE,
    )
    for name in "abc"
]


@given(st.permutations(FAILURES))
def test_the_oldest_failure_is_named_whatever_is_seen_first(failures: list[Contender]) -> None:
    """Not that of `a`, which failed with another."""
    asks = contender("open", MovePhase.EVICTING, group=MoveGroup("g", 1))
    assert ruled(*failures, asks)["shop/open"].failed_member == "shop/b"
    assert ruled(failures[0], asks)["shop/open"].failed_member == str(failures[0].move.name)


NAMES = ("m-0", "m-1", "m-2")
events = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(["", "Pending", "Landing", "Failed", "Succeeded", "judged"]),
    st.sampled_from([None, ("g", 1), ("h", 1)]),
    st.booleans(),
)


@given(st.lists(events, max_size=20))
def test_what_is_open_and_what_has_ended_are_known_after_any_events(
    history: list[tuple[str, str, tuple[str, int] | None, bool]],
) -> None:
    moves = MoveIndex(lambda _: None)
    for revision, (name, what, group, across) in enumerate(history, 1):
        known = moves.get(PodName("shop", name))
        if not what:
            moves.drop(PodName("shop", name))
        elif what != "judged":
            moves.put(
                shown(name, what, group, across=across and group is not None, revision=revision)
            )
        elif known is not None and known.move is not None:
            moves.judged(known, replace(known.move.status, phase=MovePhase.ABORTED))
    found = [known.move for known in moves if known.move is not None]
    assert moves.open() == {move.name: move for move in found if not move.is_over}
    for group_name in "gh":
        ended = {
            move.name
            for move in found
            if move.is_over and move.spec.group.name == group_name and not move.spec.group.across
        }
        assert set(moves.ended_in("shop", group_name)) == ended
