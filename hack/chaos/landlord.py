"""A manager of whole nodes for groups of pods, while all others look for room."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import replace
from functools import partial
from typing import Any

from hack.chaos.agenda import Agenda
from hack.chaos.book import Book
from hack.chaos.groups import APP, FORMS, Group, Groups
from hack.chaos.pods import Pods
from hack.chaos.scale import GROUP_CPU, NODE_CPU, Scale
from hack.chaos.store import StoreHand

_LONG = 900  # seconds: longer than any storm
_LATER = (0.35, 0.65)  # share of the storm's time after which one is edited, and another removed
_POSTPONED = 60  # seconds
_WORN = 10  # owners of each are deleted


class Landlord:
    """Holds nodes without pods before the storm, and makes a ReplicaSet create owners for each.

    Owners are created, deleted and created again. One reservation stays, one is edited, and one is
    removed, so that other pods come; then it is written again, and waits until these end.
    """

    def __init__(
        self, seed: int, scale: Scale, book: Book, groups: Groups, store: StoreHand, pods: Pods
    ) -> None:
        self._rng = random.Random(seed)  # noqa: S311
        self._seconds = scale.seconds
        self._book = book
        self._groups = groups
        self._store = store
        self._pods = pods
        self._agenda = Agenda(self._rng, 0, 0.0, store.stop)
        self._first = [self._draw(number, n) for number, n in enumerate(scale.whole_groups, 1)]

    def begin(self) -> None:
        """Write all reservations before the storm."""
        for group in self._first:
            self._write(group)

    @property
    def is_placed(self) -> bool:
        """Whether all of these have their nodes."""
        return all(sum(group.placed.values()) == group.slots for group in self._first)

    def write(self, stop: threading.Event) -> None:
        """Run each reservation to its end; once stopped, write nothing more."""
        for group in self._first:
            self._agenda.after(0.1, 3, partial(self._come, group))
        for group, change in zip(self._first, (self._give_back, self._edit), strict=False):
            least, most = (share * self._seconds for share in _LATER)
            self._agenda.after(least, most, partial(change, group))
        self._agenda.work(lambda: True, stop)

    def _draw(self, number: int, count: int) -> Group:
        name, there = f"whole-{number}", {"namespace": self._pods.namespace}
        store, write = FORMS[number % len(FORMS)]
        kinds = (
            {"controller": {"kind": "ReplicaSet", "name": name} | there},
            {"selector": {"matchLabels": {APP: name}} | there},
        )
        return Group(
            name=name,
            namespace=self._pods.namespace,
            app=name,
            store=store,
            write=write,
            owners=[kinds[number % len(kinds)]],
            node="",
            placement={},
            cpu=self._rng.choice(GROUP_CPU),
            slots=count,
            expires=int(time.time()) + _LONG,
            policy=self._rng.choice(("Prefer", "Require")),
            is_reusable=True,
            is_whole=True,
        )

    def _write(self, group: Group) -> None:
        self._groups.add(group)
        self._store.put(group.ref, group.text())

    def _come(self, group: Group) -> None:
        """Create about as many owners as have room."""
        number = group.slots * NODE_CPU // group.cpu + self._rng.randint(-6, 2)
        self._pods.replicate(group.name, group.cpu, number, {APP: group.app})
        for _ in range(_WORN):
            self._agenda.after(0.0, self._seconds, partial(self._wear, group))

    def _wear(self, group: Group) -> None:
        """Delete an owner; its ReplicaSet creates another one."""
        pods = self._book.pods_of(group)
        if pods and not self._agenda.is_ending:
            self._pods.delete(self._rng.choice(pods), self._rng.randint(0, 1))

    def _edit(self, group: Group) -> None:
        """Edit the reservation: its owners are running, and it keeps their nodes."""
        group.expires += _POSTPONED
        self._store.replace(group.ref, group.text())

    def _give_back(self, group: Group) -> None:
        self._store.remove(group.ref)
        group.is_over = True
        self._agenda.after(1, 3, partial(self._write_again, group))

    def _write_again(self, group: Group) -> None:
        if not self._agenda.is_ending:
            fresh: dict[str, Any] = {"is_over": False, "placed": {}, "pods": {}, "gone": set()}
            self._write(replace(group, name=f"{group.name}-again", **fresh))
