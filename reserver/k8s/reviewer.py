"""Tokens and rights, reviewed by the API server; the answers are cached for a short time.

Any client can send unknown tokens, so the number of reviews is bounded.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

from cachetools import LRUCache, TTLCache

from reserver.base.fairness import FairCount
from reserver.errors import ApiError, TooMany
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.reviews import (
    Review,
    ReviewStatus,
    User,
    access_review,
    path_review,
    token_review,
)

MOST_FAILURES = 50
"""Most calls with an unknown token from one peer..."""

WINDOW_S = 10.0
"""...until this many seconds pass without such a call; refused calls do not count."""

MOST_PENDING = 100
"""Most reviews of unknown tokens in flight from all peers, each peer with its share."""

_PEERS = 4096


class ReviewLimits:
    """Counts of unknown tokens, by peer, and of their reviews in flight."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without counts; `clock` returns seconds."""
        self._failures: TTLCache[str, int] = TTLCache(_PEERS, WINDOW_S, clock)
        self._pending = FairCount(MOST_PENDING)

    @contextmanager
    def asking(self, peer: str) -> Iterator[None]:
        """Count a token as unknown during its review; `known` removes the count afterwards.

        Raises:
            TooMany: the peer, or all peers together, exceed the limits.
        """
        if not self._pending.has_room(peer):
            raise TooMany("too many unknown tokens are being asked about; try again")
        self.failed(peer)
        self._pending.add(peer)
        try:
            yield
        finally:
            self._pending.add(peer, -1)

    def failed(self, peer: str) -> None:
        """Count a call with an unknown token.

        Raises:
            TooMany: the peer exceeds `MOST_FAILURES`.
        """
        failures = self._failures.get(peer, 0)
        if failures >= MOST_FAILURES:
            what = f"more than {MOST_FAILURES} calls without a valid token came from {peer}"
            raise TooMany(f"{what}; wait {WINDOW_S:.0f} seconds")
        self._failures[peer] = failures + 1

    def known(self, peer: str) -> None:
        """Remove the count of a token that is valid, or whose review failed."""
        failures = self._failures.get(peer, 0)
        if failures > 1:
            self._failures[peer] = failures - 1
        else:
            self._failures.pop(peer, None)


BELIEVED_S = 10.0
"""Seconds for which a verdict is cached: a revoked right is still accepted for so long."""

_REMEMBERED = 4_096
_PROVEN = 10_000
_MOST_TOKEN = 16_384
_MOST_NAME = 512
_TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

T = TypeVar("T")


class Reviewer:
    """Asks the API server with TokenReviews and SubjectAccessReviews.

    Concurrent equal questions share one request. Tokens that were valid before are reviewed without
    limits; reviews of unknown tokens are bounded (`ReviewLimits`).
    """

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        clock: Callable[[], float],
        audiences: tuple[str, ...] = (),
    ) -> None:
        """Review rights in the namespace of the labelled stores; `clock` returns seconds.

        The client should have no other user. Without `audiences` tokens must be for the API server
        itself.
        """
        self._client = client
        self._namespace = namespace
        self._audiences = audiences
        self._limits = ReviewLimits(clock)
        self._users: TTLCache[bytes, User] = TTLCache(_REMEMBERED, BELIEVED_S, clock)
        self._rejected: TTLCache[bytes, None] = TTLCache(_REMEMBERED, BELIEVED_S, clock)
        self._proven: LRUCache[bytes, None] = LRUCache(_PROVEN)
        self._verdicts: TTLCache[tuple[User, str, str, str], bool] = TTLCache(
            _REMEMBERED, BELIEVED_S, clock
        )
        self._in_flight: dict[Hashable, asyncio.Future[Any]] = {}

    async def authenticate(self, token: str, peer: str) -> User | None:
        """Return the user of a token, None if it is not valid.

        Args:
            token: the bearer token; empty without one.
            peer: IP address of the caller.

        Raises:
            ApiError: the API server did not review it.
            TooMany: it was not reviewed, because the peer sends too many unknown tokens.
        """
        key = hashlib.sha256(token.encode()).digest()  # Tokens are not kept.
        if key in self._users:
            return self._users[key]
        if not token or len(token) > _MOST_TOKEN or key in self._rejected:
            self._limits.failed(peer)
            return None
        return await self._once(key, lambda: self._review(key, token, peer))

    async def _review(self, key: bytes, token: str, peer: str) -> User | None:
        is_unproven = key not in self._proven
        with self._limits.asking(peer) if is_unproven else nullcontext():
            try:
                status = await self._ask(_TOKENS, token_review(token, self._audiences))
            except ApiError:
                if is_unproven:
                    self._limits.known(peer)
                raise
        owner = status.owner(self._audiences)
        if owner is None:
            self._rejected[key] = None
            self._proven.pop(key, None)
            return None
        if is_unproven:
            self._limits.known(peer)
        self._users[key] = owner
        self._proven[key] = None
        return owner

    async def may(self, user: User, verb: str, resource: str, name: str) -> bool:
        """Return whether a user may do something to a resource of our group.

        Args:
            user: the user.
            verb: a verb of RBAC.
            resource: ``resource`` or ``resource/subresource``.
            name: name of the object; empty for all. ``NAMESPACE/NAME`` is an object of that
                namespace; without a slash the object is in Reserver's own namespace.

        Raises:
            ApiError: the API server did not answer the review.
        """
        key = (user, verb, resource, name[:_MOST_NAME])
        if key in self._verdicts:
            return self._verdicts[key]
        return await self._once(key, lambda: self._review_right(*key))

    async def may_get(self, user: User, path: str) -> bool:
        """Return whether a user may get a path that is not a resource, such as ``/metrics``.

        Raises:
            ApiError: the API server did not answer the review.
        """
        key = (user, "get", path[:_MOST_NAME], "")
        if key in self._verdicts:
            return self._verdicts[key]
        return await self._once(key, lambda: self._review_path(user, path[:_MOST_NAME]))

    async def _review_path(self, user: User, path: str) -> bool:
        allowed = (await self._ask(_RIGHTS, path_review(user, path))).allowed
        self._verdicts[user, "get", path, ""] = allowed
        return allowed

    async def _review_right(self, user: User, verb: str, resource: str, name: str) -> bool:
        namespace, own_name = self._namespace, name
        if name.count("/") == 1:
            namespace, own_name = name.split("/")
        body = access_review(user, verb, resource, namespace, own_name)
        allowed = (await self._ask(_RIGHTS, body)).allowed
        self._verdicts[user, verb, resource, name] = allowed
        return allowed

    async def _once(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the answer to a question; concurrent equal questions share one request.

        The request goes on if the first caller no longer waits for it.
        """
        review: asyncio.Future[T] | None = self._in_flight.get(key)
        if review is None:
            review = self._in_flight[key] = asyncio.ensure_future(ask())
            review.add_done_callback(partial(self._answered, key))
        return await asyncio.shield(review)

    def _answered(self, key: Hashable, review: asyncio.Future[Any]) -> None:
        del self._in_flight[key]
        if not review.cancelled():
            review.exception()  # Marks the exception as read, as perhaps no caller waits any more.

    async def _ask(self, path: str, body: object) -> ReviewStatus:
        return decode(Review, await self._client.create(path, body)).status
