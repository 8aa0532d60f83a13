"""Refusals of calls, with a status code and machine-readable google.rpc details."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import grpc
from google.rpc import error_details_pb2, status_pb2

from reserver.cluster.quantity import shorten
from reserver.errors import ApiError, InvalidInput, NotReady, ReserverError, Taken, TooMany
from reserver.printable import printable
from reserver.reservations.enums import StoreKind
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.dry_run import Lack
from reserver.stores.object.codec import check_labels
from reserver.v1 import reservation_pb2 as pb

DOMAIN = "reserver.io"
"""The domain of each ErrorInfo."""

DETAILS_KEY = "grpc-status-details-bin"
# Details travel in a header, and gRPC allows 8 KiB for all headers.
_MOST_FIELDS = 20
_MOST_TEXT = 200
_MOST_BYTES = 4096

Field = tuple[str, str]
"""The path of a field, and its problem."""


class CallError(ReserverError):
    """The refusal of a call.

    Attributes:
        message: one line for a person.
        reason: for a program, in capital letters.
        fields: the invalid fields with their problems.
    """

    def __init__(
        self, code: grpc.StatusCode, reason: str, message: str, fields: Iterable[Field] = ()
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = shorten(printable(message), _MOST_TEXT)
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
                        field=shorten(printable(field), _MOST_TEXT),
                        description=shorten(printable(text), _MOST_TEXT),
                    )
            status.details.add().Pack(request)
        raw: bytes = status.SerializeToString()
        return raw


def invalid(error: InvalidInput) -> CallError:
    """Return the refusal for invalid input, with the path of its field."""
    text = f"{error.problem}; {error.remedy}"
    fields = [(error.path, text)] if error.path else []
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", str(error), fields)


_OTHERS = (
    (NotReady, grpc.StatusCode.UNAVAILABLE, "NOT_READY"),
    (TooMany, grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY"),
)


def of(error: ReserverError) -> CallError:
    """Return the refusal for any ReserverError."""
    if isinstance(error, CallError):
        return error
    if isinstance(error, InvalidInput):
        return invalid(error)
    for kind, code, reason in _OTHERS:
        if isinstance(error, kind):
            return CallError(code, reason, str(error))
    if isinstance(error, ApiError):
        if not error.is_definite:
            problem = f"the API server may not have carried it out: {error}"
            return CallError(grpc.StatusCode.UNAVAILABLE, "API_SERVER", problem)
        # A ResourceQuota, an admission policy, a terminating namespace: a retry would fail again.
        problem = f"the API server refused: {error}"
        return CallError(grpc.StatusCode.FAILED_PRECONDITION, "REFUSED_BY_API_SERVER", problem)
    return CallError(grpc.StatusCode.INTERNAL, "INTERNAL", str(error))


def missing(name: str, became: str = "") -> CallError:
    """Refuse a call about an absent reservation; `became` is its outcome in words, or empty."""
    message = f"there is no reservation {shorten(name)!r}"
    if became:
        message += f" any more: it was {became}"
    return CallError(grpc.StatusCode.NOT_FOUND, "NO_SUCH_RESERVATION", message)


def unreadable(name: str, why: str) -> CallError:
    """Refuse a call about an invalid entry."""
    message = f"{name} cannot be read: {why}; correct it where it is written"
    return CallError(grpc.StatusCode.FAILED_PRECONDITION, "UNREADABLE", message)


def partly_claimed(reservation: Reservation, claims: int) -> CallError:
    """Refuse a new expiry that would end claims of running pods."""
    slots = reservation.slots_beside(claims)
    message = f"{claims} of {slots} slots are claimed; create another one"
    if reservation.lasting:
        older = "were claimed under an older version of Reserver"
        message = f"{claims} of {slots} slots {older}; extend it once their pods have ended"
    return CallError(grpc.StatusCode.FAILED_PRECONDITION, "PARTLY_CLAIMED", message)


def taken(message: str, fields: Iterable[Field] = ()) -> CallError:
    """Refuse a name of an existing reservation."""
    return CallError(grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN", message, fields)


def not_written(error: ReserverError, namespace: str) -> ReserverError:
    """Return the error of a failed write into a namespace, in terms of the request."""
    if isinstance(error, Taken):
        return taken(str(error))
    if namespace and isinstance(error, ApiError) and error.is_absent:
        problem = f"there is no namespace {shorten(namespace)!r}"
        return InvalidInput("namespace", problem, "create it, or name another one")
    return error


def changed_meanwhile(ref: Ref) -> CallError:
    """Refuse the change of a reservation that another client has changed."""
    message = f"{ref} was changed meanwhile; read it and try again"
    return CallError(grpc.StatusCode.ABORTED, "CHANGED_MEANWHILE", message)


def no_room(lacks: Sequence[Lack], names: Sequence[str], path: str) -> CallError:
    """Refuse reservations without room; `path` is ``spec`` for a single reservation."""
    never = any(lack.never for lack in lacks)
    code = grpc.StatusCode.FAILED_PRECONDITION if never else grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "CAN_NEVER_FIT" if never else "NO_ROOM"
    first = f"{names[lacks[0].at]}: {lacks[0].message}"
    more = f", and {len(lacks) - 1} more" if len(lacks) > 1 else ""
    fields = [(f"{path}[{lack.at}]" if path != "spec" else path, lack.message) for lack in lacks]
    return CallError(code, reason, first + more, fields)


def quota_exceeded(why: str, path: str) -> CallError:
    """Refuse reservations that the namespace's quotas do not admit at present."""
    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    return CallError(code, "QUOTA_EXCEEDED", why, [(path, why)])


def require_future(new: Reservation, path: str, now: float) -> None:
    """Refuse a reservation that is expired at `now` (unix seconds).

    Raises:
        InvalidInput: at `path`.
    """
    if new.expires_at is not None and new.expires_at <= now:
        if new.recurrence is not None:
            raise InvalidInput(
                "schedule",
                "has no more occurrences",
                "write a later schedule.until, or a higher count",
            )
        raise InvalidInput(path, "lies in the past", "write a time in the future")


def require_labels(labels: Mapping[str, str], path: str, ref: Ref) -> None:
    """Refuse labels that a reservation cannot have at a ref.

    Raises:
        InvalidInput: at `path`.
    """
    if labels and ref.kind is StoreKind.CONFIGMAP:
        problem = "a key of a ConfigMap has no labels"
        remedy = "leave them out, or have the server write objects: reservationStore: object"
        raise InvalidInput(path, problem, remedy)
    check_labels(labels, path)


def require_change_of_labels(request: pb.UpdateRequest, ref: Ref) -> None:
    """Refuse labels to set or to remove that a reservation cannot have at a ref.

    Raises:
        InvalidInput: at ``labels`` or ``removeLabels``.
    """
    require_labels(request.labels, "labels", ref)
    require_labels(dict.fromkeys(request.remove_labels, ""), "removeLabels", ref)
    if both := sorted(key for key in request.remove_labels if key in request.labels):
        problem = f"{both[0]} is in labels as well"
        raise InvalidInput("removeLabels", problem, "write it in one of them")
