"""Reservations for the pods of a ReplicaSet: their owners, and the pods with a slot."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from hack.bed.install import SPEC_STORE
from hack.chaos.forms import OBJECT_STORE, moment
from hack.chaos.scale import MEMORY_PER_CPU, NODE_CPU
from hack.chaos.store import Ref

APP = "reserver.io/chaos-app"
"""The label that names the group of a pod; two groups may share it."""

WHOLE = {"reserver.io/chaos-pool": "whole"}
"""The labels of the nodes that are held whole."""


@dataclass(kw_only=True)
class Group:
    """A reservation for pods that it does not name, in its manager's book.

    Attributes:
        name: name of the ReplicaSet.
        namespace: namespace of its pods.
        app: label value of its pods.
        store: namespace and name of the ConfigMap; no name for an object.
        write: returns the text of a spec.
        owners: owners of the spec.
        node: node of the spec; empty if Reserver places it.
        placement: placement of the spec.
        cpu: request of a slot and of a pod, in millicores.
        slots: number of slots.
        expires: whole unix seconds.
        policy: policy for owners.
        is_reusable: a slot returns when its pod ends.
        is_refilled: a claimed slot is replaced.
        is_released: released without pods for longer than a storm, so never.
        is_whole: each slot is a whole node.
        is_over: removed.
        placed: slots by node, from the last status.
        pods: nodes of the pods that have claimed a slot, by UID.
        gone: UIDs of these pods that are gone.
    """

    name: str
    namespace: str
    app: str
    store: tuple[str, str]
    write: Callable[[dict[str, Any]], str]
    owners: list[dict[str, Any]]
    node: str
    placement: dict[str, Any]
    cpu: int
    slots: int
    expires: int
    policy: str
    is_reusable: bool
    is_refilled: bool = False
    is_released: bool = False
    is_whole: bool = False
    is_over: bool = False
    placed: Mapping[str, int] = field(default_factory=dict)
    pods: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    @property
    def ref(self) -> Ref:
        """Its ref in the store."""
        return Ref(self.store, f"{self.namespace}.{self.name}")

    def text(self) -> str:
        """Return its text in the store."""
        spec: dict[str, Any] = {
            "owners": self.owners,
            "expiresAt": moment(self.expires),
            "policy": self.policy,
        }
        if self.is_whole:
            return self.write(spec | {"nodes": {"count": self.slots, "selector": WHOLE}})
        spec |= {
            "resources": {"cpu": f"{self.cpu}m", "memory": str(self.cpu * MEMORY_PER_CPU)},
            "slots": self.slots,
            "reusable": self.is_reusable,
            **({"refill": True} if self.is_refilled else {}),
            **({"releaseIfIdle": "5m"} if self.is_released else {}),
        }
        where = {"node": self.node} if self.node else {"placement": self.placement}
        return self.write(spec | where)

    @property
    def nodes(self) -> Mapping[str, int]:
        """Slots by node."""
        return {self.node: self.slots} if self.node else self.placed

    @property
    def claimants(self) -> dict[str, str]:
        """The nodes of the pods that have a slot, by UID."""
        gone = self.gone if self.is_reusable or self.is_refilled else set()
        return {uid: node for uid, node in self.pods.items() if uid not in gone}

    @property
    def left(self) -> dict[str, int]:
        """Free slots by node; slots without a node are under an empty name.

        A claim on a node without a slot has one without a node: Reserver may have been killed
        before it wrote the place. A whole node stays held, whichever pods are on it.
        """
        taken = Counter(() if self.is_whole else self.claimants.values())
        if self.is_refilled:
            free = {node: max(0, slots - taken[node]) for node, slots in self.placed.items()}
            return {**free, "": max(0, self.slots - sum(free.values()))}
        nodes = {**self.nodes, "": self.slots - sum(self.nodes.values())}
        free = {node: max(0, slots - taken[node]) for node, slots in nodes.items()}
        return free | {"": max(0, free[""] - (taken - Counter(nodes)).total())}

    @property
    def is_claimed(self) -> bool:
        """Whether every slot is claimed."""
        is_used_up = len(self.claimants) >= self.slots
        return is_used_up and not (self.is_refilled or self.is_whole)

    @property
    def held(self) -> Mapping[str, int]:
        """Room held for it without its pods, in millicores by node; for whole nodes in total."""
        if self.is_whole:
            return {"": max(0, NODE_CPU * self.slots - self.cpu * len(self.claimants))}
        return {node: self.cpu * slots for node, slots in self.left.items()}

    def is_due(self, now: float) -> bool:
        """Return whether it should exist at `now`, unix seconds."""
        used_up = self.is_claimed and not self.is_reusable
        return not self.is_over and now < self.expires and not used_up


def yaml_text(spec: dict[str, Any]) -> str:
    """Return a spec as YAML."""
    return yaml.safe_dump(spec)


def object_text(spec: dict[str, Any]) -> str:
    """Return a spec in the form that the API server returns."""
    return json.dumps(spec, sort_keys=True)


FORMS = (
    (SPEC_STORE, yaml_text),
    (SPEC_STORE, object_text),
    (OBJECT_STORE, object_text),
)


class Groups:
    """All groups; methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._all: dict[str, Group] = {}  # By the ref in claims.

    def __iter__(self) -> Iterator[Group]:
        """Return copies of the groups, in the order of their writing."""
        with self._lock:
            return iter(
                [replace(g, pods=dict(g.pods), gone=set(g.gone)) for g in self._all.values()]
            )

    def add(self, group: Group) -> None:
        """Add a group that is about to be written."""
        with self._lock:
            self._all[str(group.ref)] = group

    def landed(self, uid: str, node: str, claims: Iterable[str]) -> None:
        """Record the claims in a pod's annotation."""
        with self._lock:
            for claim in claims:
                if claim in self._all:
                    self._all[claim].pods[uid] = node

    def went(self, uid: str) -> None:
        """Record that a pod no longer exists."""
        with self._lock:
            for group in self._all.values():
                if uid in group.pods:
                    group.gone.add(uid)

    def placed(self, places: Mapping[str, Mapping[str, int]]) -> None:
        """Record the placements of Reserver: slots by node, by ref."""
        with self._lock:
            for name in self._all.keys() & places.keys():
                self._all[name].placed = places[name]

    def held(self) -> Counter[str]:
        """Return the room held for groups, in millicores by node; empty name without a node."""
        with self._lock:
            now, held = time.time(), Counter[str]()
            for group in self._all.values():
                if group.is_due(now):
                    held.update(group.held)
            return held
