"""The bounds on one object, in each of its forms."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import json_format

from reserver.cluster.quantity import amount
from reserver.errors import InvalidInput
from reserver.grpc import documents
from reserver.k8s.objects.limits import (
    HOME,
    ITEM_BYTES,
    KEPT,
    MOST_IN_SET,
    SET_BYTES,
    SET_SLOTS_BESIDE_EACH_OTHER,
    TENANT,
    SpecLimits,
    check_memory,
)
from reserver.k8s.objects.objects import decode
from reserver.reservations.reservation import Ref
from reserver.stores.codec import document, spec_codec
from reserver.stores.configmap.entries import read_key
from reserver.stores.entries import Entries
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.entries import read_object
from reserver.v1 import reservation_pb2 as pb
from tests.builders import NOW

OWN = "reserver-system"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ALTERNATIVE = "nodeSelectorTerms[0]"
Written = dict[str, Any]


def spec(**fields: Any) -> Written:
    return {"owners": [{"pod": {"name": "web-0"}}], "resources": {"cpu": "1"}} | fields


def text_of(written: Written, size: int = 0) -> str:
    text = json.dumps(written, separators=(",", ":"))
    return text + " " * (size - len(text))


def item_in(namespace: str, spec: str) -> ReservationObject:
    metadata = {"name": "r", "namespace": namespace, "uid": "u"}
    raw = f'{{"metadata": {json.dumps(metadata)}, "spec": {spec}}}'
    return decode(ReservationObject, raw.encode())


def of_tenant(text: str) -> Entries:
    return read_object(item_in("shop", text), NOW, OWN)


def of_home(text: str) -> Entries:
    return read_object(item_in(OWN, text), NOW, OWN)


def of_configmap(text: str) -> Entries:
    return read_key(Ref(OWN, "reservations", "r"), text, NOW)


def of_grpc(text: str) -> Entries:
    """Read what a client sends who writes this."""
    sent = json_format.ParseDict(json.loads(text), pb.ReservationSpec())
    ref = Ref(OWN, "reservations", "r")
    return Entries((spec_codec.read(documents.write(sent, NOW), ref, NOW),))


READERS: dict[str, tuple[Callable[[str], Entries], SpecLimits]] = {
    "a tenant's Reservation": (of_tenant, TENANT),
    "a Reservation in Reserver's own namespace": (of_home, HOME),
    "a ConfigMap": (of_configmap, HOME),
    "gRPC": (of_grpc, HOME),
}


def refusal(read: Callable[[str], Entries], text: str) -> InvalidInput | None:
    try:
        problems = read(text).problems
    except InvalidInput as exc:
        return exc
    return problems[0].error if problems else None


def expressions(number: int) -> list[Written]:
    return [{"key": f"k{index}", "operator": "DoesNotExist"} for index in range(number)]


def values(number: int) -> list[Written]:
    return [{"key": "k", "operator": "In", "values": [f"v{index}" for index in range(number)]}]


def placed(**fields: Any) -> Written:
    return spec(placement=fields)


def near(*terms: Written, kind: str = "podAntiAffinity") -> Written:
    whole = [{"topologyKey": "zone", "labelSelector": {}} | term for term in terms]
    return placed(affinity={kind: {REQUIRED: whole}})


def nodes(*terms: Written) -> Written:
    return placed(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def spread(number: int, **fields: Any) -> Written:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} | fields
    return placed(topologySpreadConstraints=[whole] * number)


# What is counted, the field that is named, and a spec that has so many.
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


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("it was read")

    monkeypatch.setattr(document, "parse", never)
    monkeypatch.setattr(json_format, "MessageToDict", never)


def is_about_bytes(error: InvalidInput | None, size: int, most: int) -> bool:
    return error is not None and f"{size} bytes" in error.problem and str(most) in error.remedy


@pytest.mark.parametrize("reader", ["a tenant's Reservation", "a ConfigMap"])
def test_what_is_as_long_as_allowed_is_read(reader: str) -> None:
    read, limits = READERS[reader]
    text = text_of(spec())[:-1]
    assert refusal(read, text + " " * (limits.spec_bytes - len(text) - 1) + "}") is None


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("reader", ["a tenant's Reservation", "a ConfigMap"])
@pytest.mark.parametrize("what", ["spaces", "a name", "umlauts", "YAML", "owners"])
def test_what_is_too_long_is_not_even_parsed(reader: str, what: str) -> None:
    read, limits = READERS[reader]
    size = limits.spec_bytes + 1
    texts = {
        "spaces": text_of(spec())[:-1] + " " * (size - len(text_of(spec()))) + "}",
        "a name": text_of(spec(node="n" * size)),
        "umlauts": json.dumps(spec(node="ü" * (size // 2)), ensure_ascii=False),
        "YAML": json.dumps("owners: []\n" * (size // 8)) if reader != "a ConfigMap" else "a" * size,
        "owners": text_of(spec(owners=[{"pod": {"name": f"p{i}"}} for i in range(size // 20)])),
    }
    text = texts[what]
    assert is_about_bytes(refusal(read, text), len(text.encode()), limits.spec_bytes)


@pytest.mark.usefixtures("unread")
def test_a_message_that_is_too_long_is_not_even_converted() -> None:
    message = pb.ReservationSpec(node="n" * HOME.spec_bytes)
    with pytest.raises(InvalidInput) as caught:
        documents.write(message, NOW)
    assert is_about_bytes(caught.value, message.ByteSize(), HOME.spec_bytes)


def test_an_item_of_a_list_that_is_too_long_costs_no_other() -> None:
    item = {"pod": "web-0", "namespace": "shop", "cpu": 1, "mem": 1, "expire": int(NOW) + 60}
    long = item | {"pod": "web-1", "note": "x" * ITEM_BYTES}
    entries = read_key(Ref(OWN, "reservations", "worker-1"), json.dumps([item, long]), NOW)
    assert [r.ref.item for r in entries.reservations] == ["shop/web-0"]
    (problem,) = entries.problems
    assert problem.error.path == "[1]"
    assert is_about_bytes(problem.error, len(json.dumps(long)), ITEM_BYTES)


def test_a_spec_that_reserver_has_placed_on_many_nodes_is_still_read() -> None:
    parts = [
        {"node": f"ip-10-0-{i}.eu-central-1.compute.internal", "slots": 1} for i in range(5000)
    ]
    text = text_of(spec(slots=5000, placements=parts))
    (reservation,) = of_configmap(text).reservations
    assert len(reservation.parts) == 5000


@pytest.mark.parametrize("number", [0, MOST_IN_SET + 1])
def test_a_set_is_neither_empty_nor_too_large(number: int) -> None:
    with pytest.raises(InvalidInput, match=f"{number} reservations"):
        documents.check_set([pb.ReservationSpec()] * number)


def test_a_set_is_not_too_long() -> None:
    each = pb.ReservationSpec(node="n" * (SET_BYTES // MOST_IN_SET))
    with pytest.raises(InvalidInput, match="bytes are too many"):
        documents.check_set([each] * MOST_IN_SET)


def test_a_set_has_few_slots_that_are_judged_one_by_one() -> None:
    def of(slots: int, written: Written) -> Any:
        (one,) = of_configmap(text_of(written | {"slots": slots})).reservations
        return one

    neighbours = of(20, near({}))
    fitting = SET_SLOTS_BESIDE_EACH_OTHER // 20
    spec_codec.check_set([neighbours] * fitting + [of(1_000, spec())] * 10)
    with pytest.raises(InvalidInput, match=f"{20 * fitting + 1} slots"):
        spec_codec.check_set([neighbours] * fitting + [of(1, near({}))])


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
