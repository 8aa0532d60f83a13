"""Why a call is refused: a status code, and google.rpc details that a program can act on."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from google.rpc import error_details_pb2, status_pb2

from reserver.cluster.quantity import shorten
from reserver.errors import ApiError, InvalidInput, NotReady, ReserverError

DOMAIN = "reserver.io"
"""Of each ErrorInfo."""

DETAILS_KEY = "grpc-status-details-bin"
# Details travel in a header, and gRPC allows 8 KiB for all headers.
_MOST_FIELDS = 20
_MOST_TEXT = 200
_MOST_BYTES = 4096

Field = tuple[str, str]
"""Path and description of what is wrong with a field."""


class Refusal(ReserverError):
    """Why a call is refused.

    Attributes:
        code: the status code.
        message: one line for a person.
        reason: for a program, in capital letters.
        fields: the fields that are to blame.
    """

    def __init__(
        self, code: grpc.StatusCode, reason: str, message: str, fields: Iterable[Field] = ()
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = shorten(message, _MOST_TEXT)
        self.fields = tuple(fields)

    def __str__(self) -> str:
        """Return one line for a person."""
        return self.message

    def details(self) -> bytes:
        """Return the google.rpc.Status, for the trailing metadata."""
        number: int = self.code.value[0]
        status = status_pb2.Status(code=number, message=self.message)
        info = error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN)
        status.details.add().Pack(info)
        if self.fields:
            request = error_details_pb2.BadRequest()
            for field, text in self.fields[:_MOST_FIELDS]:
                if request.ByteSize() < _MOST_BYTES:
                    request.field_violations.add(
                        field=shorten(field, _MOST_TEXT), description=shorten(text, _MOST_TEXT)
                    )
            status.details.add().Pack(request)
        raw: bytes = status.SerializeToString()
        return raw


def invalid(error: InvalidInput) -> Refusal:
    """Return bad input as a refusal that names the field."""
    text = f"{error.problem}; {error.remedy}"
    fields = [(error.path, text)] if error.path else []
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", str(error), fields)


def of(error: ReserverError) -> Refusal:
    """Return any error of ours as a refusal."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, InvalidInput):
        return invalid(error)
    if isinstance(error, NotReady):
        return Refusal(grpc.StatusCode.UNAVAILABLE, "NOT_READY", str(error))
    if isinstance(error, ApiError):
        code = grpc.StatusCode.INTERNAL if error.is_definite else grpc.StatusCode.UNAVAILABLE
        return Refusal(code, "API_SERVER", f"the API server refused: {error}")
    return Refusal(grpc.StatusCode.INTERNAL, "INTERNAL", str(error))
