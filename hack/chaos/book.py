"""The manager's book: the pods, their use of nodes, and its reservations."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hack.chaos.forms import Form, Terms
from hack.chaos.groups import Group, Groups
from hack.chaos.scale import NODE_CPU

ENDLESS = float("inf")


@dataclass(kw_only=True)
class Hold:
    """A reservation in the manager's book.

    Attributes:
        form: the form in which it is written.
        written_at: unix seconds at which the API server confirmed its current terms.
        terms: its current terms.
        is_over: removed, abandoned, or its owner has landed.
        owner_came: its owner was created.
        was_awaited: at that moment it held, had its room, and Reserver must have seen it.
        landed_on: the node that its owner was bound to.
        was_seen: at that moment Reserver must have seen it.
        had_room: since then until the landing, its node had room for all holds there.
        was_missed: its owner was deleted during a gap of the watch; a landing is unknown.
    """

    form: Form
    terms: Terms
    is_over: bool = False
    owner_came: bool = False
    was_awaited: bool = False
    landed_on: str = ""
    was_seen: bool = True
    had_room: bool = True
    was_missed: bool = False
    written_at: float = ENDLESS

    def holds(self, now: float) -> bool:
        """Return whether it holds at `now`, unix seconds."""
        return not self.is_over and now < self.terms.expires


@dataclass(frozen=True, kw_only=True)
class SeenPod:
    """A pod in its last watch event.

    Attributes:
        name: its name.
        uid: its UID.
        node: the node that it is bound to; empty before.
        cpu: its request in millicores.
        claims: refs of the reservations in its claims annotation.
    """

    name: str
    uid: str
    node: str
    cpu: int
    claims: frozenset[str]


class Book:
    """The manager's book; all methods may be called from any thread.

    Args:
        nodes: nodes for its reservations.
        grace_s: see below.
        groups: the groups of another manager, which are updated with the pods.

    Attributes:
        grace_s: seconds after a write in which Reserver must have seen it.
        bound: number of bindings that were seen.
        written: all reservations, in the order of their writing.
    """

    def __init__(self, nodes: Iterable[str], grace_s: float, groups: Groups) -> None:
        self.grace_s = grace_s
        self._groups = groups
        self._lock = threading.RLock()
        self._pods: dict[str, SeenPod] = {}
        self._nodes = tuple(nodes)
        self._used: Counter[str] = Counter()
        self._live: dict[str, Hold] = {}  # by owner
        self.bound = 0
        self.written: list[Hold] = []

    # Pods

    def pod_seen(self, pod: SeenPod) -> None:
        """Update a pod that exists."""
        with self._lock:
            before = self._pods.get(pod.name)
            if before is not None and before.uid != pod.uid:
                self.pod_gone(pod.name)
                before = None
            if pod.node and (before is None or not before.node):
                self._groups.landed(pod.uid, pod.node, pod.claims)
                self._landed(pod)
                self._used[pod.node] += pod.cpu
                if self._room(pod.node) < 0:
                    self._overtaken(pod.node)
            self._pods[pod.name] = pod

    def pod_gone(self, name: str) -> None:
        """Remove a pod that no longer exists."""
        with self._lock:
            pod = self._pods.pop(name, None)
            if pod is not None and pod.node:
                self._groups.went(pod.uid)
                self._used[pod.node] -= pod.cpu
            elif pod is not None and name in self._live:
                # KWOK ends pods by name: it may end a pod for the previous one of the same name.
                self._live[name].was_awaited = False

    def pod_missed(self, name: str) -> None:
        """Remove a pod that was deleted during a gap of the watch."""
        with self._lock:
            if name in self._live:
                self._live[name].was_missed = True
            self.pod_gone(name)

    def take(self, node: str, cpu: int) -> None:
        """Record that a pod of another namespace takes room, in millicores; or gives it back."""
        with self._lock:
            self._used[node] += cpu
            if self._room(node) < 0:
                self._overtaken(node)

    def pods(self) -> list[SeenPod]:
        """Return all pods that exist."""
        with self._lock:
            return list(self._pods.values())

    def pods_of(self, group: Group) -> list[SeenPod]:
        """Return the pods of a group's ReplicaSet."""
        return [pod for pod in self.pods() if pod.name.startswith(f"{group.name}-")]

    def pod(self, name: str) -> SeenPod | None:
        """Return a pod, if it exists."""
        return self._pods.get(name)

    def taken(self) -> int:
        """Return the requests of all pods, also pending ones, and of reservations in millicores."""
        with self._lock:
            now = time.time()
            held = sum(hold.terms.cpu for hold in self._live.values() if hold.holds(now))
            held += self._groups.held().total()
            return held + sum(pod.cpu for pod in self._pods.values())

    # Reservations

    def live(self) -> list[Hold]:
        """Return the reservations that hold now."""
        with self._lock:
            now = time.time()
            return [hold for hold in self._live.values() if hold.holds(now)]

    def find_room(self, rng: random.Random, cpu: int) -> str | None:
        """Return a random node with so much room in the book, in millicores; None without one."""
        with self._lock:
            held = self._groups.held()
            for hold in self.live():
                held[hold.terms.node] += hold.terms.cpu
            fits = [n for n in self._nodes if NODE_CPU - self._used[n] - held[n] >= cpu]
            return rng.choice(fits) if fits else None

    def has_room(self, node: str, cpu: int = 0) -> bool:
        """Return whether a node has room for all its holds, and so many millicores more."""
        with self._lock:
            return self._room(node) >= cpu

    def add(self, hold: Hold) -> bool:
        """Add a reservation that is about to be written; return False without room for it."""
        with self._lock:
            if self._room(hold.terms.node) < hold.terms.cpu:
                return False
            self._live[hold.terms.owner] = hold
            self.written.append(hold)
            return True

    def amend(self, hold: Hold, terms: Terms) -> bool:
        """Change the terms; return False without room for more, or if the owner was created."""
        with self._lock:
            more = terms.cpu - hold.terms.cpu
            if hold.is_over or hold.owner_came or (more > 0 and self._room(terms.node) < more):
                return False
            hold.terms = terms
            hold.written_at = ENDLESS
            return True

    def confirm(self, hold: Hold) -> None:
        """Record that the current terms are written."""
        hold.written_at = time.time()

    def end(self, hold: Hold) -> None:
        """End a reservation that was removed, or found gone."""
        with self._lock:
            hold.is_over = True
            if self._live.get(hold.terms.owner) is hold:
                del self._live[hold.terms.owner]

    def await_owner(self, hold: Hold) -> None:
        """Record that the owner is about to be created."""
        with self._lock:
            hold.owner_came = True
            holds = hold.holds(time.time()) and self._room(hold.terms.node) >= 0
            hold.was_awaited = holds and self._must_be_seen(hold)
            hold.had_room = True

    def _room(self, node: str) -> int:
        now = time.time()
        live = self._live.values()
        held = sum(h.terms.cpu for h in live if h.terms.node == node and h.holds(now))
        held += self._groups.held()[node]
        return NODE_CPU - self._used[node] - held

    def _landed(self, pod: SeenPod) -> None:
        self.bound += 1
        hold = self._live.get(pod.name)
        if hold is not None and hold.owner_came:
            hold.landed_on = pod.node
            hold.was_seen = self._must_be_seen(hold)
            self.end(hold)

    def _must_be_seen(self, hold: Hold) -> bool:
        return time.time() - hold.written_at > self.grace_s

    def _overtaken(self, node: str) -> None:
        """Excuse the holds of a node on which a pod took room at the moment of their writing."""
        for hold in self._live.values():
            if hold.terms.node == node:
                hold.had_room = False
