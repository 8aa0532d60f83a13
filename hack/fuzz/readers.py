"""Readers of objects of ours, reviews, questions over gRPC, policies, and of what moves."""

from __future__ import annotations

import json

import msgspec
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from hack.fuzz.checks import SEEN, Fault, check_entries, check_refusal
from reserver.errors import InvalidInput
from reserver.grpc import catalogue, documents
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.reviews import Review, access_review
from reserver.moves import podmove, podmove_status
from reserver.moves.model import MAX_TIMEOUT_S
from reserver.rebalance import policy_reader as policyform
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ReservationState
from reserver.stores import quota_codec
from reserver.stores.codec import demands, document, placement_codec, rewrite
from reserver.stores.configmap.entries import read_key
from reserver.stores.object import status_codec as reservation_status
from reserver.stores.object.codec import ReservationObject, StatusClaim
from reserver.stores.object.entries import read_object
from reserver.v1 import capacity_pb2

_HOME = "reserver-system"
_USED = {"reservations": 3, "held.cpu": 2**53, "held.nvidia.com/gpu": 1, "held.x": 2**70}
_CLAIM = StatusClaim("shop/web-0", "u", "worker-1", "2030-01-01T00:00:00Z")


def read_reservation(raw: bytes) -> object:
    """Read a Reservation, a tenant's and one of Reserver's namespace; say what became of it."""
    item = decode(ReservationObject, raw)
    generation = item.metadata.generation
    for home in ("", item.metadata.namespace):
        entries = read_object(item, SEEN, home)
        check_entries(entries)
        before = item.stored_status()
        for problem in entries.problems:
            encode(reservation_status.invalid(problem, before, generation, SEEN))
        for each in entries.reservations:
            now = ReservationState(Phase.ACTIVE, is_backed=False)
            after = reservation_status.valid(each, now, [_CLAIM], before, generation, SEEN)
            encode(after)
            reservation_status.is_newly_unbacked(before, after)
    return item.metadata.set_id


def read_move(raw: bytes) -> object:
    """Read a PodMove and how far it is, say so again, and write its seat."""
    item = decode(podmove.MoveObject, raw)
    try:
        found = podmove.read_object(item)
    except InvalidInput as exc:
        encode(podmove_status.refused(exc, item.metadata.generation))
        raise
    shown = podmove_status.show_status(found.status, item.metadata.generation)
    encode(shown)
    again = podmove_status.read_status(msgspec.Raw(encode(shown)))
    if podmove_status.show_status(again, item.metadata.generation) != shown:
        raise Fault(f"a status is not what was written: {shown}")
    if found.spec.timeout_s > MAX_TIMEOUT_S:
        raise Fault(f"takes for ever: {found.spec}")
    return found


def read_demands(raw: bytes) -> object:
    """Read the constraints of a pod, as the placement of its replacement's seat."""
    found = demands.placement(raw, leaves="worker-1", node="", selector={"zone": "a"})
    encode(found)
    return placement_codec.read(found, "shop")


def read_policy(raw: bytes) -> object:
    """Read a rebalance policy, and check all that is said about it."""
    found = policyform.read(raw, {"high": 7}.get)
    for each in (*found.problems, *found.warnings):
        check_refusal(each)
    if (found.policy is None) is not bool(found.problems):
        raise Fault("is refused without a problem, or read in spite of one")
    return found.policy


def read_quota(raw: bytes) -> object:
    """Read a ReservationQuota, as an object and as the setting, and sum up its usage."""
    try:
        quota = quota_codec.parse_default(raw.decode(errors="replace"))
    except InvalidInput as exc:
        check_refusal(exc)
    else:
        encode(quota_codec.show(quota, _USED) if quota else None)
    item = decode(quota_codec.QuotaObject, raw)
    said = quota_codec.show(quota_codec.read_object(item), _USED)
    encode(quota_codec.patch(item.metadata, item.stored_status(), said))
    return said


def read_review(raw: bytes) -> object:
    """Read a TokenReview's answer, and ask what its user may do."""
    review = decode(Review, raw).status
    owner = review.owner()
    if owner is not None:
        encode(access_review(owner, "get", "reservations/capacity", "shop", "web"))
    return review.allowed


def read_question(raw: bytes) -> object:
    """Read a set of specs as gRPC sends them, each as it would be stored, and show it again.

    Specs may be JSON, too, which is more easily changed than bytes.
    """
    message = capacity_pb2.WhatIfRequest()
    try:
        if raw.startswith(b"{"):
            json_format.Parse(raw, message)
        else:
            message.MergeFromString(raw)
    except (DecodeError, json_format.ParseError, RecursionError, UnicodeDecodeError):
        return None  # No such message comes: gRPC refuses it, or nobody can write it.
    documents.check_set(message.reservations)
    for number, spec in enumerate(message.reservations):
        ref = Ref(_HOME, "store", f"web-{number}")
        text = documents.encode(documents.write(spec, SEEN, "request"))
        encode(text)
        entries = read_key(ref, text, SEEN)
        check_entries(entries)
        for each in entries.reservations:
            shown = catalogue.show(each, text, ReservationState(Phase.ACTIVE, is_backed=True), {})
            if shown.spec.slots != each.slots:
                raise Fault(f"shows other slots than it holds: {shown}")
    return None


def read_moved(raw: bytes) -> object:
    """Read a key of a store, and write its entries at another ref."""
    text = raw.decode(errors="replace")
    for reservation in read_key(Ref("shop", "store", "web"), text, SEEN).reservations:
        ref = Ref.of_object("shop", rewrite.name_for(reservation))
        encode(rewrite.rewritten(reservation, _document(text), ref, _HOME))
    return None


def _document(text: str) -> dict[str, object]:
    written = document.parse(text)
    return written if isinstance(written, dict) else {}


def question(*specs: object) -> bytes:
    """Return a question as it is sent."""
    message = capacity_pb2.WhatIfRequest()
    for spec in specs:
        json_format.Parse(json.dumps(spec), message.reservations.add())
    return message.SerializeToString()
