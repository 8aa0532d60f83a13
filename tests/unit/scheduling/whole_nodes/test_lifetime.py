"""A node that is held whole, from its first owner to its release."""

from __future__ import annotations

from dataclasses import replace

from reserver.reservations.enums import Phase
from reserver.scheduling.filter import filter_nodes
from tests.builders import NOW, node, pod, reservation, state_of
from tests.steps import lines
from tests.unit.extender.placer.world import World
from tests.unit.scheduling.whole_nodes.world import (
    AGENT,
    G1,
    G2,
    GPU,
    W1,
    bind,
    may,
    owner,
    placed,
    status,
)


async def test_it_grows_and_shrinks_with_its_node() -> None:
    world = await placed(G1, W1)
    cpu = world.state.snapshot.amounts
    assert cpu("g1", "cpu").held == 4000
    world.state.node_seen(node("g1", labels=GPU, cpu="6"))
    assert cpu("g1", "cpu").held == 6000
    world.state.pod_seen(pod("agent", node="g1", cpu="1", controller=AGENT))
    assert cpu("g1", "cpu").held == 5000
    world.write(r=None)
    assert cpu("g1", "cpu").held == 0
    assert may(pod("s", cpu="5"), "g1", world)


async def test_a_pod_that_others_bind_there_is_reported_and_then_forgotten() -> None:
    world = await placed(G1)
    forced = pod("forced", node="g1")
    world.state.pod_seen(forced)
    assert (status(world).is_backed, status(world).reason) == (False, "NotEnoughRoom")
    assert "g1 runs pods of others" in status(world).message
    world.state.pod_gone(forced.name)
    assert status(world).is_backed


async def test_it_ends_at_its_time_only() -> None:
    world = await placed(G1, ttl="1h")
    bind(owner("a"), "g1", world)
    world.state.ledger.advance(NOW + 3600)
    assert world.phase() is Phase.EXPIRED
    verdict = filter_nodes(pod("s"), ["g1"], world.state, NOW + 3600)
    assert verdict.nodes == ["g1"]


async def test_a_start_knows_what_was_held_from_the_entry_and_the_pods() -> None:
    before = await placed(G1, G2)
    (on,) = before.placed()
    bound = bind(owner("a"), on, before)
    after = World(G1, G2)
    after.data, after.revision = dict(before.data), before.revision
    after.write()
    after.state.pod_seen(bound)
    await after.look()
    assert after.placed() == {on: 1}
    assert not may(pod("s"), on, after)
    assert may(owner("b"), on, after)
    assert status(after).is_backed
    assert after.state.ledger.claimed(after.reservation().ref) == 1


async def test_an_occurrence_keeps_out_who_comes_while_those_before_run_on() -> None:
    again = {"schedule": {"cron": "0 22 * * *", "duration": "8h"}, "ttl": None}
    world = await placed(G1, **{key: value for key, value in again.items() if value})
    assert world.placed() == {}
    (begin, end) = world.reservation().next_occurrences[0][:2]
    world.now = begin
    world.state.ledger.advance(begin)
    await world.look()
    assert world.placed() == {"g1": 1}
    world.make()
    world.now = end
    world.state.ledger.advance(end)
    world.state.pod_seen(pod("late", node="g1"))
    world.now = begin + 24 * 3600
    world.state.ledger.advance(world.now)
    await world.look()
    assert world.placed() == {"g1": 1}
    assert (status(world).is_backed, status(world).reason) == (False, "NotEnoughRoom")
    assert not filter_nodes(pod("s"), ["g1"], world.state, world.now).nodes
    world.state.pod_gone(pod("late").name)
    assert status(world).is_backed


async def test_it_is_released_once_no_owner_has_been_there_for_so_long() -> None:
    world = await placed(G1, releaseIfIdle="10m")
    world.state.ledger.past.end()
    bound = bind(owner("a"), "g1", world)
    world.state.ledger.advance(NOW + 3600)
    assert world.phase() is Phase.ACTIVE
    world.state.pod_gone(bound.name)
    world.state.ledger.advance(NOW + 3600 + 601)
    assert world.phase() is Phase.EXPIRED
    assert filter_nodes(pod("s"), ["g1"], world.state, NOW + 4201).nodes == ["g1"]


def test_a_call_costs_the_same_however_many_nodes_are_held_whole() -> None:
    def cost(count: int) -> int:
        free = [node(f"f{number}", cpu="4") for number in range(150)]
        nodes = [node(f"n{number}", cpu="4") for number in range(count)]
        holds = [
            replace(
                reservation(f"r{number}", node="", placed={f"n{number}": 1}, reusable=True),
                resources={"nodes": 1},
            )
            for number in range(count)
        ]
        state = state_of(*free, *nodes, *holds)
        names = [each.name for each in (*nodes[:10], *free)]
        asking = pod("s", cpu="1")
        assert len(filter_nodes(asking, names, state, NOW).nodes) == 100
        return lines(lambda: filter_nodes(asking, names, state, NOW))

    assert cost(500) == cost(20)
