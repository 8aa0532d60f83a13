"""Each form in which a reservation is written, and the refusal of a spec."""

import json
from collections.abc import Callable
from typing import Any

from google.protobuf import json_format

from reserver.errors import InvalidInput
from reserver.grpc import documents
from reserver.k8s.objects.limits import HOME, TENANT, SpecLimits
from reserver.k8s.objects.objects import decode
from reserver.reservations.reservation import Ref
from reserver.stores.codec import spec_codec
from reserver.stores.configmap.entries import read_key
from reserver.stores.entries import Entries
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.entries import read_object
from reserver.v1 import reservation_pb2 as pb
from tests.builders import NOW

OWN = "reserver-system"
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
    """Read a spec that a client sends over gRPC."""
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


def placed(**fields: Any) -> Written:
    return spec(placement=fields)


def spread(number: int, **fields: Any) -> Written:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} | fields
    return placed(topologySpreadConstraints=[whole] * number)
