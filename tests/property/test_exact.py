"""Filter, Bind, Preempt, placement and `backed` agree with plain integers at extreme amounts.

The model below has no matrices, clamps or seats: it adds up the amounts of the documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref, Written
from reserver.reservations.status import ShortNodes
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.state import State
from reserver.stores.codec import spec_codec
from tests.builders import place

NOW = 1_900_000_000.0
MOST = 2**53
LOWEST, HIGHEST = -(2**31), 10**9
RESOURCES = ("cpu", "memory", "example.com/x", "pods")
NAMES = ("a", "b", "c")
Amounts = Mapping[str, int]


@dataclass(frozen=True)
class Hold:
    """A reservation, as the documentation describes it."""

    owners: frozenset[str]
    slot: Amounts
    slots: int
    above: int | None
    turn: int

    def held(self, resource: str, but: int = 0) -> int:
        return self.slot.get(resource, 0) * (self.slots - but)

    def is_behind(self, other: Hold) -> bool:
        if (self.above is None) == (other.above is None):
            return self.turn > other.turn
        return self.above is not None


@dataclass(frozen=True)
class Model:
    """One node, its taken and its held amounts."""

    offered: Amounts
    taken: Mapping[str, Amounts]
    holds: tuple[Hold, ...]

    def free(self, resource: str, gone: frozenset[str] = frozenset()) -> int:
        left = (a.get(resource, 0) for uid, a in self.taken.items() if uid not in gone)
        return self.offered.get(resource, 0) - sum(left)

    def fits(self, pod: Pod, gone: frozenset[str] = frozenset()) -> bool:
        return all(
            self._has(pod, name, amount, self.free(name, gone))
            for name, amount in pod.requests.items()
            if amount and name in self.offered
        )

    def _has(self, pod: Pod, resource: str, amount: int, free: int) -> bool:
        own = [hold for hold in self.holds if pod.name.name in hold.owners]
        own.sort(key=lambda hold: (hold.above is not None, hold.turn))
        held = sum(hold.held(resource, but=int(hold in own)) for hold in self.holds)
        takes = sum(
            hold.held(resource)
            for hold in self.holds
            if hold not in own and hold.above is not None and pod.priority > hold.above
        )
        if held <= takes or free - held + takes >= amount:
            return True
        for seats in (own[: n + 1] for n in range(len(own))):
            before = [h for h in self.holds if not all(h.is_behind(seat) for seat in seats)]
            ahead = sum(hold.held(resource, but=int(hold in own)) for hold in before)
            slots = sum(hold.slot.get(resource, 0) for hold in seats)
            if slots >= amount and free - ahead >= amount:
                return True
        return False

    def backed(self, hold: Hold) -> bool:
        return all(
            sum(each.held(name) for each in self.holds if not each.is_behind(hold))
            <= self.free(name)
            and name in self.offered
            for name in hold.slot
        )

    def room(self, slot: Amounts) -> int:
        left = {name: self.free(name) - sum(h.held(name) for h in self.holds) for name in slot}
        return min(max(0, left[name] // amount) for name, amount in slot.items())


small = st.integers(0, 9)
huge = st.sampled_from([2**60 - 1, 2**60, 2**60 + 1, 2**61, 2**63 - 1, 2**63, 2**64])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    slots = draw(st.sampled_from([1, 1, 2, 3, 128, 1000, 100_000]))
    most = MOST // slots
    # Some are refused, and then hold nothing; it is the reader who says which.
    amounts = st.one_of(small, small, st.sampled_from([most, most - 1, most // 2, MOST]))
    resources = {name: draw(amounts) for name in RESOURCES[:3]}
    resources["memory"] = max(1, resources["memory"])
    written: dict[str, object] = {
        "owners": [{"pod": {"name": name}} for name in sorted(draw(st.sets(_names, min_size=1)))],
        "resources": {n: f"{a}m" if n == "cpu" else a for n, a in resources.items()},
        "slots": slots,
        "policy": draw(st.sampled_from(["Prefer", "Require"])),
        "ttl": 0,
    }
    if draw(st.booleans()):
        priority = draw(st.sampled_from([LOWEST, -1, 0, 5, HIGHEST]))
        written |= {"preemptible": True, "priority": priority}
    if draw(st.sampled_from([False] * 5 + [True])):
        written["startsAt"] = "2099-01-01T00:00:00Z"
    return written


@st.composite
def floods(draw: st.DrawFn) -> tuple[dict[str, object], int]:
    """Return what together is beyond every cell, if it is accepted, and how often it is written."""
    times, slots = draw(st.sampled_from([(1, 1000), (1, 100_000), (130, 1), (130, 1)]))
    name, amount = draw(st.sampled_from([("cpu", f"{MOST}m"), ("memory", str(MOST))]))
    written: dict[str, object] = {
        "owners": [{"pod": {"name": draw(_names)}}],
        "resources": {name: amount},
        "slots": slots,
        "ttl": 0,
    }
    if draw(st.booleans()):
        written |= {"preemptible": True, "priority": LOWEST}
    return written, times


_names = st.sampled_from(NAMES)
requests = st.fixed_dictionaries(dict.fromkeys(RESOURCES[:3], st.one_of(small, small, small, huge)))
residents = st.lists(
    st.fixed_dictionaries(dict.fromkeys(RESOURCES[:3], st.one_of(*[small] * 9, huge))), max_size=3
)
offers = st.fixed_dictionaries(
    {"cpu": st.integers(1, 20), "memory": st.integers(1, 20) | st.just(2**50)},
    optional={"example.com/x": st.integers(0, 9)},
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Model, State, dict[Ref, Hold]]:
    offered = {**draw(offers), "pods": draw(st.sampled_from([5, 10**6, 10**6, 10**6]))}
    taken = {f"uid-{n}": {**each, "pods": 1} for n, each in enumerate(draw(residents))}
    state = State()
    state.ledger.advance(NOW)
    state.node_seen(Node(name="n", allocatable=offered))
    for uid, amounts in taken.items():
        each = Pod(name=PodName("shop", uid), uid=uid, requests=amounts, node="n", priority=LOWEST)
        state.pod_seen(each)
    state.is_complete = True
    holds: dict[Ref, Hold] = {}
    turns = count(1)
    written = [(document, 1) for document in draw(st.lists(documents(), min_size=1, max_size=4))]
    if flood := draw(st.none() | floods()):
        written.insert(draw(st.integers(0, len(written))), flood)
    for document, times in written:
        for _ in range(times):
            turn = next(turns)
            ref = Ref.of_object("shop", f"r{turn}")
            try:
                read = spec_codec.read({**document, "node": "n"}, ref, NOW)
            except InvalidInput:
                break
            state.ledger.put(read, Written(turn, turn))
            if read.starts_at is None:
                owners = frozenset(name.name for name in read.owners)
                hold = Hold(owners, read.resources, read.slots, read.yields_above, turn)
                holds[ref] = hold
    return Model(offered, taken, tuple(holds.values())), state, holds


@given(worlds(), requests, st.sampled_from([*NAMES, "stranger"]), st.data())
def test_decisions_are_those_of_plain_integers(
    world: tuple[Model, State, dict[Ref, Hold]],
    asked: dict[str, int],
    who: str,
    data: st.DataObject,
) -> None:
    model, state, _ = world
    priority = data.draw(st.sampled_from([LOWEST, LOWEST + 1, 0, 1, 6, HIGHEST]), label="priority")
    wanted = {name: amount for name, amount in asked.items() if amount} | {"pods": 1}
    pod = Pod(name=PodName("shop", who), uid="uid-asking", requests=wanted, priority=priority)
    may = model.fits(pod)
    assert (judge_bind(pod, "n", state, NOW).refusal is None) is may
    assert bool(filter_nodes(pod, ["n"], state, NOW).nodes) is may
    if model.taken:
        gone = data.draw(st.sets(st.sampled_from(sorted(model.taken)), min_size=1), label="victims")
        helps = bool(judge_preemption(pod, {"n": sorted(gone)}, state, NOW).nodes)
        assert helps is model.fits(pod, frozenset(gone))


@given(worlds(), documents())
def test_what_is_backed_and_what_finds_a_place_is_that_of_plain_integers(
    world: tuple[Model, State, dict[Ref, Hold]], document: dict[str, object]
) -> None:
    model, state, holds = world
    short_nodes = ShortNodes.of(state.snapshot)
    for ref, hold in holds.items():
        known = state.ledger.get(ref)
        assert known is not None
        assert short_nodes.status(known, state.ledger).is_backed is model.backed(hold)
    try:
        more = spec_codec.read(document, Ref.of_object("shop", "more"), NOW)
    except InvalidInput:
        return
    is_offered = all(name in model.offered for name in more.resources)
    has_room = is_offered and model.room(more.resources) >= more.slots
    assert bool(place(more, more.slots, state).parts) is has_room
