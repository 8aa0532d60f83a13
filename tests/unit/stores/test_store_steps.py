"""A large ConfigMap is taken step by step, and no hold is lost between two steps."""

from __future__ import annotations

import asyncio
import json
from itertools import count

import pytest

from reserver.base.pacer import Pacer, Steps, outcome
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.stores.cache import Expected
from reserver.stores.configmap.cache import ConfigMapCache
from tests.builders import NOW, held, node, state_of

NAME = ("shop", "store")


def spec(owner: str, cpu: str = "1") -> str:
    fields = {"owners": [{"pod": {"name": owner}}], "resources": {"cpu": cpu}}
    return json.dumps(fields | {"node": "worker-1", "ttl": 0})


def items(*owners: str) -> str:
    more = {"namespace": "shop", "cpu": 1000, "mem": 0, "expire": int(NOW) + 100}
    return json.dumps([{"pod": owner, **more} for owner in owners])


@pytest.fixture
def state() -> State:
    return state_of(node("worker-1", cpu="9000"), now=NOW)


@pytest.fixture
def store(state: State) -> ConfigMapCache:
    return ConfigMapCache(state.ledger, lambda: NOW, lambda *_: None)


def put(store: ConfigMapCache, data: dict[str, str], revision: int = 1) -> Steps:
    metadata = Metadata(NAME[1], NAME[0], uid="uid", resource_version=str(revision))
    return store.put(ConfigMapObject(metadata, data))


def holds(state: State) -> int:
    return held(state, "worker-1") // 1000


def test_each_entry_is_a_step_of_its_own(store: ConfigMapCache, state: State) -> None:
    before, longest = 0, 0
    for _ in put(store, {f"r{number}": spec(f"p{number}") for number in range(500)}):
        longest, before = max(longest, holds(state) - before), holds(state)
    assert (longest, holds(state)) == (1, 500)


def test_so_is_each_item_of_a_list(store: ConfigMapCache, state: State) -> None:
    before, longest = 0, 0
    for _ in put(store, {"worker-1": items(*(f"p{number}" for number in range(500)))}):
        longest, before = max(longest, holds(state) - before), holds(state)
    assert (longest, holds(state)) == (1, 500)


def test_so_is_each_key_without_a_reservation(store: ConfigMapCache) -> None:
    empty = {f"r{number}": "null" for number in range(500)}
    taken = sum(1 for _ in put(store, empty))
    removed = sum(1 for _ in put(store, {}, revision=2))
    outcome(put(store, empty, revision=3))
    dropped = sum(1 for _ in store.drop(NAME))
    assert min(taken, removed, dropped) >= 500


def test_and_each_that_goes(store: ConfigMapCache, state: State) -> None:
    outcome(put(store, {"worker-1": items(*(f"p{number}" for number in range(300)))}))
    before, longest = 300, 0
    for _ in store.drop(NAME):
        longest, before = max(longest, before - holds(state)), holds(state)
    assert (longest, holds(state)) == (1, 0)


def test_the_cleaner_waits_until_all_is_taken_and_is_told_then(state: State) -> None:
    """Each look goes through all items: one after each of thousands would take minutes."""
    reported = list[Ref]()
    store = ConfigMapCache(state.ledger, lambda: NOW + 200, lambda *_: None, reported.append)
    ref = Ref(*NAME, "worker-1")
    for _ in put(store, {"worker-1": items("a", "b")}):
        assert store.due_edit(ref, NOW + 200) is None
        reported.clear()
    assert reported == [ref]
    assert store.due_edit(ref, NOW + 200) is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": spec("x")}, {"b": spec("x")}),
        ({"b": spec("x")}, {"a": spec("x")}),
        ({"a": spec("x")}, {"b": spec("y")}),
        ({"worker-1": items("x")}, {"r": spec("x")}),
        ({"r": spec("x")}, {"worker-1": items("x")}),
        ({"worker-1": items("x", "z")}, {"worker-1": items("z", "x")}),
        ({"worker-1": items("x")}, {"worker-1": items("y")}),
        ({"r": spec("x", cpu="2")}, {"r": spec("x", cpu="1")}),
    ],
    ids=["moved", "moved-back", "other", "form", "form-back", "order", "item", "edited"],
)
def test_what_one_write_moves_is_held_at_every_step(
    before: dict[str, str], after: dict[str, str], store: ConfigMapCache, state: State
) -> None:
    outcome(put(store, before))
    least = min([holds(state) for _ in put(store, after, 2)] + [holds(state)])
    assert least == sum("z" in text for text in before.values()) + 1


def test_until_all_is_taken_it_counts_as_seen_as_it_was_before(store: ConfigMapCache) -> None:
    outcome(put(store, {"a": spec("x")}, 3))
    steps = put(store, {"a": spec("x"), "b": spec("y"), "c": spec("z")}, 7)
    seen = [store.metadata(NAME) for _ in steps]
    assert {metadata.revision for metadata in seen if metadata} == {3}
    metadata = store.metadata(NAME)
    assert metadata is not None
    assert metadata.revision == 7


def test_what_was_promised_holds_until_it_is_taken_itself(
    store: ConfigMapCache, state: State
) -> None:
    promised = Ref(*NAME, "z")
    text = spec("z")
    other = ConfigMapCache(state_of(node("worker-1"), now=NOW).ledger, lambda: NOW, lambda *_: None)
    outcome(put(other, {"z": text}))
    entries = other.entries(promised)
    assert entries is not None
    store.expect(promised, Expected(text, entries))
    steps = put(store, {"a": spec("x"), "b": spec("y"), "z": text}, 5)
    next(steps)
    # The answer comes while the watch's event is being taken.
    store.written(promised, Metadata("store", "shop", "u", "5"))
    assert min([holds(state) for _ in steps]) >= 1
    assert holds(state) == 3


async def test_a_configmap_half_of_which_was_taken_when_its_watch_broke_is_taken(
    store: ConfigMapCache, state: State
) -> None:
    slow = Pacer(0.002, (number * 0.01 for number in count()).__next__)
    data = {f"r{number}": spec(f"p{number}") for number in range(50)}
    taking = asyncio.create_task(slow.run(put(store, data)))
    await asyncio.sleep(0)
    assert 0 <= holds(state) < 50
    taking.cancel()
    await asyncio.wait([taking])
    assert holds(state) == 50
    outcome(put(store, data, 2))  # The watch shows the object again.
    assert holds(state) == 50
