"""The errors of the API server, in the words of apimachinery's `api/errors`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """A problem of an object (`metav1.StatusCause`)."""

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        """Return the text of a field error in the message of a Status."""
        return f"{self.field}: {self.message}"


def invalid_value(field: str, value: str, detail: str) -> Cause:
    """Return the cause for an invalid value (`field.Invalid`)."""
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {detail}', field)


def required(field: str, detail: str = "") -> Cause:
    """Return the cause for a missing value (`field.Required`)."""
    return Cause("FieldValueRequired", f"Required value{detail and ': '}{detail}", field)


def forbidden_value(field: str, detail: str) -> Cause:
    """Return the cause for a forbidden value (`field.Forbidden`)."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def too_long(field: str, detail: str) -> Cause:
    """Return the cause for a too long value (`field.TooLong`)."""
    return Cause("FieldValueTooLong", f"Too long: {detail}", field)


class StatusError(Exception):
    """A refused request; a Status object on the wire."""

    def __init__(
        self,
        code: HTTPStatus,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        *,
        continuation: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self._reason = reason
        self._message = message
        self._details = details
        self._continuation = continuation

    def status(self) -> Json:
        """Return the Status object (`metav1.Status`)."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self._continuation} if self._continuation else {},
            "status": "Failure",
            "message": self._message,
            "reason": self._reason,
        }
        if self._details:
            body["details"] = dict(self._details)
        body["code"] = int(self.code)
        return body


def _of(plural: str, name: str) -> Json:
    resource, _, group = plural.partition(".")
    details = {"name": name, "group": group, "kind": resource}
    return {key: value for key, value in details.items() if value}


def not_found(plural: str, name: str) -> StatusError:
    """Return the error for an absent object; `plural` has the group, as in `pods` or `a.b.io`."""
    message = f'{plural} "{name}" not found'
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", message, _of(plural, name))


def already_exists(plural: str, name: str, *, going: bool = False) -> StatusError:
    """Return the error for an existing, perhaps terminating (`going`), object."""
    message = f'{"object is being deleted: " if going else ""}{plural} "{name}" already exists'
    return StatusError(HTTPStatus.CONFLICT, "AlreadyExists", message, _of(plural, name))


def conflict(plural: str, name: str, problem: str) -> StatusError:
    """Return the error for a failed precondition."""
    message = f'Operation cannot be fulfilled on {plural} "{name}": {problem}'
    return StatusError(HTTPStatus.CONFLICT, "Conflict", message, _of(plural, name))


def forbidden(plural: str, name: str, problem: str) -> StatusError:
    """Return the error for a refusal by admission."""
    message = f'{plural} "{name}" is forbidden: {problem}'
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", message, _of(plural, name))


def invalid(kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """Return the error for an invalid object; `kind` has the group, as in `Pod` or `Foo.a.io`."""
    sentences = [str(cause) for cause in causes]
    problem = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    details = _of(kind, name) | {
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    }
    message = f'{kind} "{name}" is invalid: {problem}'
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def unprocessable(problem: str) -> StatusError:
    """Return the error for a failed patch (`NewGenericServerResponse` with code 422)."""
    message = "the server rejected our request due to an error in our request"
    details = {"causes": [{"reason": "UnexpectedServerResponse", "message": problem}]}
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def bad_request(problem: str) -> StatusError:
    """Return the error for a malformed request."""
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", problem)


def expired(problem: str, continuation: str = "") -> StatusError:
    """Return the error for a request that needs a compacted revision."""
    return StatusError(HTTPStatus.GONE, "Expired", problem, continuation=continuation)


def too_large(problem: str) -> StatusError:
    """Return the error for a too large body or patch."""
    message = f"Request entity too large: {problem}"
    return StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", message)


def unsupported_media(accepted: Sequence[str]) -> StatusError:
    """Return the error for a body of an unsupported media type."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(accepted)}"
    )
    return StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def not_acceptable(offered: Sequence[str]) -> StatusError:
    """Return the error for a client that accepts no supported media type."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return StatusError(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message)


def unknown_resource() -> StatusError:
    """Return the error for a path without a resource."""
    message = "the server could not find the requested resource"
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", message)


def method_not_allowed() -> StatusError:
    """Return the error for an unsupported verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message)


def revision_in_future(asked: int, current: int) -> StatusError:
    """Return the error for a resourceVersion that does not exist yet."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, details)


def success(details: Mapping[str, Any] | None = None, code: HTTPStatus | None = None) -> Json:
    """Return the Status object of a successful request without another answer."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = dict(details)
    if code:
        body["code"] = int(code)
    return body
