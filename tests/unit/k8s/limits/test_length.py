"""Bounds on the length of an object, in bytes."""

import json
from typing import Any

import pytest
from google.protobuf import json_format

from reserver.errors import InvalidInput
from reserver.grpc import documents
from reserver.k8s.objects.limits import HOME, ITEM_BYTES, MOST_IN_SET, SET_BYTES
from reserver.reservations.reservation import Ref
from reserver.stores.codec import document
from reserver.stores.configmap.entries import read_key
from reserver.v1 import reservation_pb2 as pb
from tests.builders import NOW
from tests.unit.k8s.limits.forms import OWN, READERS, of_configmap, refusal, spec, text_of


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


def test_a_set_is_not_too_long() -> None:
    each = pb.ReservationSpec(node="n" * (SET_BYTES // MOST_IN_SET))
    with pytest.raises(InvalidInput, match="bytes are too many"):
        documents.check_set([each] * MOST_IN_SET)
