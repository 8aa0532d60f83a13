"""Tokens and rights, as the API server judges them; what it said is believed for a short while."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from cachetools import TTLCache

from reserver.kube.client import ApiClient
from reserver.wire.objects import decode
from reserver.wire.reviews import Review, ReviewStatus, User, access_review, token_review

BELIEVED_S = 10.0
"""How long a verdict is believed, in seconds: so long a right that was taken away still serves."""

_REMEMBERED = 10_000
_MOST_TOKEN = 16_384
_MOST_NAME = 512
_TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Reviewer:
    """Asks the API server with TokenReviews and SubjectAccessReviews."""

    def __init__(self, client: ApiClient, namespace: str, clock: Callable[[], float]) -> None:
        """Ask about rights in a namespace; `clock` gives seconds."""
        self._client = client
        self._namespace = namespace
        self._users: TTLCache[bytes, User | None] = TTLCache(_REMEMBERED, BELIEVED_S, clock)
        self._verdicts: TTLCache[tuple[User, str, str, str], bool] = TTLCache(
            _REMEMBERED, BELIEVED_S, clock
        )

    async def authenticate(self, token: str) -> User | None:
        """Return whose token it is, None if nobody's.

        Raises:
            ApiError: the API server does not say.
        """
        if len(token) > _MOST_TOKEN:
            return None
        key = hashlib.sha256(token.encode()).digest()  # No token is kept.
        if key in self._users:
            return self._users[key]
        owner = (await self._ask(_TOKENS, token_review(token))).owner()
        self._users[key] = owner
        return owner

    async def may(self, user: User, verb: str, resource: str, name: str) -> bool:
        """Return whether a user may do something to a resource of our group.

        Args:
            user: who.
            verb: what, in the words of RBAC.
            resource: ``resource`` or ``resource/subresource``.
            name: which one; empty for any. ``NAMESPACE/NAME`` is an object of that namespace, and
                all else is of Reserver's own.

        Raises:
            ApiError: the API server does not say.
        """
        name = name[:_MOST_NAME]
        key = (user, verb, resource, name)
        if key in self._verdicts:
            return self._verdicts[key]
        namespace, own_name = self._namespace, name
        if name.count("/") == 1:
            namespace, own_name = name.split("/")
        body = access_review(user, verb, resource, namespace, own_name)
        allowed = (await self._ask(_RIGHTS, body)).allowed
        self._verdicts[key] = allowed
        return allowed

    async def _ask(self, path: str, body: object) -> ReviewStatus:
        return decode(Review, await self._client.create(path, body)).status
