"""TokenReview and SubjectAccessReview: whose token it is, and what its owner may do."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

GROUP = "reserver.io"
"""API group of what rights are about."""


class User(NamedTuple):
    """Who a token is of, as a TokenReview says."""

    name: str
    uid: str
    groups: tuple[str, ...]


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None


class ReviewStatus(msgspec.Struct, frozen=True):
    """What a review says."""

    authenticated: bool = False
    allowed: bool = False
    user: _User = _User()

    def owner(self) -> User | None:
        """Return whose token was reviewed, None if nobody's."""
        if not (self.authenticated and self.user.username):
            return None
        return User(self.user.username, self.user.uid, self.user.groups or ())


class Review(msgspec.Struct, frozen=True):
    """A review of either kind, as it is answered."""

    status: ReviewStatus = ReviewStatus()


def token_review(token: str) -> dict[str, Any]:
    """Return a review to ask whose token it is."""
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    return kind | {"spec": {"token": token}}


def access_review(
    user: User, verb: str, resource: str, namespace: str, name: str
) -> dict[str, Any]:
    """Return a review to ask whether a user may do something.

    Args:
        user: who.
        verb: what, in the words of RBAC.
        resource: of our group, ``resource`` or ``resource/subresource``.
        namespace: where it is.
        name: which one; empty for any.
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
    spec = {"user": user.name, "uid": user.uid, "groups": user.groups}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    return kind | {"spec": spec | {"resourceAttributes": attributes}}
