"""The error of a call that failed, made of what grpc raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import grpc

from reserver.client.error_details import read_details
from reserver.errors import ReserverError

_DETAILS_KEY = "grpc-status-details-bin"


class CallFailed(ReserverError):
    """A call was refused, or not answered in time.

    Attributes:
        code: name of the gRPC status code, e.g. ``RESOURCE_EXHAUSTED``.
        message: one line for a person.
        reason: for a program, e.g. ``NO_ROOM``; empty if the server gave none.
        fields: what is wrong, by the path of the field.
    """

    def __init__(self, code: str, message: str, reason: str, fields: Mapping[str, str]) -> None:
        super().__init__(code, message, reason, fields)
        self.code = code
        self.message = message
        self.reason = reason
        self.fields = fields

    def __str__(self) -> str:
        """Return one line for a person."""
        return f"{self.code}: {self.message}"


class FailedCall(Protocol):
    """An error of grpc, of either kind of channel."""

    def code(self) -> grpc.StatusCode:
        """Return the status."""

    def details(self) -> str | None:
        """Return the message."""

    def trailing_metadata(self) -> Any:  # noqa: ANN401 - pairs, in a type of each channel's own
        """Return what the server sent at the end."""


def as_failure(error: FailedCall) -> CallFailed:
    """Return why a call failed."""
    metadata = dict(error.trailing_metadata() or ())
    said = read_details(metadata.get(_DETAILS_KEY, b""))
    return CallFailed(error.code().name, error.details() or "", said.reason, said.fields)
