"""The forms of a data key that people and managers write."""

import json

import pytest

from reserver.cluster.pod import PodName
from reserver.reservations.enums import Policy
from reserver.stores.entries import Entries
from tests.unit.stores.written import (
    LONG,
    SEEN,
    SHORT,
    SPEC,
    YAML,
    item,
    items,
    one,
    read,
    refusal,
    spec,
)

# The forms read alike.


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param(spec(expiresAt="2030-03-17T17:46:39Z"), "web", id="JSON"),
        pytest.param(YAML, "web", id="YAML"),
        pytest.param(items(SHORT), "worker-1", id="list, short names"),
        pytest.param(items(LONG), "worker-1", id="list, long names"),
    ],
)
def test_all_forms_say_the_same(text: str, key: str) -> None:
    read_ = one(text, key)
    assert read_.node == "worker-1"
    assert read_.owners == (PodName("shop", "web-0"),)
    assert read_.resources == {"cpu": 2000, "memory": 4 * 2**30, "pods": 1}
    assert read_.slots == 1
    assert read_.starts_at is None
    assert read_.expires_at == 1899999999
    assert read_.policy is Policy.PREFER


def test_a_list_may_hold_many_pods_and_each_is_told_apart() -> None:
    entries = read(items(item(), item(pod="web-1"), item(namespace="other")), "worker-1")
    assert [str(r.ref) for r in entries.reservations] == [
        "shop/store/worker-1[shop/web-0]",
        "shop/store/worker-1[shop/web-1]",
        "shop/store/worker-1[other/web-0]",
    ]


def test_fields_that_old_managers_add_to_a_list_are_passed_over() -> None:
    assert one(items(item(comment="x", cpus={})), "worker-1").resources["cpu"] == 2000


def test_the_short_and_the_long_form_may_stand_in_one_list() -> None:
    assert len(read(items(LONG, item(pod="web-1")), "worker-1").reservations) == 2


@pytest.mark.parametrize("text", ["[]", "null", "~", "# nothing yet", "---"])
def test_nothing_written_is_nothing_wrong(text: str) -> None:
    assert read(text, "worker-1") == Entries()


def test_everything_that_a_spec_can_say_is_read() -> None:
    full = one(
        spec(
            owners=[{"pod": {"name": "web-0"}}, {"pod": {"name": "db.0", "namespace": "data"}}],
            resources={
                "cpu": 0.5,
                "memory": "1.5Gi",
                "ephemeral-storage": 10,
                "hugepages-2Mi": "4Mi",
                "nvidia.com/gpu": "1",
                "pods": "3",
            },
            slots=2,
            startsAt="2029-12-31T23:00:00-01:00",
            policy="Require",
            preemptible=True,
            priority=500,
            reusable=False,
        )
    )
    assert full.owners == (PodName("data", "db.0"), PodName("shop", "web-0"))
    assert full.resources == {
        "cpu": 500,
        "memory": 3 * 2**29,
        "ephemeral-storage": 10,
        "hugepages-2Mi": 4 * 2**20,
        "nvidia.com/gpu": 1,
        "pods": 3,
    }
    assert full.slots == 2
    assert full.starts_at == 1893456000
    assert full.policy is Policy.REQUIRE
    assert full.yields_above == 500


def test_a_reservation_yields_to_priority_only_if_it_says_so() -> None:
    assert one(spec()).yields_above is None
    assert one(spec(preemptible=False)).identity == one(spec()).identity
    assert one(spec(preemptible=True)).yields_above == 0
    assert one(spec(preemptible=True, priority=-7)).yields_above == -7


def test_reservations_of_earlier_versions_keep_their_identity() -> None:
    """A claim names it: if it changed with an upgrade, claimed entries would hold again."""
    text = json.dumps(
        {"owners": [{"pod": {"name": "a"}}], "resources": {"cpu": 1}, "node": "n", "ttl": 0}
    )
    assert one(text).digest == "b0b5c5f4faafa1d6"


# When it expires.


