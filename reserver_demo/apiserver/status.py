"""The failures of the API server, in the words of apimachinery's `api/errors`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong with an object (`metav1.StatusCause`)."""

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        """Return it as field errors read inside the message of a Status."""
        return f"{self.field}: {self.message}"


def invalid_value(field: str, value: str, detail: str) -> Cause:
    """A value that breaks a rule (`field.Invalid`)."""
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {detail}', field)


def required(field: str, detail: str = "") -> Cause:
    """A value that is missing (`field.Required`)."""
    return Cause("FieldValueRequired", f"Required value{detail and ': '}{detail}", field)


def forbidden_value(field: str, detail: str) -> Cause:
    """A value that may not be there (`field.Forbidden`)."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def too_long(field: str, detail: str) -> Cause:
    """A value that exceeds a size (`field.TooLong`)."""
    return Cause("FieldValueTooLong", f"Too long: {detail}", field)


class StatusError(Exception):
    """A request that the API server refuses; becomes a Status object on the wire."""

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
    """No such object; `plural` is the resource with its group, as in `pods` or `a.b.io`."""
    message = f'{plural} "{name}" not found'
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", message, _of(plural, name))


def already_exists(plural: str, name: str, *, going: bool = False) -> StatusError:
    """An object of that name is there, and perhaps about to go."""
    message = f'{"object is being deleted: " if going else ""}{plural} "{name}" already exists'
    return StatusError(HTTPStatus.CONFLICT, "AlreadyExists", message, _of(plural, name))


def conflict(plural: str, name: str, problem: str) -> StatusError:
    """The object is not in the state that the request presumes."""
    message = f'Operation cannot be fulfilled on {plural} "{name}": {problem}'
    return StatusError(HTTPStatus.CONFLICT, "Conflict", message, _of(plural, name))


def forbidden(plural: str, name: str, problem: str) -> StatusError:
    """Admission refuses the object."""
    message = f'{plural} "{name}" is forbidden: {problem}'
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", message, _of(plural, name))


def invalid(kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """The object breaks rules; `kind` carries its group, as in `Pod` or `Foo.a.io`."""
    sentences = [str(cause) for cause in causes]
    problem = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    details = _of(kind, name) | {
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    }
    message = f'{kind} "{name}" is invalid: {problem}'
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def unprocessable(problem: str) -> StatusError:
    """A patch that cannot be applied (`NewGenericServerResponse` with code 422)."""
    message = "the server rejected our request due to an error in our request"
    details = {"causes": [{"reason": "UnexpectedServerResponse", "message": problem}]}
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def bad_request(problem: str) -> StatusError:
    """The request itself cannot be understood."""
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", problem)


def expired(problem: str, continuation: str = "") -> StatusError:
    """The history that the request needs is gone."""
    return StatusError(HTTPStatus.GONE, "Expired", problem, continuation=continuation)


def too_large(problem: str) -> StatusError:
    """The body, or the patch in it, is over the limit."""
    message = f"Request entity too large: {problem}"
    return StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", message)


def unsupported_media(accepted: Sequence[str]) -> StatusError:
    """The body is in a format that is not read here."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(accepted)}"
    )
    return StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def not_acceptable(offered: Sequence[str]) -> StatusError:
    """The client accepts no format that is written here."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return StatusError(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message)


def unknown_resource() -> StatusError:
    """The path names no resource."""
    message = "the server could not find the requested resource"
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", message)


def method_not_allowed() -> StatusError:
    """The resource exists, but not with this verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message)


def revision_in_future(asked: int, current: int) -> StatusError:
    """The request presumes a resource version that is not there yet."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, details)


def success(details: Mapping[str, Any] | None = None, code: HTTPStatus | None = None) -> Json:
    """The Status object of a request that has nothing else to answer."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = dict(details)
    if code:
        body["code"] = int(code)
    return body
