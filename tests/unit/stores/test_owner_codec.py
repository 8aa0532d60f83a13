import msgspec
import pytest

from reserver.cluster.pod import Controller, PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import HOME, TENANT, SpecLimits
from reserver.stores.codec import owner_codec
from reserver.stores.codec.owner_codec import OwnerEntry, Owners
from tests.builders import pod


def read(*entries: object, limits: SpecLimits = HOME) -> Owners:
    written = msgspec.convert(list(entries), list[OwnerEntry])
    return owner_codec.read(written, "shop", limits)


def test_what_only_names_pods_is_told_from_what_matches_them() -> None:
    owners = read(
        {"pod": {"name": "a"}},
        {"pod": {"name": "b", "namespace": "data"}},
        {"pod": {"name": "c"}, "selector": {"matchLabels": {"app": "web"}}},
        {"controller": {"kind": "ReplicaSet", "name": "web", "namespace": "data"}},
    )
    assert owners.named == {PodName("shop", "a"), PodName("data", "b")}
    assert [(r.namespace, r.pod, r.controller) for r in owners.rules] == [
        ("shop", "c", ("", "")),
        ("data", "", Controller("ReplicaSet", "web")),
    ]


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "app", "operator": "In", "values": ["web", "db"]}, True),
        ({"key": "app", "operator": "NotIn", "values": ["web"]}, False),
        ({"key": "app", "operator": "Exists"}, True),
        ({"key": "gone", "operator": "DoesNotExist"}, True),
        ({"key": "gone", "operator": "Exists"}, False),
    ],
)
def test_expressions_mean_what_they_mean_in_kubernetes(
    expression: dict[str, object], *, matches: bool
) -> None:
    (rule,) = read({"selector": {"matchExpressions": [expression]}}).rules
    assert rule.matches(pod("web-1", labels={"app": "web"})) is matches


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({}, "owners[0]"),
        ({"selector": {}}, "owners[0].selector"),
        ({"selector": {"matchLabels": {"a b": "c"}}}, "owners[0].selector.matchLabels.a b"),
        ({"selector": {"matchLabels": {"a": "c d"}}}, "owners[0].selector.matchLabels.a"),
        ({"pod": {"name": "A"}}, "owners[0].pod.name"),
        ({"pod": {"name": "a", "namespace": "B"}}, "owners[0].pod.namespace"),
        (
            {
                "pod": {"name": "a", "namespace": "x"},
                "selector": {"matchLabels": {"a": "b"}, "namespace": "y"},
            },
            "owners[0].selector.namespace",
        ),
        ({"replaces": {"uid": "u"}}, "owners[0]"),
        ({"pod": {"name": "a"}, "replaces": {"uid": ""}}, "owners[0].replaces.uid"),
        (
            {"pod": {"name": "a"}, "replaces": {"uid": "u", "existing": ["a b"]}},
            "owners[0].replaces.existing[0]",
        ),
        (
            {"pod": {"name": "a"}, "replaces": {"uid": "u", "existing": ["u"] * 101}},
            "owners[0].replaces.existing",
        ),
        ({"controller": {"kind": "rs", "name": "web"}}, "owners[0].controller.kind"),
        ({"controller": {"kind": "Job", "name": ""}}, "owners[0].controller.name"),
        *(
            ({"selector": {"matchExpressions": [written]}}, f"{at}.{field}")
            for at in ["owners[0].selector.matchExpressions[0]"]
            for written, field in [
                ({"key": "", "operator": "Exists"}, "key"),
                ({"key": "app", "operator": "Gt", "values": ["1"]}, "operator"),
                ({"key": "app", "operator": "In"}, "values"),
                ({"key": "app", "operator": "Exists", "values": ["a"]}, "values"),
                ({"key": "app", "operator": "In", "values": ["é"]}, "values[0]"),
            ]
        ),
    ],
)
def test_what_is_no_owner_is_refused_at_its_field(entry: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(entry)
    assert refused.value.path == path


def test_nobody_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput, match="owners: is empty"):
        read()


def test_owners_of_another_namespace_are_refused_where_that_is_not_allowed() -> None:
    assert read({"pod": {"name": "a", "namespace": "shop"}}, limits=TENANT).named
    with pytest.raises(InvalidInput, match=r"owners\[0\]: namespace 'data' is not"):
        read({"pod": {"name": "a", "namespace": "data"}}, limits=TENANT)
