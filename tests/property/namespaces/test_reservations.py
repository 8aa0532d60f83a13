"""Reservations, quotas and gangs: independent of another namespace with equal names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reserver.base.schedule import Schedule
from reserver.cluster.constraints import UNCONSTRAINED
from reserver.cluster.pod import Controller, Pod, PodName
from reserver.reservations.entry import identified
from reserver.reservations.owner import OwnerRule
from reserver.reservations.quota import Quota
from reserver.reservations.recurrence import Recurrence
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from tests.builders import BORROWER, node, pod, reservation, state_of
from tests.property.namespaces.histories import HERE, NOW, THERE, same, spaces

# Reservations, their owners, quotas and gangs.

NODES = {HERE: ("a-1", "a-2"), THERE: ("b-1", "b-2")}
PODS = ("p-0", "p-1", "p-2")
KEYS = ("r-0", "r-1")
WEB = Controller("ReplicaSet", "web")


@st.composite
def written(draw: st.DrawFn, space: str) -> Reservation:
    """Draw a reservation of a namespace, on a node of its own."""
    made = reservation(
        "any",
        node=draw(st.sampled_from(NODES[space])),
        owners=(),
        slots=draw(st.integers(1, 2)),
        require=draw(st.booleans()),
        reusable=draw(st.booleans()),
        refill_up_to=draw(st.sampled_from([0, 0, 3])),
        lends_below=draw(st.sampled_from([None, None, 10])),
        expires=draw(st.none() | st.just(NOW + 5)),
        cpu=str(draw(st.integers(1, 3))),
    )
    if draw(st.booleans()):
        made = replace(made, recurrence=Recurrence(schedule=Schedule("* * * * *", 60.0)))
    ref = Ref.of_object(space, draw(st.sampled_from(KEYS)))
    if draw(st.booleans()):
        names = draw(st.sets(st.sampled_from(PODS), min_size=1))
        owned = replace(made, ref=ref, owners=tuple(PodName(space, it) for it in sorted(names)))
    else:
        owned = replace(made, ref=ref, rules=(OwnerRule(namespace=space, controller=WEB),))
    return identified(owned)


@st.composite
def events(draw: st.DrawFn) -> tuple[str, tuple[str, Any]]:
    space = draw(spaces)
    kinds = ["put", "put", "drop", "seen", "bound", "gone", "asks", "asks", "asks", "quota", "time"]
    what = draw(st.sampled_from(kinds))
    subject: Any = draw(st.sampled_from(PODS))
    if what == "put":
        subject = draw(written(space))
    elif what == "drop":
        subject = draw(st.sampled_from(KEYS))
    elif what == "quota":
        subject = draw(st.integers(0, 4))
    elif what in {"seen", "asks", "bound"}:
        group = draw(st.sampled_from(["", "", "gang"]))
        cpu = str(draw(st.integers(1, 3)))
        made = pod(subject, namespace=space, uid=f"{space}-{subject}", controller=WEB, cpu=cpu)
        demands = draw(st.sampled_from([UNCONSTRAINED, BORROWER]))
        subject = replace(made, group=group, constraints=demands)
    return space, (what, subject)


class Cluster:
    """A state and its events, with separate nodes for each namespace.

    Attributes:
        told: the answers to pods of `a`.
    """

    def __init__(self) -> None:
        nodes = [node(each, cpu="4") for own in NODES.values() for each in own]
        self.state: State = state_of(*nodes, now=NOW)
        self.state.snapshot.lending.is_on = True
        self.now = NOW
        self.told: list[Any] = []

    def happen(self, space: str, what: str, subject: Any) -> None:
        ledger = self.state.ledger
        if what == "put":
            ledger.put(subject)
        elif what == "drop":
            ledger.drop(Ref.of_object(space, subject))
        elif what == "quota":
            quota = Quota(name="limit", hard={"held.cpu": 1000 * subject})
            ledger.quotas.limit(space, [quota])
            tuple(ledger.admit(space))
        elif what == "time":
            self.now += 20 * (space == HERE)  # Else both would not have the same time.
            ledger.advance(self.now)
        elif what == "seen":
            self.state.pod_seen(subject)
        elif what == "gone":
            self.state.pod_gone(PodName(space, subject))
        else:
            self._ask(space, subject, binds=what == "bound")

    def _ask(self, space: str, subject: Pod, *, binds: bool) -> None:
        there = self.state.pods.get(subject.name)
        if there is not None and there.node:
            return
        verdict = filter_nodes(subject, NODES[space], self.state, self.now)
        if space == HERE:
            said = (sorted(verdict.nodes), dict(verdict.refused), verdict.in_the_way)
            self.told.append((*said, verdict.recalled, verdict.effects))
        if binds and verdict.nodes:
            nodes = sorted(verdict.nodes)
            seats = self.state.ledger.seats(subject)
            claims = frozenset(it.identity for it in seats[:1] if it.node == nodes[0])
            self.state.pod_seen(replace(subject, node=nodes[0], claims=claims))

    def seen_by(self, space: str) -> Any:
        ledger, snapshot = self.state.ledger, self.state.snapshot
        rows = [snapshot.row(each) for each in NODES[space]]
        columns = [snapshot.columns[each] for each in ("cpu", "pods")]
        cells = [
            int(layer[row, column])
            for layer in (snapshot.held, snapshot.requested)
            for row in rows
            for column in columns
        ]
        refs = [Ref.of_object(space, key) for key in KEYS]
        return cells, [(ledger.get(ref), ledger.claims(ref)) for ref in refs]


@settings(max_examples=150)
@given(st.lists(events(), max_size=25))
def test_holds_and_pods_go_as_if_no_other_namespace_had_any_of_their_names(
    history: list[tuple[str, tuple[str, Any]]],
) -> None:
    def played(those: Sequence[tuple[str, tuple[str, Any]]]) -> Any:
        cluster = Cluster()
        seen = []
        for space, (what, subject) in those:
            cluster.happen(space, what, subject)
            if space == HERE:
                seen.append(cluster.seen_by(HERE))
        return seen, cluster.told

    same(history, played)
