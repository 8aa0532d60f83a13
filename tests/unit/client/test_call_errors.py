"""The details of a refusal are read without googleapis-common-protos, as that would read them."""

from __future__ import annotations

from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2

from reserver.client.call_errors import ErrorDetails, read_details


def packed(*details: object) -> bytes:
    status = status_pb2.Status(code=3, message="no")
    for each in details:
        wrapped = AnyMessage()
        wrapped.Pack(each)  # type: ignore[arg-type]
        status.details.append(wrapped)
    return bytes(status.SerializeToString())


def test_reason_and_fields_are_read() -> None:
    request = error_details_pb2.BadRequest()
    request.field_violations.add(field="spec.ttl", description="is negative")
    info = error_details_pb2.ErrorInfo(reason="INVALID_FIELD", domain="reserver.io")
    help_ = error_details_pb2.Help()
    reported = read_details(packed(help_, info, request))
    assert reported == ErrorDetails("INVALID_FIELD", {"spec.ttl": "is negative"})


def test_what_is_no_status_says_nothing() -> None:
    assert read_details(b"") == read_details(b"\xff\xff") == ErrorDetails("", {})
