"""TokenReview and SubjectAccessReview: whose token it is, and what that user may do."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

GROUP = "reserver.io"
"""API group of the resources that rights are for."""


class User(NamedTuple):
    """The user of a token, as a TokenReview tells it.

    Attributes:
        uid: of the user.
        groups: that it is in.
        extra: what else its authenticator says of it; an authorizer may let a token do less than
            its user for that.
    """

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class ReviewStatus(msgspec.Struct, frozen=True):
    """The status of a review."""

    authenticated: bool = False
    allowed: bool = False
    user: _User = _User()
    audiences: tuple[str, ...] | None = None

    def owner(self, audiences: Collection[str] = ()) -> User | None:
        """Return whose token was reviewed, None if nobody's or not for us.

        Args:
            audiences: those that were asked for. An authenticator that knows of none confirms none;
                what it says is of tokens for the API server then.
        """
        user = self.user
        if not (self.authenticated and user.username):
            return None
        if audiences and not set(audiences) & set(self.audiences or ()):
            return None
        extra = tuple(sorted((user.extra or {}).items()))
        return User(user.username, user.uid, user.groups or (), extra)


class Review(msgspec.Struct, frozen=True):
    """A review of either kind, as it is answered."""

    status: ReviewStatus = ReviewStatus()


def token_review(token: str, audiences: Collection[str] = ()) -> dict[str, Any]:
    """Return a TokenReview to send; without `audiences` the token is for the API server itself."""
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    spec: dict[str, Any] = {"token": token}
    return kind | {"spec": spec | ({"audiences": list(audiences)} if audiences else {})}


def access_review(
    user: User, verb: str, resource: str, namespace: str, name: str
) -> dict[str, Any]:
    """Return a review of whether a user may do something to a resource of our group.

    The resource may have a subresource, ``resource/subresource``; an empty name stands for any.
    """
    plural, _, subresource = resource.partition("/")
    attributes = {
        "namespace": namespace,
        "verb": verb,
        "group": GROUP,
        "resource": plural,
        "subresource": subresource,
        "name": name,
    }
    return _access_review(user, {"resourceAttributes": attributes})


def path_review(user: User, path: str) -> dict[str, Any]:
    """Return a review to ask whether a user may get a path that is not a resource."""
    return _access_review(user, {"nonResourceAttributes": {"verb": "get", "path": path}})


def _access_review(user: User, attributes: dict[str, Any]) -> dict[str, Any]:
    spec = {"user": user.name, "uid": user.uid, "groups": user.groups, "extra": dict(user.extra)}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    return kind | {"spec": spec | attributes}
