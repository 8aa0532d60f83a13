"""Bounds on the number of terms of a spec, and on the slots of a set."""

from collections.abc import Callable
from typing import Any

import pytest

from reserver.errors import InvalidInput
from reserver.grpc import documents
from reserver.k8s.objects.limits import HOME, MOST_IN_SET, SET_SLOTS_BESIDE_EACH_OTHER, TENANT
from reserver.stores.codec import spec_codec
from reserver.v1 import reservation_pb2 as pb
from tests.unit.k8s.limits.forms import (
    READERS,
    Written,
    of_configmap,
    of_home,
    of_tenant,
    placed,
    refusal,
    spec,
    spread,
    text_of,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ALTERNATIVE = "nodeSelectorTerms[0]"


def expressions(number: int) -> list[Written]:
    return [{"key": f"k{index}", "operator": "DoesNotExist"} for index in range(number)]


def values(number: int) -> list[Written]:
    return [{"key": "k", "operator": "In", "values": [f"v{index}" for index in range(number)]}]


def near(*terms: Written, kind: str = "podAntiAffinity") -> Written:
    whole = [{"topologyKey": "zone", "labelSelector": {}} | term for term in terms]
    return placed(affinity={kind: {REQUIRED: whole}})


def nodes(*terms: Written) -> Written:
    return placed(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


# The bound, the field in the refusal, and a spec with so many terms.
CAPS: dict[str, tuple[str, str, Callable[[int], Written]]] = {
    "owners": ("owners", "owners", lambda n: spec(owners=[{"pod": {"name": "a"}}] * n)),
    "labels of one owner": (
        "owner_labels",
        "owners",
        lambda n: spec(owners=[{"selector": {"matchLabels": {f"k{i}": "v" for i in range(n)}}}]),
    ),
    "terms of one owner": (
        "owner_labels",
        "owners",
        lambda n: spec(owners=[{"selector": {"matchExpressions": expressions(n)}}]),
    ),
    "values of an owner's term": (
        "values",
        "owners[0].selector.matchExpressions[0].values",
        lambda n: spec(owners=[{"selector": {"matchExpressions": values(n)}}]),
    ),
    "resources": (
        "resources",
        "resources",
        lambda n: spec(resources={f"example.com/r{i}": "1" for i in range(n)}),
    ),
    "slots": ("slots", "slots", lambda n: spec(slots=n)),
    "node selector": (
        "labels",
        "placement",
        lambda n: placed(nodeSelector={f"k{i}": "v" for i in range(n)}),
    ),
    "alternatives for nodes": (
        "terms",
        f"placement.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
        lambda n: nodes(*[{"matchExpressions": expressions(1)}] * n),
    ),
    "labels of an alternative": (
        "labels",
        f"placement.affinity.nodeAffinity.{REQUIRED}.{ALTERNATIVE}.matchExpressions",
        lambda n: nodes({"matchExpressions": expressions(n)}),
    ),
    "values for nodes": (
        "values",
        f"placement.affinity.nodeAffinity.{REQUIRED}.{ALTERNATIVE}.matchExpressions[0].values",
        lambda n: nodes({"matchExpressions": values(n)}),
    ),
    "anti-affinity": (
        "terms",
        f"placement.affinity.podAntiAffinity.{REQUIRED}",
        lambda n: near(*[{}] * n),
    ),
    "affinity": (
        "terms",
        f"placement.affinity.podAffinity.{REQUIRED}",
        lambda n: near(*[{}] * n, kind="podAffinity"),
    ),
    "labels of pods": (
        "labels",
        f"placement.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions",
        lambda n: near({"labelSelector": {"matchExpressions": expressions(n)}}),
    ),
    "labels of namespaces": (
        "labels",
        f"placement.affinity.podAntiAffinity.{REQUIRED}[0].namespaceSelector.matchExpressions",
        lambda n: near({"namespaceSelector": {"matchExpressions": expressions(n)}}),
    ),
    "namespaces": (
        "values",
        f"placement.affinity.podAntiAffinity.{REQUIRED}[0].namespaces",
        lambda n: near({"namespaces": [f"n{i}" for i in range(n)]}),
    ),
    "spread": ("terms", "placement.topologySpreadConstraints", spread),
    "labels of spread": (
        "labels",
        "placement",
        lambda n: spread(1, matchLabelKeys=[f"k{i}" for i in range(n)]),
    ),
    "tolerations": (
        "tolerations",
        "placement.tolerations",
        lambda n: placed(tolerations=[{"operator": "Exists"}] * n),
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("cap", CAPS)
def test_so_much_may_be_said_and_no_more(cap: str, reader: str) -> None:
    read, limits = READERS[reader]
    counted, field, build = CAPS[cap]
    most = getattr(limits, counted)
    assert refusal(read, text_of(build(most))) is None
    error = refusal(read, text_of(build(most + 1)))
    assert error is not None
    assert error.path.removeprefix("spec.") == field
    assert str(most + 1) in error.problem
    assert str(most) in error.remedy


@pytest.mark.parametrize("cap", CAPS)
def test_a_tenant_may_say_less_than_reservers_own_namespace(cap: str) -> None:
    counted, _, build = CAPS[cap]
    text = text_of(build(getattr(HOME, counted)))
    assert refusal(of_home, text) is None
    assert refusal(of_tenant, text) is not None


def test_terms_of_several_kinds_count_together() -> None:
    half = TENANT.terms // 2 + 1
    both = near(*[{}] * half)
    both["placement"] |= spread(half)["placement"]
    error = refusal(of_tenant, text_of(both))
    assert error is not None
    assert error.path == "spec.placement"


@pytest.mark.parametrize("number", [0, MOST_IN_SET + 1])
def test_a_set_is_neither_empty_nor_too_large(number: int) -> None:
    with pytest.raises(InvalidInput, match=f"{number} reservations"):
        documents.check_set([pb.ReservationSpec()] * number)


def test_a_set_has_few_slots_that_are_judged_one_by_one() -> None:
    def of(slots: int, written: Written) -> Any:
        (one,) = of_configmap(text_of(written | {"slots": slots})).reservations
        return one

    neighbours = of(20, near({}))
    fitting = SET_SLOTS_BESIDE_EACH_OTHER // 20
    spec_codec.check_set([neighbours] * fitting + [of(1_000, spec())] * 10)
    with pytest.raises(InvalidInput, match=f"{20 * fitting + 1} slots"):
        spec_codec.check_set([neighbours] * fitting + [of(1, near({}))])
