"""Another manager: it reserves for pods by their controller and their labels."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from hack.chaos.agenda import Agenda
from hack.chaos.book import Book
from hack.chaos.groups import APP, FORMS, Group, Groups
from hack.chaos.pods import Pods
from hack.chaos.scale import GROUP_CPU, LEVEL, Scale
from hack.chaos.store import StoreHand

_PACE = 0.75  # of the storm's time is enough to write all
_LONG = 900  # seconds: longer than any storm
_SLOTS = (1, 2, 2, 3, 4)
_NODELESS = 0.5  # share of those that reserver places
_REUSABLE = 0.4
_REFILLED = 0.3  # share of those that reserver places
_RELEASED = 0.3
_REQUIRED = 0.3
_SHARED = 0.25  # share of the groups with the same label value as the previous group
_EDITED = 0.3


class Steward:
    """Writes reservations for groups of pods, and makes a ReplicaSet create these.

    Each has a fate. Its slots are filled, or there are more pods than slots, or fewer; pods of a
    reusable one are deleted, and created again; or it is removed, or expires, with pods; or it
    stays unclaimed.
    """

    def __init__(
        self, seed: int, scale: Scale, book: Book, groups: Groups, store: StoreHand, pods: Pods
    ) -> None:
        self._rng = random.Random(seed)  # noqa: S311
        self._level = int(LEVEL * scale.cpu)
        self._book = book
        self._groups = groups
        self._store = store
        self._pods = pods
        self._sequence = count(1)
        self._agenda = Agenda(self._rng, scale.groups, _PACE * scale.seconds, store.stop)
        self._app = ""

    def write(self, stop: threading.Event) -> None:
        """Write all reservations and run each to its end; once stopped, begin no more."""
        self._agenda.work(self._begin, stop)

    def _begin(self) -> bool:
        """Write a reservation; return False without room for it."""
        cpu, slots = self._rng.choice(GROUP_CPU), self._rng.choice(_SLOTS)
        node: str | None = ""
        if self._rng.random() < _NODELESS:
            self._make_room(cpu * slots)
        else:
            node = self._book.find_room(self._rng, cpu * slots)
        if node is None:
            return False
        group = self._draw(cpu, slots, node)
        self._groups.add(group)
        self._store.put(group.ref, group.text())
        fates = self._fates()
        (fate,) = self._rng.choices(list(fates), weights=list(fates.values()))
        fate(group)
        return True

    def _draw(self, cpu: int, slots: int, node: str) -> Group:
        name = f"group-{next(self._sequence)}"
        if not self._app or self._rng.random() >= _SHARED:
            self._app = name
        store, write = self._rng.choice(FORMS)
        strategy = self._rng.choice(("pack", "spread"))
        return Group(
            name=name,
            namespace=self._pods.namespace,
            app=self._app,
            store=store,
            write=write,
            owners=self._owners(name),
            node=node,
            placement={"nodeSelector": self._pods.nodes, "strategy": strategy},
            cpu=cpu,
            slots=slots,
            expires=int(time.time()) + _LONG,
            policy="Require" if self._rng.random() < _REQUIRED else "Prefer",
            is_reusable=self._rng.random() < _REUSABLE,
            is_refilled=not node and self._rng.random() < _REFILLED,
            is_released=self._rng.random() < _RELEASED,
        )

    def _owners(self, name: str) -> list[dict[str, Any]]:
        there = {"namespace": self._pods.namespace}
        maker = {"controller": {"kind": "ReplicaSet", "name": name} | there}
        equal = {"selector": {"matchLabels": {APP: self._app}} | there}
        terms = [
            {"key": APP, "operator": "In", "values": [self._app, "nobody"]},
            {"key": "reserver.io/never", "operator": "DoesNotExist"},
        ]
        among = {"selector": {"matchExpressions": terms} | there}
        nobody = {"pod": {"name": f"{name}-nobody"} | there}
        kinds: tuple[list[dict[str, Any]], ...] = (
            [maker],
            [equal],
            [among],
            [maker | equal],
            [nobody, maker, among],
        )
        return self._rng.choice(kinds)

    def _fates(self) -> dict[Callable[[Group], None], int]:
        """Return each fate with its share in percent."""
        return {
            self._is_filled: 35,
            self._is_overrun: 20,
            self._is_removed: 15,
            self._expires: 15,
            self._stays: 15,
        }

    def _is_filled(self, group: Group) -> None:
        if self._rng.random() < _EDITED:
            self._edit(group)
        self._come(group, group.slots)

    def _is_overrun(self, group: Group) -> None:
        self._come(group, group.slots + self._rng.randint(1, 2))

    def _is_removed(self, group: Group) -> None:
        self._come(group, self._rng.randint(0, group.slots - 1))
        self._agenda.after(2, 10, lambda: self._remove(group))

    def _expires(self, group: Group) -> None:
        group.expires = int(time.time()) + self._rng.randint(3, 12)
        self._store.replace(group.ref, group.text())
        self._come(group, group.slots)

    def _stays(self, group: Group) -> None:
        pass

    # The fate of one reservation

    def _edit(self, group: Group) -> None:
        """Edit the reservation before any pod is created."""
        group.slots = max(1, group.slots - self._rng.randint(0, 1))
        group.expires += self._rng.choice((-300, 60))
        self._store.replace(group.ref, group.text())

    def _come(self, group: Group, number: int) -> None:
        def come() -> None:
            self._pods.replicate(group.name, group.cpu, number, {APP: group.app})

        if not number:
            return
        self._agenda.after(0.1, 3 + 2 * self._book.grace_s, come)
        if group.is_reusable or group.is_refilled:
            for turn in range(3):
                self._agenda.after(6 + 3 * turn, 9 + 3 * turn, lambda: self._wear(group))
        self._agenda.after(14, 20, lambda: self._disband(group))

    def _wear(self, group: Group) -> None:
        """Delete a pod; its ReplicaSet creates another one."""
        pods = self._book.pods_of(group)
        if pods:
            self._pods.delete(self._rng.choice(pods), self._rng.randint(0, 1))

    def _disband(self, group: Group) -> None:
        """Delete its pods for others once all have landed; at the end they stay."""
        if self._agenda.is_ending:
            return
        if all(pod.node for pod in self._book.pods_of(group)):
            self._pods.disband(group.name)
        else:
            self._agenda.after(1, 2, lambda: self._disband(group))

    def _remove(self, group: Group) -> None:
        self._store.remove(group.ref)
        group.is_over = True

    def _make_room(self, cpu: int) -> None:
        """Delete pods without claims, as many as the new reservation needs."""
        excess = self._book.taken() + cpu - self._level
        others = [pod for pod in self._book.pods() if pod.node and not pod.claims]
        self._rng.shuffle(others)
        while excess > 0 and others:
            pod = others.pop()
            self._pods.delete(pod)
            excess -= pod.cpu
