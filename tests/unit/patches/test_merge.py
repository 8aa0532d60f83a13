"""The merge of a patch into a pod's spec."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.constraints import Constraints
from reserver.k8s.objects.constraints import WrittenDemands, demands
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import encode
from reserver.patches.model import (
    MOST_BYTES,
    MOST_TERMS,
    MOST_TOLERATIONS,
    PREFERRED,
    REQUIRED,
    Conflict,
    Scheduling,
    merged,
)

SPOT = {"key": "spot", "operator": "Exists"}


def term(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def node_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def preferring(*nodes: str) -> dict[str, Any]:
    weighed = [{"weight": 1, "preference": term("kubernetes.io/hostname", node)} for node in nodes]
    return {"nodeAffinity": {PREFERRED: weighed}}


def into(pod: Scheduling, injected: Scheduling) -> Scheduling:
    found = merged(pod, injected)
    assert isinstance(found, Scheduling), found
    return found


def test_a_pod_that_says_nothing_says_what_is_injected() -> None:
    injected = Scheduling(
        node_selector={"disk": "ssd"}, affinity=preferring("node-2"), tolerations=(SPOT,)
    )
    assert into(Scheduling(), injected) == injected


def test_what_a_pod_says_stands_first_and_stays() -> None:
    pod = Scheduling(
        node_selector={"zone": "a"},
        affinity={**preferring("node-1"), "podAffinity": {PREFERRED: ["near"]}},
        tolerations=({"key": "gpu", "operator": "Exists"},),
    )
    injected = Scheduling(
        node_selector={"disk": "ssd"}, affinity=preferring("node-2"), tolerations=(SPOT,)
    )
    assert into(pod, injected) == Scheduling(
        node_selector={"zone": "a", "disk": "ssd"},
        affinity={**preferring("node-1", "node-2"), "podAffinity": {PREFERRED: ["near"]}},
        tolerations=({"key": "gpu", "operator": "Exists"}, SPOT),
    )


def test_what_a_pod_says_already_is_not_said_twice() -> None:
    said = Scheduling(
        node_selector={"disk": "ssd"}, affinity=preferring("node-2"), tolerations=(SPOT,)
    )
    assert into(said, said) == said


def test_alternatives_for_nodes_have_to_be_met_by_both() -> None:
    pod = Scheduling(affinity=node_affinity(term("zone", "a"), term("zone", "b")))
    injected = Scheduling(affinity=node_affinity(term("disk", "ssd"), term("gpu", "yes")))
    terms = into(pod, injected).affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    wanted = [
        (term("zone", zone), term(*other))
        for zone in "ab"
        for other in (("disk", "ssd"), ("gpu", "yes"))
    ]
    assert terms == [
        {"matchExpressions": one["matchExpressions"] + other["matchExpressions"]}
        for one, other in wanted
    ]


@pytest.mark.parametrize(
    ("pod", "injected", "field"),
    [
        (
            Scheduling(node_selector={"zone": "a"}),
            Scheduling(node_selector={"zone": "b"}),
            "nodeSelector.zone",
        ),
        (
            Scheduling(affinity=node_affinity(*[term("a", str(n)) for n in range(MOST_TERMS)])),
            Scheduling(affinity=node_affinity(term("b", "1"), term("b", "2"))),
            f"affinity.nodeAffinity.{REQUIRED}",
        ),
        (
            Scheduling(affinity=node_affinity({})),
            Scheduling(affinity=node_affinity(term("b", "1"))),
            f"affinity.nodeAffinity.{REQUIRED}",
        ),
        (
            Scheduling(affinity={"podAffinity": {REQUIRED: list(range(MOST_TERMS))}}),
            Scheduling(affinity={"podAffinity": {REQUIRED: ["one more"]}}),
            f"affinity.podAffinity.{REQUIRED}",
        ),
        (
            Scheduling(tolerations=tuple({"key": str(n)} for n in range(MOST_TOLERATIONS))),
            Scheduling(tolerations=(SPOT,)),
            "tolerations",
        ),
    ],
    ids=["selector", "too-many-alternatives", "no-node", "too-many-terms", "too-many-tolerations"],
)
def test_what_excludes_each_other_is_a_conflict_at_its_field(
    pod: Scheduling, injected: Scheduling, field: str
) -> None:
    found = merged(pod, injected)
    assert isinstance(found, Conflict)
    assert (found.field, str(found).startswith(f"spec.{field}: ")) == (field, True)


def test_a_pod_beyond_the_bounds_takes_a_patch_that_adds_nothing_there() -> None:
    pod = Scheduling(tolerations=tuple({"key": str(n)} for n in range(MOST_TOLERATIONS + 1)))
    assert into(pod, Scheduling(node_selector={"disk": "ssd"})).node_selector == {"disk": "ssd"}


class Counted(dict[str, str]):
    """An entry that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return dict.__eq__(self, other)

    __hash__ = None


