from datetime import UTC, datetime

import pytest

from reserver import client
from reserver.client import PodOwner, Spec, messages
from reserver.errors import InvalidInput
from reserver.v1 import capacity_pb2, reservation_pb2

OWNERS = (PodOwner(namespace="shop", name="web-0"),)


@pytest.mark.parametrize(
    ("field", "path"), [("slots", "slots"), ("starts_at", "startsAt"), ("node", "node")]
)
def test_a_value_of_a_wrong_type_is_refused_by_the_name_of_its_field(field: str, path: str) -> None:
    spec = Spec(owners=OWNERS, resources={"cpu": "1"}, **{field: object()})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as caught:
        messages.write_spec(spec)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("field", "path"), [("starts_at", "startsAt"), ("expires_at", "expiresAt")]
)
def test_a_time_without_a_zone_is_refused(field: str, path: str) -> None:
    naive = datetime(2030, 1, 31, 10, tzinfo=UTC).replace(tzinfo=None)
    spec = Spec(owners=OWNERS, resources={"cpu": "1"}, **{field: naive})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="2030-01-31T10:00:00 has no time zone") as caught:
        messages.write_spec(spec)
    assert caught.value.path == path
    with pytest.raises(InvalidInput, match="until"):
        messages.write_extension("a", naive)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"resources": {"cpu": 2}}, r"resources: .* amount of cpu is int, not str; write quantit"),
        ({"resources": None}, r"resources: None cannot be sent"),
        ({"ttl": "1h"}, r"ttl: '1h' cannot be sent as str; write timedelta\(hours=1\)"),
        ({"ttl": 3600}, r"ttl: 3600 cannot be sent"),
        ({"policy": "Always"}, r"policy: .*; write Policy.PREFER or Policy.REQUIRE"),
        ({"owners": ("shop/web-0",)}, r"owners: .*'shop/web-0' is neither a PodOwner nor"),
        ({"owners": None}, r"owners: None cannot be sent"),
        ({"slots": "3"}, r"slots: '3' cannot be sent as str; see Spec.slots"),
        ({"reusable": "yes"}, r"reusable: 'yes' cannot be sent as str; see Spec.reusable"),
        ({"node": 3}, r"node: 3 cannot be sent as int; see Spec.node"),
        ({"placement": "anywhere"}, r"placement: 'anywhere' cannot be sent"),
        ({"description": b"\xff"}, r"description: "),
    ],
)
def test_what_is_wrong_is_said_with_the_field_and_what_to_write(
    fields: dict[str, object], said: str
) -> None:
    given: dict[str, object] = {"owners": OWNERS, "resources": {"cpu": "1"}, **fields}
    with pytest.raises(InvalidInput, match=said):
        messages.write_spec(Spec(**given))  # type: ignore[arg-type]


def test_an_owners_namespace_and_name_cannot_be_confused() -> None:
    with pytest.raises(TypeError, match="positional"):
        PodOwner("web-0", "shop")  # type: ignore[call-arg]
    assert str(PodOwner(namespace="shop", name="web-0")) == "shop/web-0"


def test_one_owner_where_several_are_due_is_refused() -> None:
    with pytest.raises(InvalidInput, match="owners: is one owner, not several"):
        messages.write_spec(Spec(owners=OWNERS[0], resources={"cpu": "1"}))  # type: ignore[arg-type]


def test_a_word_of_a_newer_server_is_none() -> None:
    found = reservation_pb2.Reservation(status=reservation_pb2.ReservationStatus(phase=99))  # type: ignore[arg-type]
    assert messages.read_reservation(found).phase is None


def test_a_map_of_messages_and_an_absent_duration_are_read() -> None:
    node = capacity_pb2.NodeCapacity(
        node="a", resources={"cpu": capacity_pb2.Amounts(allocatable="4", free="-1")}
    )
    amounts = messages.read(node, client.NodeCapacity).resources["cpu"]
    assert amounts == client.ResourceAmounts("4", "", "", "-1", "")
    quota = messages.read(capacity_pb2.NamespaceQuota(name="q"), client.NamespaceQuota)
    assert (quota.name, quota.max_ttl) == ("q", None)


def test_former_names_can_be_imported() -> None:
    assert client.Reservation is client.ReservationInfo
    assert client.OwnerRule is client.OwnerSelector
