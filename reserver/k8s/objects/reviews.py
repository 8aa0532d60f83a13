"""TokenReview and SubjectAccessReview: the user of a token, and the user's rights."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

GROUP = "reserver.io"
"""API group of the resources whose access is reviewed."""


class User(NamedTuple):
    """The user of a token, from a TokenReview.

    Attributes:
        name: name of the user.
        uid: UID of the user.
        groups: groups of the user.
        extra: further attributes from the authenticator; they may make an authorizer allow a token
            less than its user.
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
        """Return the user of the reviewed token; None if it is invalid or for other audiences.

        Args:
            audiences: the requested audiences. An authenticator without audiences confirms none:
                it reviewed the token as one for the API server.
        """
        user = self.user
        if not (self.authenticated and user.username):
            return None
        if audiences and not set(audiences) & set(self.audiences or ()):
            return None
        extra = tuple(sorted((user.extra or {}).items()))
        return User(user.username, user.uid, user.groups or (), extra)


class Review(msgspec.Struct, frozen=True):
    """A review of either kind, with its answer."""

    status: ReviewStatus = ReviewStatus()


def token_review(token: str, audiences: Collection[str] = ()) -> dict[str, Any]:
    """Return a TokenReview to send; without `audiences` the token is for the API server itself."""
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    spec: dict[str, Any] = {"token": token}
    return kind | {"spec": spec | ({"audiences": list(audiences)} if audiences else {})}


def access_review(
    user: User, verb: str, resource: str, namespace: str, name: str
) -> dict[str, Any]:
    """Return a review of a user's right to a verb on a resource of Reserver's API group.

    The resource may have a subresource, ``resource/subresource``; an empty name stands for all.
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
    """Return a review of a user's right to get a path that is not a resource."""
    return _access_review(user, {"nonResourceAttributes": {"verb": "get", "path": path}})


def _access_review(user: User, attributes: dict[str, Any]) -> dict[str, Any]:
    spec = {"user": user.name, "uid": user.uid, "groups": user.groups, "extra": dict(user.extra)}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    return kind | {"spec": spec | attributes}
