"""Who may call: the API server says whose token it is, and what its owner may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import grpc

from reserver.server.rpc.refusal import Refusal
from reserver.wire.reviews import GROUP, User


class Reviewer(Protocol):
    """Who knows tokens and rights (`kube.reviewer.Reviewer`)."""

    async def authenticate(self, token: str) -> User | None:
        """Return whose token it is, None if nobody's."""

    async def may(self, user: User, verb: str, resource: str, name: str) -> bool:
        """Return whether a user may do something to a resource of our group."""


@dataclass(frozen=True, slots=True)
class Call:
    """A method of the contract.

    Attributes:
        method: ``Service/Method``.
        verb: what it is in the words of RBAC.
        resource: of our group, what it is done to.
    """

    method: str
    verb: str
    resource: str

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.verb in {"create", "update", "delete"}


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
    "CapacityService/ListNodes": ("list", _CAPACITY),
    "CapacityService/WhatIf": ("get", _CAPACITY),
    "CapacityService/Explain": ("get", _CAPACITY),
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


class Access:
    """Lets those call who may."""

    def __init__(self, reviewer: Reviewer) -> None:
        self._reviewer = reviewer

    async def identify(self, metadata: Mapping[str, str | bytes]) -> User:
        """Return who calls.

        Raises:
            Refusal: nobody knows them.
            ApiError: the API server does not say.
        """
        scheme, _, token = str(metadata.get("authorization", "")).partition(" ")
        user = None
        if scheme.lower() == "bearer" and token:
            user = await self._reviewer.authenticate(token)
        if user is None:
            message = "send a token that the API server knows: authorization: Bearer TOKEN"
            raise Refusal(grpc.StatusCode.UNAUTHENTICATED, "NO_VALID_TOKEN", message)
        return user

    async def require(self, user: User, call: Call, name: str) -> None:
        """Refuse a call that its user may not make.

        Raises:
            Refusal: they may not.
            ApiError: the API server does not say.
        """
        if not await self._reviewer.may(user, call.verb, call.resource, name):
            message = f"{user.name} may not {call.verb} {call.resource}.{GROUP}"
            raise Refusal(grpc.StatusCode.PERMISSION_DENIED, "NOT_ALLOWED", message)
