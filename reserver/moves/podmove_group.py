"""The codec of PodMoveGroups: groups of PodMoves of several namespaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.objects import CustomResource, StrictStruct, decode
from reserver.moves.model import MOST_IN_GROUP, GroupMember
from reserver.stores.object.codec import API_VERSION

KIND = "PodMoveGroup"
COLLECTION = f"/apis/{API_VERSION}/podmovegroups"

MOST_BYTES = 524_288
"""Most bytes of a spec; each spec that the schema allows is shorter."""


class MemberObject(StrictStruct, frozen=True):
    """An entry of ``spec.members``."""

    namespace: str
    name: str
    uid: str = ""


class _Spec(StrictStruct, frozen=True):
    members: tuple[MemberObject, ...]


class PodMoveGroupObject(CustomResource, frozen=True):
    """A PodMoveGroup on the wire."""

    def members(self) -> frozenset[GroupMember]:
        """Return the members.

        Raises:
            InvalidInput: the spec is invalid.
        """
        with under("spec"):
            if len(self.spec) > MOST_BYTES:
                problem = f"{len(self.spec)} bytes are too many for a group"
                raise InvalidInput("", problem, f"keep it under {MOST_BYTES}")
            said = decode(_Spec, self.spec).members
            if len(said) > MOST_IN_GROUP:
                remedy = f"list {MOST_IN_GROUP} at most"
                raise InvalidInput("members", f"there are {len(said)}", remedy)
        return frozenset(GroupMember(PodName(each.namespace, each.name), each.uid) for each in said)


def manifest(name: str, members: Iterable[GroupMember]) -> dict[str, Any]:
    """Return the manifest of a PodMoveGroup, to be written before its members."""
    said = [MemberObject(*each.move, each.uid) for each in members]
    spec = {"members": msgspec.to_builtins(said)}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def path(name: str) -> str:
    """Return the path of a PodMoveGroup."""
    return f"{COLLECTION}/{name}"
