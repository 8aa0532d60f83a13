"""A spec from flags: the same document that a file would hold, and the same reader."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from reserver.cli.failure import Failed, Status
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

_KINDS = {
    "daemonset": "DaemonSet",
    "job": "Job",
    "replicaset": "ReplicaSet",
    "replicationcontroller": "ReplicationController",
    "statefulset": "StatefulSet",
}
_OWNER_FORMS = "write pod/NAME, KIND/NAME or LABEL=VALUE,…"
_FLAGS = {
    "resources.cpu": "--cpu",
    "resources.memory": "--memory",
    "startsAt": "--starts-at",
    "placement.strategy": "--strategy",
    "expiresAt": "--expires-at",
}
_WORDS = {
    "": "NAME",
    "owners": "--owner",
    "resources": "--resource",
    "placement": "--node-selector",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFlags:
    """The flags of `create` that say what to hold; None or empty is one that was not given."""

    node: str | None = None
    strategy: str | None = None
    node_labels: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    cpu: str | None = None
    memory: str | None = None
    resources: tuple[str, ...] = ()
    slots: int | None = None
    starts_at: str | None = None
    expires_at: str | None = None
    ttl: str | None = None
    policy: str | None = None
    reusable: bool = False
    preemptible: bool = False
    priority: int | None = None

    @property
    def are_given(self) -> bool:
        """Whether any was given."""
        return self != SpecFlags()

    def document(self, namespace: str) -> dict[str, Any]:
        """Return the spec that they stand for, in the form of docs/reservations.md.

        Args:
            namespace: of the owners.

        Raises:
            Failed: a flag is malformed.
        """
        if not self.owners:
            raise Failed(Status.USAGE, f"--owner: is missing; say who may claim it: {_OWNER_FORMS}")
        resources = {"cpu": self.cpu, "memory": self.memory} | dict(
            pair("--resource", text, "nvidia.com/gpu=1") for text in self.resources
        )
        given = {
            "owners": [owner(text, namespace) for text in self.owners],
            "node": self.node,
            "placement": self._placement(),
            "resources": {name: amount for name, amount in resources.items() if amount},
            "slots": self.slots,
            "startsAt": self.starts_at,
            "expiresAt": self.expires_at,
            "ttl": self.ttl,
            "policy": self.policy,
            "priority": self.priority,
            "reusable": self.reusable or None,
            "preemptible": self.preemptible or None,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _placement(self) -> dict[str, Any] | None:
        labels = dict(pair("--node-selector", text, "disk=ssd") for text in self.node_labels)
        given = {"nodeSelector": labels or None, "strategy": self.strategy}
        return {name: value for name, value in given.items() if value is not None} or None


def flag_of(error: InvalidInput) -> Failed:
    """Return what is wrong with a document that was made of flags, by the flag to blame."""
    flag = _FLAGS.get(error.path)
    if flag is None:
        field = re.match(r"[a-z]*", error.path.lower())
        name = field.group() if field else ""
        flag = _WORDS.get(name, f"--{name}")
    return Failed(Status.USAGE, f"{flag}: {error.problem}; {error.remedy}")


def owner(text: str, namespace: str) -> dict[str, Any]:
    """Return an entry of ``owners`` for ``pod/NAME``, ``KIND/NAME`` or ``LABEL=VALUE,…``.

    Raises:
        Failed: it is none of them.
    """
    if "=" in text:
        labels = dict(pair("--owner", each, "app=web") for each in text.split(","))
        return {"selector": {"matchLabels": labels, "namespace": namespace}}
    kind, slash, name = text.partition("/")
    if not (kind and slash and name):
        raise Failed(Status.USAGE, f"--owner: {shorten(text)!r} is not an owner; {_OWNER_FORMS}")
    if kind in {"pod", "Pod"}:
        return {"pod": {"name": name, "namespace": namespace}}
    if kind.lower() == "deployment":
        remedy = "its pods are made by ReplicaSets; name them by their labels, LABEL=VALUE"
        raise Failed(Status.USAGE, f"--owner: a Deployment owns no pods; {remedy}")
    kind = _KINDS.get(kind.lower(), kind)
    return {"controller": {"kind": kind, "name": name, "namespace": namespace}}


def pair(flag: str, text: str, example: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``.

    Raises:
        Failed: it is not of that form.
    """
    name, equals, value = text.rpartition("=") if flag == "--resource" else text.partition("=")
    if not (name and equals and value):
        problem = f"{shorten(text)!r} is not of the form NAME=VALUE"
        raise Failed(Status.USAGE, f"{flag}: {problem}; write e.g. {example}")
    return name, value
