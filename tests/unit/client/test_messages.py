import pytest

from reserver import client
from reserver.client import PodOwner, Spec, messages
from reserver.errors import InvalidInput
from reserver.v1 import capacity_pb2, reservation_pb2

OWNERS = (PodOwner("shop", "web-0"),)


@pytest.mark.parametrize(
    ("field", "path"), [("slots", "slots"), ("starts_at", "startsAt"), ("node", "node")]
)
def test_a_value_of_a_wrong_type_is_refused_by_the_name_of_its_field(field: str, path: str) -> None:
    spec = Spec(owners=OWNERS, resources={"cpu": "1"}, **{field: object()})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as caught:
        messages.write_spec(spec)
    assert caught.value.path == path


def test_a_word_of_a_newer_server_is_none() -> None:
    found = reservation_pb2.Reservation(status=reservation_pb2.ReservationStatus(phase=99))  # type: ignore[arg-type]
    assert messages.read_reservation(found).phase is None


def test_a_map_of_messages_and_an_absent_duration_are_read() -> None:
    node = capacity_pb2.NodeCapacity(
        node="a", resources={"cpu": capacity_pb2.Amounts(allocatable="4", free="-1")}
    )
    amounts = messages.read(node, client.NodeCapacity).resources["cpu"]
    assert amounts == client.ResourceAmounts("4", "", "", "-1")
    quota = messages.read(capacity_pb2.NamespaceQuota(name="q"), client.NamespaceQuota)
    assert (quota.name, quota.max_ttl) == ("q", None)


def test_former_names_can_be_imported() -> None:
    assert client.Reservation is client.ReservationInfo
    assert client.OwnerRule is client.OwnerSelector
