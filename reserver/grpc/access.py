"""Authentication and authorization of gRPC calls by the API server, repeated for long calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import grpc

from reserver.errors import ApiError, TooMany
from reserver.grpc.status_errors import CallError
from reserver.k8s.objects.reviews import GROUP, User


class TokenReviews(Protocol):
    """Reviews tokens and rights (`k8s.reviewer.Reviewer`)."""

    async def authenticate(self, token: str, peer: str) -> User | None:
        """Return the user of a token, which may be empty; None if it is invalid."""

    async def may(self, user: User, verb: str, resource: str, name: str) -> bool:
        """Return whether RBAC allows a user a verb on a resource of the group reserver.io."""


@dataclass(frozen=True, slots=True)
class Call:
    """A method of the gRPC API.

    Attributes:
        method: ``Service/Method``.
        verb: the RBAC verb.
        resource: the RBAC resource, of the group reserver.io.
    """

    method: str
    verb: str
    resource: str

    @property
    def needs_readiness(self) -> bool:
        """Whether the method is refused while the caches are not up to date."""
        return self.method != "CapacityService/Dump"

    @property
    def writes(self) -> bool:
        """Whether the method changes something."""
        return self.verb in {"create", "update", "patch", "delete"}


_RESERVATIONS, _CAPACITY, _SCHEDULER = (
    "reservations",
    "reservations/capacity",
    "reservations/scheduler",
)

_RIGHTS = {
    "ReservationService/Create": ("create", _RESERVATIONS),
    "ReservationService/CreateSet": ("create", _RESERVATIONS),
    "ReservationService/Get": ("get", _RESERVATIONS),
    "ReservationService/List": ("list", _RESERVATIONS),
    "ReservationService/Watch": ("watch", _RESERVATIONS),
    "ReservationService/Update": ("update", _RESERVATIONS),
    "ReservationService/Extend": ("update", _RESERVATIONS),
    "ReservationService/Release": ("delete", _RESERVATIONS),
    "ReservationService/History": ("list", _RESERVATIONS),
    "CapacityService/ListNodes": ("list", _CAPACITY),
    "CapacityService/ListQuotas": ("list", _CAPACITY),
    "CapacityService/ListAccounts": ("list", _CAPACITY),
    "CapacityService/WhatIf": ("get", _CAPACITY),
    "CapacityService/Explain": ("get", _CAPACITY),
    "CapacityService/Dump": ("get", _CAPACITY),
    "SchedulerService/Filter": ("get", _SCHEDULER),
    "SchedulerService/Preempt": ("get", _SCHEDULER),
    "SchedulerService/Reserve": ("create", _SCHEDULER),
    "SchedulerService/Unreserve": ("delete", _SCHEDULER),
    "SchedulerService/Bind": ("create", _SCHEDULER),
}


def call_of(path: str) -> Call:
    """Return the method of a path such as ``/reserver.v1.ReservationService/Get``."""
    method = path.rpartition(".")[2]
    return Call(method, *_RIGHTS[method])


AGAIN_S = 50.0
"""Seconds between two reviews of a long call: with the cache of verdicts, a revoked right
ends within a minute."""

UNCONFIRMED_S = 300.0
"""Seconds for which a long call continues while the API server does not answer reviews."""


@dataclass(eq=False, repr=False)
class CallAccess:
    """Authenticates and authorizes calls.

    Attributes:
        again_s: seconds between two reviews of a long call.
        writes_objects: whether reservations are created in the namespace of the request.
    """

    reviewer: TokenReviews
    again_s: float = AGAIN_S
    writes_objects: bool = field(default=True, kw_only=True)

    def target(self, call: Call, request: Any) -> str:  # noqa: ANN401 - any message
        """Return the name to review for a call: the parameter `name` of `TokenReviews.may`."""
        name = str(getattr(request, "name", ""))
        is_placed = self.writes_objects and call.verb == "create"
        namespace = getattr(request, "namespace", "") if is_placed else ""
        return f"{namespace}/{name}" if namespace else name

    async def identify(self, metadata: Mapping[str, str | bytes], peer: str) -> User:
        """Return the user of a call from a peer.

        Raises:
            CallError: the API server does not accept the token.
            TooMany: too many calls with invalid tokens come from the peer.
            ApiError: the API server does not answer.
        """
        scheme, _, token = str(metadata.get("authorization", "")).partition(" ")
        token = token if scheme.lower() == "bearer" else ""
        user = await self.reviewer.authenticate(token, peer)
        if user is None:
            message = "send a token that the API server knows: authorization: Bearer TOKEN"
            raise CallError(grpc.StatusCode.UNAUTHENTICATED, "NO_VALID_TOKEN", message)
        return user

    async def require(self, user: User, call: Call, name: str) -> None:
        """Refuse a call that RBAC does not allow its user.

        Raises:
            CallError: RBAC denies the call.
            ApiError: the API server does not answer.
        """
        if not await self.reviewer.may(user, call.verb, call.resource, name):
            message = f"{user.name} may not {call.verb} {call.resource}.{GROUP}"
            raise CallError(grpc.StatusCode.PERMISSION_DENIED, "NOT_ALLOWED", message)

    async def last(
        self, call: Call, metadata: Mapping[str, str | bytes], peer: str, name: str = ""
    ) -> None:
        """Never return; raise once the caller's token or right to a name has ended.

        Raises:
            CallError: the token or the right has ended.
            ReserverError: no review has succeeded for `UNCONFIRMED_S`.
        """
        loop = asyncio.get_running_loop()
        confirmed_at = loop.time()
        while True:
            await asyncio.sleep(self.again_s)
            try:
                await self.require(await self.identify(metadata, peer), call, name)
            except (ApiError, TooMany):
                if loop.time() - confirmed_at > UNCONFIRMED_S:
                    raise
            else:
                confirmed_at = loop.time()


T = TypeVar("T")


async def while_lasting(
    right: Coroutine[Any, Any, None], responses: AsyncGenerator[T]
) -> AsyncIterator[T]:
    """Yield responses until they end, or the caller's right ends.

    Args:
        right: a coroutine that raises when the right ends, and does not return before.
        responses: the responses to yield; closed at the end.

    Raises:
        Exception: raised by `right` or `responses`.
    """
    lasting = asyncio.ensure_future(right)
    turn: asyncio.Future[T] | None = None
    try:
        while True:
            turn = asyncio.ensure_future(anext(responses))
            await asyncio.wait({turn, lasting}, return_when=asyncio.FIRST_COMPLETED)
            if lasting.done():
                lasting.result()
            try:
                response = turn.result()
            except StopAsyncIteration:
                return
            yield response
    finally:
        pending = [future for future in (lasting, turn) if future is not None]
        for future in pending:
            future.cancel()
        await asyncio.wait(pending)
        for future in pending:
            if not future.cancelled():
                future.exception()  # Raised already, or no longer of interest.
        await responses.aclose()
