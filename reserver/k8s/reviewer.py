"""Tokens and rights, reviewed by the API server; its answers are cached for a short while.

Anybody can send unknown tokens: how many are reviewed is bounded.
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
"""How many calls with an unknown token may come from one peer..."""

WINDOW_S = 10.0
"""...until none came for this long, in seconds; refused calls do not count."""

MOST_PENDING = 100
"""How many unknown tokens are asked about at once, from all peers together; each has its part."""

_PEERS = 4096


class ReviewLimits:
    """Counts of reviews of unknown tokens, by peer and in all."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with none; `clock` gives seconds."""
        self._failures: TTLCache[str, int] = TTLCache(_PEERS, WINDOW_S, clock)
        self._pending = FairCount(MOST_PENDING)

    @contextmanager
    def asking(self, peer: str) -> Iterator[None]:
        """Count a token as unknown, from before it is asked about; `known` takes that back.

        Raises:
            TooMany: that would be one too many.
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
        """Count a call of an unknown caller.

        Raises:
            TooMany: that is one too many.
        """
        failures = self._failures.get(peer, 0)
        if failures >= MOST_FAILURES:
            what = f"more than {MOST_FAILURES} calls without a valid token came from {peer}"
            raise TooMany(f"{what}; wait {WINDOW_S:.0f} seconds")
        self._failures[peer] = failures + 1

    def known(self, peer: str) -> None:
        """Take back the count of a token: it is known, or that cannot be told."""
        failures = self._failures.get(peer, 0)
        if failures > 1:
            self._failures[peer] = failures - 1
        else:
            self._failures.pop(peer, None)


BELIEVED_S = 10.0
"""How long a verdict is cached, in seconds: a revoked right serves as long."""

_REMEMBERED = 4_096
_PROVEN = 10_000
_MOST_TOKEN = 16_384
_MOST_NAME = 512
_TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

T = TypeVar("T")


class Reviewer:
    """Asks the API server with TokenReviews and SubjectAccessReviews.

    Equal questions share one request. Tokens that were somebody's before are asked about whatever
    others send; of unknown ones only so many (`ReviewLimits`).
    """

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        clock: Callable[[], float],
        audiences: tuple[str, ...] = (),
    ) -> None:
        """Review rights in the namespace of the labelled stores; `clock` gives seconds.

        Nobody else should need the connections of the client. Without `audiences` tokens have to
        be for the API server itself.
        """
        self._client = client
        self._namespace = namespace
        self._audiences = audiences
        self._limits = ReviewLimits(clock)
        self._users: TTLCache[bytes, User] = TTLCache(_REMEMBERED, BELIEVED_S, clock)
        self._nobodys: TTLCache[bytes, None] = TTLCache(_REMEMBERED, BELIEVED_S, clock)
        self._proven: LRUCache[bytes, None] = LRUCache(_PROVEN)
        self._verdicts: TTLCache[tuple[User, str, str, str], bool] = TTLCache(
            _REMEMBERED, BELIEVED_S, clock
        )
        self._asked: dict[Hashable, asyncio.Future[Any]] = {}

    async def authenticate(self, token: str, peer: str) -> User | None:
        """Return whose token it is, None if nobody's.

        Args:
            token: empty if there is none.
            peer: where the call comes from.

        Raises:
            ApiError: the API server does not say.
            TooMany: it is not asked, because too many unknown tokens come from there.
        """
        key = hashlib.sha256(token.encode()).digest()  # No token is kept.
        if key in self._users:
            return self._users[key]
        if not token or len(token) > _MOST_TOKEN or key in self._nobodys:
            self._limits.failed(peer)
            return None
        return await self._once(key, lambda: self._review(key, token, peer))

    async def _review(self, key: bytes, token: str, peer: str) -> User | None:
        is_stranger = key not in self._proven
        with self._limits.asking(peer) if is_stranger else nullcontext():
            try:
                status = await self._ask(_TOKENS, token_review(token, self._audiences))
            except ApiError:
                if is_stranger:
                    self._limits.known(peer)
                raise
        owner = status.owner(self._audiences)
        if owner is None:
            self._nobodys[key] = None
            self._proven.pop(key, None)
            return None
        if is_stranger:
            self._limits.known(peer)
        self._users[key] = owner
        self._proven[key] = None
        return owner

    async def may(self, user: User, verb: str, resource: str, name: str) -> bool:
        """Return whether a user may do something to a resource of our group.

        Args:
            verb: what, in the words of RBAC.
            resource: ``resource`` or ``resource/subresource``.
            name: which one; empty for any. ``NAMESPACE/NAME`` is an object of that namespace, and
                all else is of Reserver's own.

        Raises:
            ApiError: the API server does not say.
        """
        key = (user, verb, resource, name[:_MOST_NAME])
        if key in self._verdicts:
            return self._verdicts[key]
        return await self._once(key, lambda: self._judge(*key))

    async def may_get(self, user: User, path: str) -> bool:
        """Return whether a user may get a path that is not a resource, such as ``/metrics``.

        Raises:
            ApiError: the API server does not say.
        """
        key = (user, "get", path[:_MOST_NAME], "")
        if key in self._verdicts:
            return self._verdicts[key]
        return await self._once(key, lambda: self._judge_path(user, path[:_MOST_NAME]))

    async def _judge_path(self, user: User, path: str) -> bool:
        allowed = (await self._ask(_RIGHTS, path_review(user, path))).allowed
        self._verdicts[user, "get", path, ""] = allowed
        return allowed

    async def _judge(self, user: User, verb: str, resource: str, name: str) -> bool:
        namespace, own_name = self._namespace, name
        if name.count("/") == 1:
            namespace, own_name = name.split("/")
        body = access_review(user, verb, resource, namespace, own_name)
        allowed = (await self._ask(_RIGHTS, body)).allowed
        self._verdicts[user, verb, resource, name] = allowed
        return allowed

    async def _once(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the answer to a question; callers that ask the same share one request.

        The request goes on if the first caller no longer waits for it.
        """
        asked: asyncio.Future[T] | None = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = asyncio.ensure_future(ask())
            asked.add_done_callback(partial(self._answered, key))
        return await asyncio.shield(asked)

    def _answered(self, key: Hashable, asked: asyncio.Future[Any]) -> None:
        del self._asked[key]
        if not asked.cancelled():
            asked.exception()  # Those who wait get it, if anybody does.

    async def _ask(self, path: str, body: object) -> ReviewStatus:
        return decode(Review, await self._client.create(path, body)).status
