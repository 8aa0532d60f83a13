"""The forms of a reservation, as a key or an object, with all terms that a storm varies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from hack.bed.install import LIST_STORE, SPEC_STORE
from hack.chaos.scale import MEMORY_PER_CPU

OBJECT_STORE = ("reserver-system", "")
"""Namespace of Reservation objects; each has its own name."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of one reservation.

    Attributes:
        node: node whose capacity it holds.
        namespace: namespace of its owner.
        owner: the pod that may claim it.
        cpu: millicores.
        expires: whole unix seconds.
        policy: its policy for owners; lists support `Prefer` only.
    """

    node: str
    namespace: str
    owner: str
    cpu: int
    expires: int
    policy: str = "Prefer"

    @property
    def item(self) -> str:
        """Key of its item in a node's list."""
        return f"{self.namespace}/{self.owner}"


@dataclass(frozen=True)
class Form:
    """One form of a reservation.

    Attributes:
        name: its name in reports.
        store: namespace and name of the ConfigMap; no name for objects.
        is_list: whether a node's reservations are one list under the node's name.
        write: returns the value, or the item of the list.
    """

    name: str
    store: tuple[str, str]
    is_list: bool
    write: Callable[[Terms], str]


def moment(unix: int) -> str:
    """Return a moment in the form of reservations (RFC 3339)."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix))


def _spec(terms: Terms) -> dict[str, Any]:
    memory = terms.cpu * MEMORY_PER_CPU
    return {
        "owners": [{"pod": {"name": terms.owner, "namespace": terms.namespace}}],
        "resources": {"cpu": f"{terms.cpu}m", "memory": str(memory)},
        "node": terms.node,
        "expiresAt": moment(terms.expires),
        "policy": terms.policy,
    }


def _short(terms: Terms) -> str:
    owner = {"pod": terms.owner, "namespace": terms.namespace}
    amounts = {"cpu": terms.cpu, "mem": terms.cpu * MEMORY_PER_CPU}
    return json.dumps({**owner, **amounts, "expire": terms.expires})


def _long(terms: Terms) -> str:
    owner = {"reservingPod": terms.owner, "reservingPodNamespace": terms.namespace}
    amounts = {"cpuMilli": terms.cpu, "memMilli": terms.cpu * MEMORY_PER_CPU}
    return json.dumps({**owner, **amounts, "expireAt": moment(terms.expires)})


def _object(terms: Terms) -> str:
    """Return a spec in the form that the API server returns."""
    return json.dumps(_spec(terms) | {"slots": 1}, sort_keys=True)


FORMS = (
    Form("yaml", SPEC_STORE, is_list=False, write=lambda terms: yaml.safe_dump(_spec(terms))),
    Form("json", SPEC_STORE, is_list=False, write=lambda terms: json.dumps(_spec(terms))),
    Form("short-list", LIST_STORE, is_list=True, write=_short),
    Form("long-list", LIST_STORE, is_list=True, write=_long),
    Form("object", OBJECT_STORE, is_list=False, write=_object),
)
