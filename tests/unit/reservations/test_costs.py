"""The work of a ledger is linear in its input; lines are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from reserver.cluster.labels import equals
from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ledger import Ledger
from reserver.reservations.owner import OwnerRule
from reserver.reservations.placement import Part
from reserver.reservations.quota import Quota
from reserver.reservations.reservation import Ref, Reservation, Written
from reserver.reservations.status import ShortNodes
from tests.builders import NAMESPACE, NOW, node, pod, reservation
from tests.steps import lines


class World:
    """A ledger, and so many reservations for it."""

    def __init__(self, count: int) -> None:
        self.snapshot = Snapshot()
        self.ledger = Ledger(self.snapshot)
        self.ledger.advance(NOW)
        self.count = count
        self.show("worker-1")

    def show(self, name: str) -> None:
        self.snapshot.set_node(node(name, cpu="4"))

    def put(self, *written: Reservation) -> None:
        for number, each in enumerate(written, start=1):
            self.ledger.put(each, Written(number, number))

    def many(self, **fields: Any) -> list[Reservation]:
        """Return so many reservations, each for its own owner unless fields differ."""
        return [
            reservation(f"r-{number:05}", **{"owners": (f"o-{number}",), "cpu": "1", **fields})
            for number in range(self.count)
        ]


def of_one_owner(world: World) -> None:
    written = world.many(owners=("a",))
    world.put(*written)
    world.ledger.bound(pod("a", node="worker-1"), exact=True)
    for each in written:
        world.ledger.drop(each.ref)


def edited_in_turn(world: World) -> None:
    for number in range(world.count):
        world.put(reservation("r", cpu=str(number % 2 + 1)))


def that_expire_at_once(world: World) -> None:
    world.put(*world.many(expires=NOW + 1, starts=NOW + 0.5))
    world.ledger.advance(NOW + 0.5, most=None)
    world.ledger.advance(NOW + 1, most=None)


def waiting_for_a_quota(world: World) -> None:
    world.ledger.quotas.limit(NAMESPACE, [Quota(name="few", hard={"reservations": 3})])
    written = world.many()
    world.put(*written)
    for each in written:
        world.ledger.drop(each.ref)


def of_one_origin_that_say_different_things(world: World) -> None:
    for number, each in enumerate(world.many(), start=1):
        world.put(replace(each, ref=Ref.of_object("shop", each.ref.key), origin="shop/x#1"))
        claiming = pod(f"p-{number}", node="worker-1")
        world.ledger.claim(f"shop/x#1@{number:016}", claiming)


def claimed_under_one_record(world: World) -> None:
    drifting = replace(reservation("r", expires=NOW + 60), drift=30)
    for number in range(world.count):
        world.ledger.claim(f"{drifting.record}@{number:016}", pod(f"p-{number}", node="worker-1"))
        world.put(drifting)
        world.ledger.drop(drifting.ref)


def shown_on_a_node_that_is_short(world: World) -> None:
    written = world.many(slots=2)
    world.put(*written)
    for each in written:
        ShortNodes.of(world.snapshot).status(each, world.ledger)


def of_resources_that_nobody_else_holds(world: World) -> None:
    for number in range(world.count):
        odd: dict[str, Any] = {f"example.com/r-{number}-{n}": "1" for n in range(8)}
        world.put(reservation(f"r-{number}", **odd))


SHAPES = [
    shown_on_a_node_that_is_short,
    of_resources_that_nobody_else_holds,
    of_one_owner,
    of_one_origin_that_say_different_things,
    claimed_under_one_record,
    edited_in_turn,
    that_expire_at_once,
    waiting_for_a_quota,
]


@pytest.mark.long
@pytest.mark.parametrize("play", SHAPES, ids=lambda play: play.__name__)
def test_four_times_as_many_cost_four_times_as_much(
    play: Callable[[World], None],
) -> None:
    few, many = (lines(lambda: play(World(count))) for count in (100, 400))  # noqa: B023
    assert many < 4.4 * few


def test_a_call_of_an_owner_costs_the_same_beside_a_thousand_holds() -> None:
    def asked(world: World) -> int:
        written = world.many()
        world.put(*written)
        seat = written[world.count // 2]
        ask = partial(world.ledger.later, "worker-1", [seat], seat.resources)
        ask()
        return lines(ask)

    assert asked(World(1_000)) == asked(World(100))


def test_a_pod_that_ends_a_reservation_on_many_nodes_costs_little_for_each_of_them() -> None:
    def ended(nodes: int) -> int:
        world = World(nodes)
        placed = {f"worker-{number}": 1 for number in range(nodes)}
        for name in placed:
            world.show(name)
        world.put(reservation("r", owners=("a",), node="", slots=nodes, placed=placed, cpu="1"))
        pod_a = replace(pod("a", node="worker-1"), revision=9)
        return lines(lambda: world.ledger.bound(pod_a, exact=True))

    assert ended(300) - ended(100) < 200 * 20


def test_pods_that_have_their_slot_are_not_asked_again_when_it_is_placed_elsewhere() -> None:
    def moved(pods: int) -> int:
        world = World(pods)
        for name in ("worker-2", "worker-3"):
            world.show(name)
        rules = (OwnerRule(namespace=NAMESPACE, selector=equals({"app": "web"})),)
        many = reservation(
            "r", owners=(), rules=rules, node="", slots=pods + 2, placed={"worker-2": pods}, cpu="1"
        )
        world.put(many)
        for number in range(pods):
            web = pod(f"p-{number}", node="worker-1", labels={"app": "web"})
            world.ledger.claim(many.identity, web)
        return lines(lambda: world.ledger.place(many.ref, (Part("worker-3", 2),)))

    assert moved(300) - moved(100) < 200 * 12


def test_a_claim_costs_the_same_however_many_nodes_and_claims_there_are() -> None:
    """The last of 50,000 claims on 5,000 nodes once took 41 ms."""

    def cost(count: int) -> int:
        world = World(count)
        for number in range(count):
            world.show(f"n-{number}")
        jobs = OwnerRule(namespace=NAMESPACE, selector=equals({"app": "jobs"}))
        wide = reservation("wide", node="", owners=(), rules=(jobs,), slots=3 * count, cpu="1")
        placed = tuple(Part(f"n-{number}", 3) for number in range(count))
        world.put(replace(wide, placed=placed))
        pods = [
            pod(f"p-{number}", node=f"n-{number // 2}", labels={"app": "jobs"}, claims=(wide,))
            for number in range(2 * count)
        ]
        for each in pods[:-1]:
            world.ledger.claim(wide.identity, each, written=False)
            world.ledger.written(each.uid)

        def claim() -> None:
            world.ledger.claim(wide.identity, pods[-1], written=False)
            world.ledger.written(pods[-1].uid)

        return lines(claim)

    few, many = cost(5), cost(200)
    assert many <= few + 5
