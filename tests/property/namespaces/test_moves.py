"""Moves and their groups: independent of another namespace with equal names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reserver.base.pacer import outcome
from reserver.cluster.pod import NO_CONTROLLER, Controller, PodName
from reserver.k8s.objects.objects import decode, encode
from reserver.moves.arbitration import arbitrate
from reserver.moves.groups import Contender
from reserver.moves.index import KnownMove, MoveIndex
from reserver.moves.limits import MoveLimits
from reserver.moves.model import ALONE, GroupMember, Move, MoveGroup, MoveSpec, MoveStatus
from reserver.moves.phases import MovePhase, MoveReason
from reserver.moves.podmove import MoveObject
from reserver.moves.workloads import Workload
from tests.builders import pod
from tests.property.namespaces.histories import HERE, NOW, THERE, same, spaces
from tests.unit.moves.build import metadata

# Moves and their groups.

GROUPS = (
    ALONE,
    MoveGroup("g", 1),
    MoveGroup("g", 2),
    MoveGroup("g", 3),
    MoveGroup("g", 2, across=True),
)
NAMES = ("m-0", "m-1", "m-2")


@st.composite
def contenders(draw: st.DrawFn) -> tuple[str, Contender]:
    space, name = draw(spaces), draw(st.sampled_from(NAMES))
    phase = draw(st.sampled_from(MovePhase))
    source = draw(st.sampled_from(["", "n-1"]))
    after = draw(st.sampled_from(["", "", "m-0"]))
    spec = MoveSpec(
        pod=PodName(space, name),
        uid="" if after else draw(st.sampled_from(["", "uid"])),
        after=after,
        node=draw(st.sampled_from(["", "n-1", "n-2"])),
        group=draw(st.sampled_from(GROUPS)),
        paused=draw(st.booleans()),
    )
    status = MoveStatus(
        phase=phase,
        reason=draw(
            st.none() | st.sampled_from([MoveReason.GROUP_FAILED, MoveReason.NOTHING_TO_FOLLOW])
        ),
        uid=draw(st.sampled_from(["", "uid"])),
        source=source,
        target=draw(st.sampled_from(["", "n-2"])),
        evicted_at=draw(st.none() | st.sampled_from([NOW - 500, NOW])),
    )
    made = Move(
        name=spec.pod,
        uid=f"{space}-{name}",
        created_at=float(draw(st.integers(0, 2))),
        spec=spec,
        status=status,
    )
    leaves = pod(name, namespace=space, uid="uid", node=draw(st.sampled_from(["", "n-1"])))
    controller = draw(st.sampled_from([NO_CONTROLLER, Controller("ReplicaSet", "web")]))
    return space, Contender(
        move=made, pod=draw(st.none() | st.just(leaves)), controller=controller, replicas=2
    )


LISTS_OF_B = {"g": frozenset(GroupMember(PodName(THERE, name), "uid") for name in NAMES)}


@settings(max_examples=150)
@given(st.lists(contenders(), max_size=8, unique_by=lambda each: each[1].move.name))
def test_moves_are_ruled_as_if_no_other_namespace_had_groups_of_their_names(
    history: list[tuple[str, Contender]],
) -> None:
    def rulings(played: Sequence[tuple[str, Contender]]) -> Any:
        moves = [each for _, each in played]
        found = outcome(arbitrate(moves, (), LISTS_OF_B, NOW, MoveLimits(per_node=None)))
        return {name: it for name, it in found.items() if name.namespace == HERE}

    same(history, rulings)
    everywhere = [each for _, each in history]
    for name, it in rulings(history).items():
        assert f"{THERE}/" not in f"{it.turn.why}{it.failed_member}{it.rival}", (name, everywhere)


def move_object(space: str, name: str, phase: str, revision: int) -> MoveObject:
    controller = {"kind": "ReplicaSet", "name": "web"}
    spec = {"pod": {"name": "web"}} if name != "m-1" else {"pod": {"name": "web", "after": "m-0"}}
    status = {"phase": phase, "reason": "WaitsForTurn", "message": "m", "controller": controller}
    written = {"metadata": metadata(space, name, revision), "spec": spec, "status": status}
    return decode(MoveObject, encode(written))


move_events = st.tuples(
    spaces,
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["", "Pending", "Landing", "Failed"])),
)


@given(st.lists(move_events, max_size=20))
def test_pod_moves_are_found_by_names_of_their_own_namespace(
    history: list[tuple[str, tuple[str, str]]],
) -> None:
    def shown(played: Sequence[tuple[str, tuple[str, str]]]) -> Any:
        touched: list[PodName] = []
        moves = MoveIndex(touched.append)
        for revision, (space, (name, phase)) in enumerate(played, 1):
            if phase:
                moves.put(move_object(space, name, phase, revision))
            else:
                moves.drop(PodName(space, name))
        known = [each for each in moves if each.name.namespace == HERE]
        seats = [each.move.seat_name for each in known if each.move]
        return (
            [_without_revision(each) for each in known],
            moves.of_pod(PodName(HERE, "web")),
            moves.of_workload(Workload(HERE, Controller("ReplicaSet", "web"))),
            moves.followers(PodName(HERE, "m-0")),
            [moves.of_seat(PodName(HERE, seat)) for seat in seats],
            [name for name in touched if name.namespace == HERE],
        )

    same(history, shown)


def _without_revision(known: KnownMove) -> Any:
    return known.name, known.move, str(known.problem)