def requiring(alternatives: int, requirements: int, name: str) -> Scheduling:
    """Return a node affinity with so many terms of so many requirements."""
    asked = [
        {"key": f"{name}{number}", "operator": "In", "values": ["a" * 40]}
        for number in range(requirements)
    ]
    terms = [{"matchExpressions": asked} for _ in range(alternatives)]
    return Scheduling(affinity=node_affinity(*terms))


@pytest.mark.parametrize(
    ("pod", "injected"),
    [
        pytest.param(requiring(16, 4, "a"), requiring(4, 8, "b"), id="alternatives multiply"),
        pytest.param(requiring(1, 100, "a"), requiring(1, 120, "b"), id="requirements add up"),
        pytest.param(
            Scheduling(node_selector={f"k{n}": "v" * 60 for n in range(170)}),
            Scheduling(tolerations=tuple({"key": f"{n}" * 60} for n in range(90))),
            id="parts add up",
        ),
        pytest.param(
            Scheduling(affinity={"podAffinity": {PREFERRED: ["x" * MOST_BYTES]}}),
            Scheduling(node_selector={"disk": "ssd"}),
            id="the pod alone",
        ),
    ],
)
def test_what_would_say_more_than_is_read_of_a_pod_is_a_conflict(
    pod: Scheduling, injected: Scheduling
) -> None:
    found = merged(pod, injected)
    assert isinstance(found, Conflict)
    assert f"more than {MOST_BYTES}" in str(found)
    assert POD.part_bytes == MOST_BYTES


@given(
    st.lists(st.integers(0, 3), max_size=6),
    st.lists(st.integers(0, 3), max_size=6),
)
def test_entries_are_the_same_in_whatever_order_their_fields_stand(
    here: list[int], there: list[int]
) -> None:
    pod = Scheduling(tolerations=tuple({"key": str(n), "effect": "NoExecute"} for n in here))
    patch = Scheduling(tolerations=tuple({"effect": "NoExecute", "key": str(n)} for n in there))
    keys = [each["key"] for each in into(pod, patch).tolerations]
    assert keys == [*map(str, here), *(str(n) for n in there if n not in here)]


def test_what_a_giant_pod_says_is_not_compared() -> None:
    many = [Counted(key=str(number)) for number in range(100_000)]
    required = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": many}]}}}
    for pod, injected in (
        (Scheduling(tolerations=tuple(many)), Scheduling(tolerations=(SPOT,))),
        (Scheduling(affinity=required), Scheduling(affinity=node_affinity(term("a", "b")))),
        (
            Scheduling(affinity=node_affinity(*many)),
            Scheduling(affinity=node_affinity(term("a", "b"))),
        ),
    ):
        assert isinstance(merged(pod, injected), Conflict)
    assert Counted.compared == 0


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)
TERMS = st.lists(
    st.builds(term, st.sampled_from("abc"), st.sampled_from("xy")), min_size=1, max_size=3
)
PARTS = st.builds(
    Scheduling,
    node_selector=st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=1),
    affinity=st.one_of(st.just({}), TERMS.map(lambda terms: node_affinity(*terms))),
)


def read(scheduling: Scheduling) -> Constraints:
    written = WrittenDemands(
        selector=encode(scheduling.node_selector), affinity=encode(scheduling.affinity)
    )
    return demands(written).constraints


def takes(scheduling: Scheduling, labels: dict[str, str]) -> bool:
    constraints = read(scheduling)
    terms = constraints.node_terms
    return constraints.node_selector.matches(labels) and (
        terms is None or any(each.labels.matches(labels) for each in terms)
    )


@given(PARTS, PARTS, LABELS)
def test_a_node_takes_the_patched_pod_if_it_meets_the_pod_and_the_patch(
    pod: Scheduling, injected: Scheduling, labels: dict[str, str]
) -> None:
    found = merged(pod, injected)
    both = takes(pod, labels) and takes(injected, labels)
    if isinstance(found, Conflict):
        assert not both
    else:
        assert takes(found, labels) == both


@given(st.lists(PARTS, min_size=2, max_size=3), LABELS)
def test_patches_that_agree_mean_the_same_in_any_order(
    parts: list[Scheduling], labels: dict[str, str]
) -> None:
    outcomes = set()
    for order in permutations(parts):
        pod: Scheduling | Conflict = Scheduling()
        for injected in order:
            if isinstance(pod, Scheduling):
                pod = merged(pod, injected)
        if isinstance(pod, Conflict):
            return
        outcomes.add(takes(pod, labels))
    assert len(outcomes) == 1
