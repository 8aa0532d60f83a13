"""Closed nodes: which holds avoid them, which stay, and why there is no other place."""

from math import inf

import pytest

from reserver.cluster.constraints import PodTerm
from reserver.cluster.labels import equals
from reserver.cluster.node import HOSTNAME
from reserver.reservations.reservation import Reservation
from reserver.scheduling.closures import Closure
from reserver.scheduling.placement import Placed
from tests.builders import NAMESPACE, NOW, demanding, node, place, reservation, rule, state_of

PLANNED = Closure("had maintenance planned", since=NOW + 100, until=NOW + 200)
APART = PodTerm(equals({"app": "web"}), "kubernetes.io/hostname", frozenset({NAMESPACE}))


def wanted(**more: object) -> Reservation:
    return reservation("r", node="", cpu="2", **more)  # type: ignore[arg-type]


def by_closure(closures: dict[str, Closure]) -> dict[Closure, frozenset[str]]:
    """Return the nodes of each closure."""
    return {
        each: frozenset(node for node, closure in closures.items() if closure == each)
        for each in closures.values()
    }


def placed(asked: Reservation, **closures: Closure) -> Placed:
    state = state_of(
        *(node(name, cpu=cpu, labels={HOSTNAME: name}) for name, cpu in (("a", "4"), ("b", "8")))
    )
    state.closures.set(by_closure(closures))
    return place(asked, asked.slots, state)


@pytest.mark.parametrize(
    ("asked", "closures", "expected"),
    [
        (wanted(), {"a": PLANNED}, {"b": 1}),
        (wanted(expires=NOW + 100), {"a": PLANNED}, {"a": 1}),
        (wanted(expires=NOW + 101), {"a": PLANNED}, {"b": 1}),
        (wanted(starts=NOW - 1), {"a": PLANNED._replace(since=0, until=NOW - 1)}, {"a": 1}),
        (wanted(), {"a": PLANNED, "b": PLANNED}, {}),
        (wanted(), {"a": PLANNED, "b": PLANNED._replace(is_firm=False)}, {"b": 1}),
        (wanted(), {"b": PLANNED._replace(is_firm=False)}, {"a": 1}),
        (wanted(slots=5), {"b": PLANNED._replace(is_firm=False)}, {"a": 2, "b": 3}),
        (wanted(slots=5), {"b": PLANNED}, {}),
        (
            wanted(
                slots=2,
                owners=(),
                rules=(rule(app="web"),),
                placement=demanding(anti_affinity=(APART,)),
            ),
            {"b": PLANNED},
            {},
        ),
        (wanted(), {"elsewhere": PLANNED}, {"a": 1}),
    ],
    ids=[
        "one that never expires",
        "one that is over before",
        "one that overlaps by a second",
        "one that starts when it ends",
        "all are closed",
        "the one that is avoided only",
        "the one that is not avoided",
        "those avoided where there is no other room",
        "never those that are closed",
        "slots that are each other's neighbours",
        "a node that is not known",
    ],
)
def test_a_hold_avoids_nodes_that_close_while_it_lasts(
    asked: Reservation, closures: dict[str, Closure], expected: dict[str, int]
) -> None:
    assert dict(placed(asked, **closures).parts) == expected


def test_the_reason_names_the_closure_and_room_comes_with_its_end() -> None:
    found = placed(wanted(slots=3), a=PLANNED, b=Closure("were not ready", is_vacated=True))
    assert "1 node(s) had maintenance planned" in found.why
    assert "1 node(s) were not ready" in found.why
    assert not found.never


def test_setting_closures_returns_the_nodes_that_changed() -> None:
    state = state_of(node("a"))
    later = PLANNED._replace(until=inf)
    assert state.closures.set(by_closure({"a": PLANNED, "b": PLANNED})) == {"a", "b"}
    assert state.closures.set(by_closure({"a": later, "b": PLANNED})) == {"a"}
    assert state.closures.vacated == frozenset()
    assert state.closures.set({}) == {"a", "b"}
