"""Rounds that empty nodes."""

from pathlib import Path

from reserver.k8s.objects.move_windows import parse
from reserver.rebalance.capacity import Held
from reserver.rebalance.emptying import Settled
from reserver.rebalance.node_marks import NodeMarks
from reserver.rebalance.plan import Plan
from reserver.rebalance.round_input import Decision, RoundInput
from tests.unit.rebalance.rounds.world import (
    CLUSTER,
    MOVE,
    NO_MOVES,
    NODES,
    OTHER,
    OWNED,
    PODS,
    REST,
    World,
)

MARKED = {
    "metadata": {
        "name": "n1",
        "resourceVersion": "7",
        "annotations": {"reserver.io/emptying": "2030-01-31T10:00:00Z"},
    },
    "spec": {"unschedulable": True},
}
OPEN = {"metadata": {"name": "n1", "resourceVersion": "7"}}


def emptying(world: World, *, emptied: tuple[str, ...] = ("n1",)) -> World:
    """Return a world whose rounds empty nodes, and whose plans empty these nodes."""

    def decide(look: RoundInput, _: Held) -> Decision:
        world.looks.append(look)
        moves = world.moves if look.policy.limits.total != 0 else ()
        return Decision(plan=Plan(moves=moves, emptied=emptied if moves else ()), rounds={})

    async def held() -> Held:
        return {}

    marks = NodeMarks(world.client, lambda: world.now)
    world.rebalancer.decide, world.rebalancer.held = decide, held
    world.rebalancer.marks = marks
    return world


def on_nodes(world: World) -> list[str]:
    return [each.verb for each in world.client.requests if "/nodes/n1" in each.path]


async def test_a_node_is_closed_before_its_pods_get_their_pod_moves(path: Path) -> None:
    script = [NO_MOVES, NODES, OWNED, *REST, OPEN, {}, {}, {}, {}, {}]
    world = emptying(World(path, *script, reserves_first=True, moves=(MOVE, OTHER)))
    found = await world.rebalancer.round()
    assert len(found.outcomes) == 2
    paths = [each.path for each in world.client.requests[len(CLUSTER) + 1 :]]
    assert [each.rpartition("/")[2] for each in paths[:3]] == ["n1", "n1", "podmoves"]
    assert world.client.requests[len(CLUSTER) + 2].body["spec"] == {"unschedulable": True}


async def test_a_node_that_is_empty_is_opened_and_named(path: Path) -> None:
    nodes = {"kind": "NodeList", "items": [MARKED]}
    script = [NO_MOVES, nodes, {**PODS, "items": []}, *REST, MARKED, {}]
    world = emptying(World(path, *script, reserves_first=True, moves=()))
    found = await world.rebalancer.round()
    assert found.settled == Settled(("n1",))
    assert on_nodes(world) == ["get", "patch"]


async def test_a_dry_run_and_no_more_moves_close_nothing(path: Path) -> None:
    script = [NO_MOVES, NODES, OWNED, *REST]
    dry = World(path, *script, reserves_first=True, dry_run=True)
    await emptying(dry).rebalancer.round()
    assert on_nodes(dry) == []
    done = emptying(World(path, *script, reserves_first=True))
    assert not (await done.rebalancer.round(most_moves=0)).outcomes
    assert on_nodes(done) == []


async def test_outside_of_its_windows_a_round_gives_back_what_no_move_leaves(path: Path) -> None:
    nodes = {"kind": "NodeList", "items": [MARKED]}
    world = emptying(World(path, NO_MOVES, nodes, OWNED, *REST, MARKED, {}, reserves_first=True))
    world.rebalancer.windows = (parse("0 22 * * * 6h"),)
    world.now = 1_896_084_000.0
    found = await world.rebalancer.round()
    assert (found.settled, world.looks) == (Settled((), ("n1",)), [])
