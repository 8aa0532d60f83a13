"""Metrics over TLS, for callers whose token may get them: as Kubernetes' own components have it.

The API server says whose token it is (TokenReview), and whether that user may ``get`` the path
(SubjectAccessReview, `nonResourceURLs` in RBAC).
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from reserver.errors import ApiError, TooMany
from reserver.http.answer import Handler, HttpResponse, Paths, error
from reserver.http.request import HttpRequest
from reserver.http.tls import ServerTls
from reserver.k8s.reviewer import Reviewer

_BEARER = "bearer "


class AnyClientTls(ServerTls):
    """TLS without certificates of clients."""

    def refused_name(self, certificate: Mapping[str, Any] | None) -> str | None:  # noqa: ARG002
        """Return None: a token says who calls."""
        return None


def guarded(paths: Paths, reviewer: Reviewer) -> Paths:
    """Return the same paths, answered for users that may get them."""
    return {
        path: (method, partial(_guarded, handler, reviewer))
        for path, (method, handler) in paths.items()
    }


async def _guarded(handler: Handler, reviewer: Reviewer, request: HttpRequest) -> HttpResponse:
    header = request.headers.get("authorization", "")
    token = header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else ""
    try:
        user = await reviewer.authenticate(token, "metrics")
        if user is None:
            problem = "send a bearer token of the API server"
            return error(HTTPStatus.UNAUTHORIZED, problem)
        if not await reviewer.may_get(user, request.path):
            problem = f"{user.name} may not get {request.path}; grant it as a nonResourceURL"
            return error(HTTPStatus.FORBIDDEN, problem)
    except TooMany as exc:
        return error(HTTPStatus.TOO_MANY_REQUESTS, str(exc))
    except ApiError as exc:
        return error(HTTPStatus.SERVICE_UNAVAILABLE, f"the API server does not say: {exc}")
    answered = handler(request)
    return await answered if isinstance(answered, Awaitable) else answered
