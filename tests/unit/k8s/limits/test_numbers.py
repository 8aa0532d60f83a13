"""Ranges of integers, and amounts of memory."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reserver.cluster.quantity import amount
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import HOME, KEPT, check_memory
from reserver.reservations.reservation import Ref
from reserver.stores.configmap.entries import read_key
from tests.builders import NOW
from tests.unit.k8s.limits.forms import (
    OWN,
    Written,
    of_configmap,
    of_grpc,
    placed,
    refusal,
    spec,
    spread,
    text_of,
)

# Every integer and every amount, at its extremes.

EXTREMES: list[Any] = [
    *(sign * number for number in (2**31, 2**53, 2**63, 2**64, 10**19, 10**40) for sign in (1, -1)),
    *(-(2**31) - 1, -(2**63) - 1, -1, 0),
    *(1e19, -1e19, 1e40, 1e41, 1e308, -1e308, 0.5, 1e-9, 1e-300, 1.0),
    *("9223372036854775808", "9" * 64, "9" * 65, "1e19", "1e308", "-1e40", "1e-300", "NaN"),
    *("inf", "-inf", "", "0x10", "1_000", "\u0661", "+5", "5.", "-0", " 1", "1 ", "1e", "e1", "."),
    *(True, None, [], {}, [1]),
]
FIELDS: dict[str, Callable[[Any], Written]] = {
    "slots": lambda v: spec(slots=v),
    "priority": lambda v: spec(preemptible=True, priority=v),
    "ttl": lambda v: spec(ttl=v),
    "expiresAt": lambda v: spec(expiresAt=v),
    "resources.cpu": lambda v: spec(resources={"cpu": v}),
    "resources.memory": lambda v: spec(resources={"memory": v}),
    "resources.example.com/gpu": lambda v: spec(resources={"example.com/gpu": v}),
    "placement.topologySpreadConstraints[0].maxSkew": lambda v: spread(1, maxSkew=v),
    "placement.topologySpreadConstraints[0].minDomains": lambda v: spread(1, minDomains=v),
    "placement.tolerations[0].tolerationSeconds": lambda v: placed(
        tolerations=[{"operator": "Exists", "tolerationSeconds": v}]
    ),
    "placements[0].slots": lambda v: spec(placements=[{"node": "n", "slots": v}]),
}
RANGES = {
    "slots": (1, HOME.slots),
    "priority": (-(2**31), 1_000_000_000),
    "placement.topologySpreadConstraints[0].maxSkew": (1, 2**31 - 1),
    "placement.topologySpreadConstraints[0].minDomains": (1, 2**31 - 1),
    "placement.tolerations[0].tolerationSeconds": (-(2**63), 2**63 - 1),
    "placements[0].slots": (1, HOME.slots),
}
"""The integers that are accepted."""


@pytest.mark.parametrize("field", FIELDS)
def test_a_number_is_in_its_range_or_refused_at_its_field(field: str) -> None:
    for value in EXTREMES:
        error = refusal(of_configmap, text_of(FIELDS[field](value)))
        if error is not None:
            assert error.path.startswith(field.partition(".")[0].removesuffix("[0]"))
            assert error.remedy
            assert len(str(error)) < 500
        if field in RANGES and isinstance(value, int) and not isinstance(value, bool):
            least, most = RANGES[field]
            assert (error is None) == (least <= value <= most)
            if error is not None and value > most:
                assert str(value)[:50] in error.problem
        elif field in RANGES and value is not None:
            assert error is not None


@pytest.mark.parametrize("field", RANGES)
def test_the_ends_of_a_range_are_accepted(field: str) -> None:
    for value in RANGES[field]:
        read = of_configmap
        assert refusal(read, text_of(FIELDS[field](value))) is None


@pytest.mark.parametrize("value", [2.0**31, 2.0**63, 1e19, 1e308, -1e19, 0.5])
@pytest.mark.parametrize("field", ["maxSkew", "minDomains"])
def test_a_number_in_a_struct_of_protobuf_is_in_its_range_or_refused(
    field: str, value: float
) -> None:
    with pytest.raises(InvalidInput) as caught:
        of_grpc(text_of(spread(1, **{field: value})))
    assert caught.value.path == f"placement.topologySpreadConstraints[0].{field}"


ITEM_FIELDS = ("cpu", "mem", "expire")


@pytest.mark.parametrize("field", ITEM_FIELDS)
def test_a_number_of_an_item_is_in_its_range_or_refused_at_its_field(field: str) -> None:
    item = {"pod": "web-0", "namespace": "shop", "cpu": 1, "mem": 1, "expire": int(NOW) + 60}
    most = {"cpu": 2**53, "mem": 2**53, "expire": 253_402_300_799}[field]
    for value in EXTREMES:
        text = json.dumps([item | {field: value}])
        entries = read_key(Ref(OWN, "reservations", "worker-1"), text, NOW)
        assert all(problem.error.path == f"[0].{field}" for problem in entries.problems)
        if isinstance(value, int) and not isinstance(value, bool):
            assert bool(entries.reservations) == (0 <= value <= most)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("4", "did you mean 4Gi?"),
        ("1.5", "did you mean 1.5Gi?"),
        ("500m", "did you mean 500Mi?"),
        ("100k", "did you mean 100Mi?"),
        ("64Ki", "did you mean 64Mi?"),
        ("1023Ki", "did you mean 1023Mi?"),
        ("1e3", "write it in Mi or Gi"),
        ("900000000n", "write it in Mi or Gi"),
    ],
)
def test_an_amount_of_memory_that_nobody_means_is_refused_with_the_one_meant(
    text: str, remedy: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_memory(amount("memory", text), text, "resources.memory", HOME.least_memory)
    assert (refused.value.path, refused.value.remedy) == ("resources.memory", remedy)
    assert refused.value.problem.startswith(f"{text} is {amount('memory', text)} byte")


def test_no_memory_a_mebibyte_and_what_was_in_force_are_taken() -> None:
    for text in ("0", "1Mi", "1024Ki", "2M"):
        check_memory(amount("memory", text), text, "", HOME.least_memory)
    check_memory(1, "1", "", KEPT.least_memory)
