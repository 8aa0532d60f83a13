"""A refusal shows no namespace the reservations of another."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod, PodName
from reserver.reservations.reservation import Ref
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.filter import HELD, filter_nodes
from reserver.scheduling.pod_events import event_for
from reserver.scheduling.state import ANOTHERS, State
from tests.builders import NOW, node, pod, reservation, state_of

HOME, TENANT, OTHER = "reserver-system", "shop", "secret-project"


def held_by(*refs: Ref) -> State:
    """Return one node for each reservation, which holds the whole node."""
    things = [node(f"n{number}", cpu="4") for number in range(len(refs))]
    holds = [
        replace(reservation(f"r{number}", node=f"n{number}", cpu="4"), ref=at)
        for number, at in enumerate(refs)
    ]
    state = state_of(*things, *holds)
    state.public_namespaces = frozenset({HOME})
    return state


def stranger(namespace: str = TENANT) -> Pod:
    return replace(pod("stranger", cpu="1"), name=PodName(namespace, "stranger"))


def said(asking: Pod, state: State) -> set[str]:
    """Return all messages about a pod that every node refuses."""
    names = [name for name in ("n0", "n1", "n2") if state.snapshot.has_node(name)]
    verdict = filter_nodes(asking, names, state, NOW)
    telling = event_for(asking, len(names), verdict, state)
    assert telling is not None
    assert set(verdict.refused) == set(names)
    refusals = {str(judge_bind(asking, name, state, NOW).refusal) for name in names}
    return {*verdict.refused.values(), *refusals, telling.message, telling.cause}


@pytest.mark.parametrize(
    ("at", "named"),
    [
        (Ref(HOME, "reservations", "web-move-1"), True),
        (Ref.of_object(HOME, "web-move-1"), True),
        (Ref.of_object(TENANT, "ours"), True),
        (Ref(TENANT, "store", "ours", "shop/web-0"), True),
        (Ref.of_object(OTHER, "launch-of-the-thing"), False),
        (Ref(OTHER, "store", "launch-of-the-thing"), False),
        (Ref(OTHER, "store", "launches", "secret-project/launch"), False),
        (Ref.of_object("shop-2", "launch-of-the-thing"), False),
    ],
    ids=str,
)
def test_who_is_refused_hears_names_of_its_own_namespace_and_of_reservers_only(
    at: Ref, *, named: bool
) -> None:
    words = said(stranger(), held_by(at))
    assert f"held by {f'reservation {at}' if named else ANOTHERS}" in words
    text = " ".join(words)
    assert (str(at) in text) == named
    assert named or (at.namespace not in text and at.key not in text)


def test_several_of_another_namespace_are_one_in_the_words() -> None:
    state = held_by(
        Ref.of_object(OTHER, "a"), Ref.of_object("third", "b"), Ref.of_object(TENANT, "ours")
    )
    words = said(stranger(), state)
    assert words >= {f"held by {ANOTHERS}", "held by reservation shop/ours"}
    assert len(words) == 4  # The two holds, the text of the event, and its cause.
    assert not any("third" in word or OTHER in word for word in words)


def test_many_of_another_namespace_are_told_in_the_words_for_many() -> None:
    names = [f"n{number}" for number in range(5)]
    state = held_by(*(Ref.of_object(OTHER, name) for name in names))
    assert set(filter_nodes(stranger(), names, state, NOW).refused.values()) == {HELD}


def test_each_hears_of_its_own() -> None:
    state = held_by(Ref.of_object(OTHER, "a"), Ref(HOME, "store", "b"))
    for namespace in (TENANT, OTHER, "third", HOME):
        words = said(stranger(namespace), state)
        assert (f"held by {ANOTHERS}" in words) == (namespace != OTHER)
        assert f"held by reservation {HOME}/store/b" in words


def test_nothing_is_public_unless_it_is_said() -> None:
    state = held_by(Ref(HOME, "store", "b"))
    state.public_namespaces = frozenset()
    assert f"held by {ANOTHERS}" in said(stranger(), state)
