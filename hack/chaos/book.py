"""The manager's picture: what pods use, what it holds for whom, and what became of it."""

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
    """A reservation as the manager thinks of it.

    Attributes:
        form: how it is written.
        written_at: when the API server had confirmed what it says now, unix seconds.
        terms: what it says now.
        is_over: removed, given up, or its owner has landed.
        owner_came: its owner was created.
        was_awaited: at that moment it held, had its room, and reserver must have seen it.
        landed_on: the node that its owner was bound to.
        was_seen: when that happened, reserver must have seen it.
        had_room: from then until it landed, its node had room for all that was held there.
        was_missed: its owner went while nobody could look; whether it had landed is not known.
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
        """Whether it counts at `now`, unix seconds."""
        return not self.is_over and now < self.terms.expires


@dataclass(frozen=True, kw_only=True)
class SeenPod:
    """A pod as the watch showed it last.

    Attributes:
        name: its name.
        uid: of this pod.
        node: where it is bound, empty until it is.
        cpu: millicores.
        claims: the refs of the reservations that it says it claimed.
    """

    name: str
    uid: str
    node: str
    cpu: int
    claims: frozenset[str]


class Book:
    """The manager's picture; all methods may be called from any thread.

    Args:
        nodes: where it reserves.
        grace_s: see below.
        groups: what another manager holds, which follows the pods.

    Attributes:
        grace_s: how long reserver may take to see a write, in seconds.
        bound: how many pods were seen being bound.
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
        """Takes a pod as it is now."""
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
        """Takes note that a pod does not exist any more."""
        with self._lock:
            pod = self._pods.pop(name, None)
            if pod is not None and pod.node:
                self._groups.went(pod.uid)
                self._used[pod.node] -= pod.cpu
            elif pod is not None and name in self._live:
                # KWOK ends pods by name: it takes a pod for the one that had the name before.
                self._live[name].was_awaited = False

    def pod_missed(self, name: str) -> None:
        """Takes note that a pod went while the watch showed nothing."""
        with self._lock:
            if name in self._live:
                self._live[name].was_missed = True
            self.pod_gone(name)

    def pods(self) -> list[SeenPod]:
        """All pods that exist."""
        with self._lock:
            return list(self._pods.values())

    def pods_of(self, group: Group) -> list[SeenPod]:
        """Those that the ReplicaSet of a group has made."""
        return [pod for pod in self.pods() if pod.name.startswith(f"{group.name}-")]

    def pod(self, name: str) -> SeenPod | None:
        """A pod, if it exists."""
        return self._pods.get(name)

    def taken(self) -> int:
        """What pods, waiting ones included, and reservations take, in millicores."""
        with self._lock:
            now = time.time()
            held = sum(hold.terms.cpu for hold in self._live.values() if hold.holds(now))
            held += self._groups.held().total()
            return held + sum(pod.cpu for pod in self._pods.values())

    # Reservations

    def live(self) -> list[Hold]:
        """The reservations that hold something now."""
        with self._lock:
            now = time.time()
            return [hold for hold in self._live.values() if hold.holds(now)]

    def find_room(self, rng: random.Random, cpu: int) -> str | None:
        """A node with so much room, in millicores, as far as the manager can see."""
        with self._lock:
            held = self._groups.held()
            for hold in self.live():
                held[hold.terms.node] += hold.terms.cpu
            fits = [n for n in self._nodes if NODE_CPU - self._used[n] - held[n] >= cpu]
            return rng.choice(fits) if fits else None

    def has_room(self, node: str, cpu: int = 0) -> bool:
        """Whether a node has room for all that is held there, and so many millicores more."""
        with self._lock:
            return self._room(node) >= cpu

    def add(self, hold: Hold) -> bool:
        """Counts a reservation that is about to be written; False if its room is gone."""
        with self._lock:
            if self._room(hold.terms.node) < hold.terms.cpu:
                return False
            self._live[hold.terms.owner] = hold
            self.written.append(hold)
            return True

    def amend(self, hold: Hold, terms: Terms) -> bool:
        """Counts other terms; False if there is no room for more, or its owner came."""
        with self._lock:
            more = terms.cpu - hold.terms.cpu
            if hold.is_over or hold.owner_came or (more > 0 and self._room(terms.node) < more):
                return False
            hold.terms = terms
            hold.written_at = ENDLESS
            return True

    def confirm(self, hold: Hold) -> None:
        """Takes note that a reservation is written as its terms say."""
        hold.written_at = time.time()

    def end(self, hold: Hold) -> None:
        """Counts a reservation no longer: it was removed, or found gone."""
        with self._lock:
            hold.is_over = True
            if self._live.get(hold.terms.owner) is hold:
                del self._live[hold.terms.owner]

    def await_owner(self, hold: Hold) -> None:
        """Takes note that the owner is about to be created."""
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
        """A pod took room at the moment it was reserved: nobody can promise who comes too late."""
        for hold in self._live.values():
            if hold.terms.node == node:
                hold.had_room = False
