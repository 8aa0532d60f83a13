"""Refusals of the API server and lost connections, as ApiError."""

from __future__ import annotations

import os
import ssl
from http import HTTPStatus

import aiohttp

from reserver.errors import ApiError, InvalidInput
from reserver.k8s.objects.objects import Status, decode

_KNOWN = {int(status) for status in HTTPStatus}


def refusal(code: int, phrase: str, raw: bytes) -> ApiError:
    """Return an error answer of the API server as an ApiError."""
    try:
        status = decode(Status, raw)
    except InvalidInput:
        status = Status()
    message = status.message or raw[:200].decode(errors="replace")
    return ApiError(code, status.reason or phrase, message)


def connection_error(exc: TimeoutError | aiohttp.ClientError | OSError) -> ApiError:
    """Return an ApiError for a request that got no answer."""
    if isinstance(exc, TimeoutError):
        return ApiError(0, "Timeout", "the API server did not answer in time")
    if isinstance(exc, aiohttp.WSServerHandshakeError):
        return ApiError(exc.status, phrase_of(exc.status), "the API server opens no WebSocket")
    if isinstance(exc, aiohttp.ClientPayloadError):
        return ApiError(0, "Unreachable", "the API server broke off its answer")
    return ApiError(0, "Unreachable", f"the API server cannot be reached: {_why(exc)}")


def phrase_of(status: int) -> str:
    """Return the reason phrase of an HTTP status."""
    return HTTPStatus(status).phrase if status in _KNOWN else "Unknown"


def advice(error: ApiError) -> str:
    """Return the message of an error and, if known, its remedy."""
    if error.status == 403:  # noqa: PLR2004 - Forbidden
        return f"{error.message}; grant it: scheduler-config/core/rbac-reserver.yaml"
    if error.status == 401:  # noqa: PLR2004 - Unauthorized
        return (
            "the API server does not accept the credentials (401 Unauthorized); if the service "
            "account was deleted, even if it was made again, replace Reserver's token: "
            "docs/backup-and-restore.md#a-new-service-account"
        )
    if error.is_absent and '"' not in error.message:  # The message names no missing object.
        return "the API server does not serve it: install its CRD (docs/backup-and-restore.md)"
    return str(error)


def _why(error: Exception) -> str:
    """Return the reason why a connection failed, without the words that aiohttp adds."""
    if not isinstance(error, aiohttp.ClientConnectorError) or not error.os_error.errno:
        return str(error)
    if isinstance(error.os_error, ssl.SSLError):
        return str(error)  # OpenSSL's number, not an errno.
    return f"{error.host}:{error.port}: {os.strerror(error.os_error.errno)}"
