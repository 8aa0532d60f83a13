"""What is created again under a name, and events that come after the answer to a write."""

import json
from dataclasses import replace
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.reservations.placement import Part
from reserver.reservations.reservation import Ref
from tests.builders import held, node, pod
from tests.unit.stores.either_store import Items, Keys
from tests.unit.stores.test_object_cache import World, made

OWNERS = [{"selector": {"matchLabels": {"app": "web"}}}]
SPEC: dict[str, Any] = {
    "owners": OWNERS,
    "resources": {"cpu": "2"},
    "node": "worker-1",
    "ttl": 0,
    "slots": 3,
}


def show(world: Keys | Items, uid: str, revision: int, *, listed: bool = False) -> None:
    """Show a store with three slots; a reservation's `origin` is in its spec, as Reserver's are."""
    if isinstance(world, Items):
        item = made(uid=uid, revision=revision, origin="shop/web#token", **SPEC)
        world.store.put(item, listed=listed)
    else:
        metadata = Metadata("store", "shop", uid, str(revision))
        store = ConfigMapObject(metadata, {"web": json.dumps(SPEC)})
        outcome(world.store.put(store, listed=listed))


@pytest.mark.parametrize("kind", [Keys, Items])
def test_a_store_created_again_while_no_watch_ran_has_all_its_slots(
    kind: type[Keys | Items],
) -> None:
    """A list shows no deletion: only the UID tells that the claims were of another object."""
    world = kind()
    show(world, "first", 2)
    world.state.is_complete = True
    web = pod("web-1", cpu="2", labels={"app": "web"})
    (seat,) = world.state.ledger.seats(web)
    bound = replace(web, node="worker-1", claims=frozenset({seat.identity}), revision=3)
    world.state.pod_seen(bound)
    world.state.pod_gone(bound.name)
    show(world, "first", 4, listed=True)
    assert world.held == 4
    show(world, "second", 9, listed=True)
    assert world.held == 6


def placed_on(node: str, revision: int) -> Any:
    """Return a reservation whose status has its place."""
    raw = json.dumps({"owners": OWNERS, "resources": {"cpu": "2"}, "ttl": 0})
    status = {"phase": "Active", "observedGeneration": 1, "claimed": 0, "claims": []}
    status |= {"conditions": [], "placements": [{"node": node, "slots": 1}]}
    return made(raw=raw, status=status, revision=revision)


def test_an_event_older_than_the_answer_to_a_write_moves_no_hold() -> None:
    world = World()
    world.state.node_seen(node("worker-2", cpu="16"))
    world.put(placed_on("worker-1", 5))
    world.state.ledger.place(Ref.of_object("shop", "web"), (Part("worker-2", 1),))
    world.store.wrote(placed_on("worker-2", 7))
    for revision in (6, 7):
        world.put(placed_on("worker-1" if revision == 6 else "worker-2", revision))
        assert (held(world.state, "worker-1"), held(world.state, "worker-2")) == (0, 2000)