@pytest.mark.parametrize(
    ("changes", "expires_at", "unstamped"),
    [
        pytest.param({}, SEEN, False, id="a moment"),
        pytest.param({"ttl": "5m"}, SEEN, False, id="a moment wins over a ttl"),
        pytest.param({"expiresAt": None}, SEEN + 86400, True, id="nothing said: a day"),
        pytest.param({"expiresAt": None, "ttl": "90s"}, SEEN + 90, True, id="seconds"),
        pytest.param({"expiresAt": None, "ttl": "1h30m"}, SEEN + 5400, True, id="hours, minutes"),
        pytest.param({"expiresAt": None, "ttl": "1.5h"}, SEEN + 5400, True, id="a fraction"),
        pytest.param({"expiresAt": None, "ttl": "1500ms"}, SEEN + 1, True, id="milliseconds"),
        pytest.param({"expiresAt": None, "ttl": "0"}, None, False, id="never"),
        pytest.param({"expiresAt": None, "ttl": 0}, None, False, id="never, as a number"),
    ],
)
def test_a_spec_expires_when_it_says(
    changes: dict[str, object], expires_at: float | None, *, unstamped: bool
) -> None:
    entries = read(spec(**changes))
    assert [r.expires_at for r in entries.reservations] == [expires_at]
    assert entries.unstamped == unstamped


@pytest.mark.parametrize(
    ("expiry", "at"),
    [
        (1899999999, 1899999999),
        (0, 0),
        ("2030-03-17T17:46:39Z", 1899999999),
        ("2030-03-17T18:46:39+01:00", 1899999999),
        ("2030-03-17T17:46:39.5Z", 1899999999.5),
    ],
)
def test_an_item_expires_at_unix_seconds_or_an_rfc_3339_time(expiry: object, at: float) -> None:
    assert one(items(item(expire=expiry)), "worker-1").expires_at == at


@pytest.mark.parametrize(
    "expiry",
    [
        1899999999000,
        -1,
        1.5,
        True,
        "",
        "soon",
        "1899999999",
        "2030-03-17",
        "2030-03-17T17:46:39",
        "2030-13-17T17:46:39Z",
        "2030-03-17T25:00:00Z",
        [],
        {},
        10**400,
    ],
    ids=str,
)
def test_what_is_no_moment_is_refused(expiry: object) -> None:
    error = refusal(items(item(expire=expiry)), "worker-1")
    assert error.path in {"[0].expire", "[0]"}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"expiresAt": "tomorrow"}, "expiresAt"),
        ({"expiresAt": "2030-01-31T10:00:00"}, "expiresAt"),
        ({"expiresAt": 1899999999}, "expiresAt"),
        ({"startsAt": "now"}, "startsAt"),
        ({"startsAt": "2031-01-01T00:00:00Z"}, "startsAt"),
        ({"startsAt": SPEC["expiresAt"]}, "startsAt"),
        *(
            ({"expiresAt": None, "ttl": ttl}, "ttl")
            for ttl in ("1d", "-5m", "5", 5, "", "h", "1h 5m", "forever", "1e3s", "∞")
        ),
    ],
    ids=str,
)
def test_what_is_no_moment_or_duration_in_a_spec_is_refused(
    changes: dict[str, object], path: str
) -> None:
    assert refusal(spec(**changes)).path == path


# The identity of reservations.


def test_the_same_reservation_written_differently_is_the_same() -> None:
    short, long = one(items(SHORT), "worker-1"), one(items(LONG), "worker-1")
    assert short.identity == long.identity
    moment = spec(expiresAt="2030-03-17T18:46:40+01:00")
    assert one(spec()).identity == one(moment).identity == one(spec(slots=1)).identity
    backwards = json.dumps(dict(reversed(SPEC.items())), indent=3)
    assert one(backwards).identity == one(spec()).identity


@pytest.mark.parametrize(
    "changes",
    [
        {"node": "worker-2"},
        {"slots": 2},
        {"resources": {"cpu": "3", "memory": "4Gi"}},
        {"owners": [{"pod": {"name": "web-1"}}]},
        {"expiresAt": "2030-03-17T17:46:41Z"},
        {"startsAt": "2029-01-01T00:00:00Z"},
        {"policy": "Require"},
        {"preemptible": True},
    ],
    ids=str,
)
def test_another_reservation_at_the_same_place_is_another_one(changes: dict[str, object]) -> None:
    assert one(spec()).identity != one(spec(**changes)).identity
    assert one(spec()).ref == one(spec(**changes)).ref


def test_the_same_words_at_another_place_are_another_reservation() -> None:
    assert one(spec(), "web").identity != one(spec(), "api").identity
