"""Clusters with holds of every kind, as Hypothesis draws them, and the states that show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from reserver.cluster.labels import equals
from reserver.cluster.node import Node
from reserver.cluster.pod import Controller, Pod, PodName
from reserver.reservations.entry import identified
from reserver.reservations.listener import NOBODY, Listener
from reserver.reservations.owner import OwnerRule
from reserver.reservations.reservation import ANY_TIME, Reservation, Written
from reserver.scheduling.state import State
from tests.builders import BORROWER, NAMESPACE, NOW, pod, reservation

SPACES = (NAMESPACE, "blog")
NODES = ("n1", "n2")
NEVER_SHOWN = "n3"
GANG = "training"
SOON = NOW + 60
STAYS = replace(BORROWER, tolerates_recall=False)

spaces = st.sampled_from(SPACES)
places = st.sampled_from([*NODES, *NODES, *NODES, NEVER_SHOWN])
amounts = st.fixed_dictionaries(
    {"pods": st.just(1), "cpu": st.integers(1, 4), "gpu": st.sampled_from([0, 0, 0, 1, 2])}
)


@dataclass(frozen=True)
class Drawn:
    """A cluster at a moment, in unix seconds.

    Attributes:
        nodes: allocatable amounts of the known nodes.
        holds: the reservations, and when each was written.
        ended: the UIDs of bound pods that are gone.
        unreadable: the nodes on which an object cannot be read.
    """

    nodes: Mapping[str, Mapping[str, int]]
    holds: tuple[tuple[Reservation, Written], ...]
    bound: tuple[Pod, ...]
    pending: tuple[Pod, ...]
    unreadable: frozenset[str]
    ended: frozenset[str] = field(default=frozenset())
    now: float = NOW

    def state(self, listener: Listener = NOBODY) -> State:
        """Return the state of a process that has read the cluster."""
        state = State(listener)
        state.is_complete = state.snapshot.lending.is_on = True
        state.ledger.advance(self.now)
        for name, offered in self.nodes.items():
            state.node_seen(Node(name=name, allocatable=offered))
        for hold, written in self.holds:
            state.ledger.put(hold, written)
        for each in (*self.bound, *self.pending):
            state.pod_seen(each)
        for name in self.unreadable:
            state.unreadable.note(("", name), name)
        return state

    @property
    def asking(self) -> Iterator[Pod]:
        """The pods that wait, and others of their names that no watch has shown yet."""
        yield from self.pending
        for each in self.pending:
            fresh = replace(each, revision=3_000, nominated_node="", group="")
            other = STAYS if each.constraints.tolerates_recall else BORROWER
            more = {**each.requests, "cpu": 1 + each.requests["cpu"] % 4}
            yield replace(fresh, uid=f"{each.uid}-0", priority=10 - each.priority)
            yield replace(fresh, uid=f"{each.uid}-1", constraints=other)
            yield replace(fresh, uid=f"{each.uid}-2", requests=more)


@st.composite
def reservations(draw: st.DrawFn, number: int) -> Reservation:
    """Draw a reservation: pinned, placed, not placed yet, or one that replaces claimed slots."""
    space, slots = draw(spaces), draw(st.integers(1, 2))
    names = draw(st.lists(st.sampled_from(["a", "b", "x0", "x1"]), max_size=2, unique=True))
    rules = (
        OwnerRule(namespace=space, selector=equals({"app": "x"})),
        OwnerRule(namespace=space, selector=equals({"app": "y"})),
        OwnerRule(namespace=space, controller=Controller("PodGroup", GANG)),
    )
    refill = draw(st.sampled_from([0, 0, 0, slots, slots + 1]))
    node = "" if refill else draw(st.sampled_from(["", "", *NODES, *NODES, NEVER_SHOWN]))
    there = draw(st.lists(places, max_size=refill or slots))
    loose = draw(st.sampled_from(["", "yields", "lends", "lends"]))
    made = reservation(
        f"r{number}",
        node=node,
        rules=draw(st.lists(st.sampled_from(rules), min_size=not names, max_size=1)),
        slots=slots,
        require=draw(st.sampled_from([False, False, True])),
        starts=draw(st.sampled_from([None] * 9 + [SOON])),
        expires=draw(st.sampled_from([None] * 4 + [SOON] * 4 + [NOW - 1])),
        yields_above=draw(st.sampled_from([5, -1])) if loose == "yields" else None,
        lends_below=draw(st.sampled_from([5, 5, 20])) if loose == "lends" else None,
        reusable=draw(st.booleans()),
        refill_up_to=refill,
        placed=Counter(() if node else there),
    )
    owners = tuple(PodName(space, each) for each in sorted(names))
    resources = {name: amount for name, amount in draw(amounts).items() if amount}
    ref = made.ref._replace(namespace=space)
    return identified(replace(made, ref=ref, owners=owners, resources=resources))


@st.composite
def pods(draw: st.DrawFn, space: str, name: str) -> Pod:
    """Draw a pod; it may borrow, or match a rule."""
    app, borrows = draw(st.sampled_from(["", "", "x", "y"])), draw(st.booleans())
    made = pod(
        name,
        namespace=space,
        uid=f"{space}-{name}",
        priority=draw(st.sampled_from([0, 0, 10])),
        labels={"app": app} if app else {},
        constraints=BORROWER if borrows else STAYS,
    )
    return replace(made, requests=draw(amounts))


@st.composite
def _bound(draw: st.DrawFn, space: str, name: str, holds: Iterable[Reservation]) -> Pod:
    made = replace(draw(pods(space, name)), node=draw(places), revision=1_000)
    made = replace(made, requests={**made.requests, "cpu": 1 + made.requests["cpu"] // 4})
    mine = [each for each in holds if any(rule.matches(made) for rule in each.rules)]
    here = [each for each in mine if any(part.node == made.node for part in each.parts)]
    claims = draw(st.lists(st.sampled_from(here), max_size=1)) if here else []
    claimed = frozenset(each.identity for each in claims)
    leaves = made.constraints.tolerates_recall and draw(st.integers(0, 3)) == 3
    return replace(made, claims=claimed, terminating=leaves)


@st.composite
def _pending(draw: st.DrawFn, space: str, name: str) -> Pod:
    nominated, group = (draw(st.sampled_from(["", "", *some])) for some in (NODES, (GANG,)))
    return replace(draw(pods(space, name)), revision=2_000, nominated_node=nominated, group=group)


@st.composite
def clusters(draw: st.DrawFn) -> Drawn:
    """Draw a cluster; in both namespaces things have the same names."""
    offers = st.fixed_dictionaries(
        {"pods": st.just(9), "cpu": st.integers(5, 12)}, optional={"gpu": st.integers(1, 3)}
    )
    count, in_order = draw(st.integers(2, 6)), draw(st.booleans())
    holds = [draw(reservations(number)) for number in range(count)]
    written = [Written(at, at) if in_order else ANY_TIME for at in range(1, count + 1)]
    named = [st.tuples(spaces, st.sampled_from(some)) for some in (["x0", "x1", "x2"], "abc")]
    there, waiting = (draw(st.lists(some, min_size=2, max_size=5, unique=True)) for some in named)
    return Drawn(
        nodes={name: draw(offers) for name in NODES},
        holds=tuple(zip(holds, written, strict=True)),
        bound=tuple(draw(_bound(*name, holds)) for name in there),
        pending=tuple(draw(_pending(*name)) for name in waiting),
        unreadable=frozenset(draw(st.sampled_from([(), (), (), ("n1",)]))),
    )
