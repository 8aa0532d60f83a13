"""A global manager: it writes, edits and removes reservations continuously, in all forms."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from hack.chaos.agenda import Agenda
from hack.chaos.book import Book, Hold, SeenPod
from hack.chaos.forms import FORMS, Terms
from hack.chaos.pods import Pods
from hack.chaos.scale import POD_CPU, Scale
from hack.chaos.store import Ref, StoreHand

_PACE = 0.85  # of the storm's time is enough to write all reservations
_LONG = 900  # seconds: longer than any storm
_LOOK_AGAIN = 0.1  # seconds
_EDITED = 0.3  # share of the reservations
_STEP = 250  # millicores
_REQUIRED = 0.3  # share of the reservations in the spec form whose owners may land nowhere else


class Writer:
    """A thread of the manager that writes its own reservations.

    Each reservation has a fate. Its owner arrives; or moves (an existing pod is deleted and created
    again under its name); or it expires or is removed before an owner comes, and a late owner lands
    on any node; or it stays unclaimed.
    """

    def __init__(
        self, name: str, seed: int, scale: Scale, book: Book, store: StoreHand, pods: Pods
    ) -> None:
        self._name = name
        self._rng = random.Random(seed)  # noqa: S311
        self._book = book
        self._store = store
        self._pods = pods
        self._sequence = count(1)
        self._agenda = Agenda(self._rng, scale.reservations // 2, _PACE * scale.seconds, store.stop)

    def write(self, stop: threading.Event) -> None:
        """Write all its reservations and run each to its end; once stopped, begin no more."""
        self._agenda.work(self._begin, stop)

    def _begin(self) -> bool:
        """Write a reservation; return False without room for any size."""
        size = self._rng.choice(POD_CPU)
        for cpu in sorted({each for each in POD_CPU if each <= size}, reverse=True):
            node = self._book.find_room(self._rng, cpu)
            if node is not None:
                fates = self._fates()
                (fate,) = self._rng.choices(list(fates), weights=list(fates.values()))
                fate(f"{self._name}-{next(self._sequence)}", node, cpu)
                return True
        return False

    def _fates(self) -> dict[Callable[[str, str, int], None], int]:
        """Return each fate with its share in percent."""
        return {
            self._owner_arrives: 45,
            self._owner_moves: 10,
            self._expires: 20,
            self._is_removed: 15,
            self._stays: 10,
        }

    def _owner_arrives(self, name: str, node: str, cpu: int) -> None:
        hold = self._add(name, node, cpu, _LONG)
        if hold is None:
            return
        if self._rng.random() < _EDITED:
            self._agenda.after(0.2, 1, lambda: self._edit(hold))
        self._agenda.after(0.1, 6 + 2 * self._book.grace_s, lambda: self._arrive(hold, cpu))

    def _owner_moves(self, name: str, node: str, cpu: int) -> None:
        bound = [pod for pod in self._book.pods() if pod.node and pod.name.startswith("fill-")]
        if not bound:
            return self._owner_arrives(name, node, cpu)
        pod = self._rng.choice(bound)
        if pod.node == node or any(hold.terms.owner == pod.name for hold in self._book.live()):
            return self._owner_arrives(name, node, cpu)
        hold = self._add(pod.name, node, cpu, _LONG)
        if hold is not None:
            self._agenda.after(0.5, 4 + self._book.grace_s, lambda: self._evict(pod, hold, cpu))
        return None

    def _expires(self, name: str, node: str, cpu: int) -> None:
        seconds = self._rng.randint(2, 12)
        hold = self._add(name, node, cpu, seconds)
        if hold is None:
            return
        if self._rng.random() < _EDITED:
            self._agenda.after(0.2, 1.5, lambda: self._postpone(hold, self._rng.randint(1, 8)))
        self._agenda.after(seconds + 9, seconds + 10, lambda: self._arrive(hold, cpu))

    def _is_removed(self, name: str, node: str, cpu: int) -> None:
        hold = self._add(name, node, cpu, _LONG)
        if hold is not None:
            self._agenda.after(1, 10, lambda: self._remove(hold))
            self._agenda.after(10, 12, lambda: self._arrive(hold, cpu))

    def _stays(self, name: str, node: str, cpu: int) -> None:
        self._add(name, node, cpu, _LONG)

    # What happens to one reservation

    def _add(self, owner: str, node: str, cpu: int, seconds: int) -> Hold | None:
        form = self._rng.choice(FORMS)
        terms = Terms(
            node=node,
            namespace=self._pods.namespace,
            owner=owner,
            cpu=cpu,
            expires=int(time.time()) + seconds,
            policy="Prefer" if form.is_list or self._rng.random() > _REQUIRED else "Require",
        )
        hold = Hold(form=form, terms=terms)
        if not self._book.add(hold):
            return None
        self._store.put(Ref.of(form, terms), form.write(terms))
        self._book.confirm(hold)
        return hold

    def _edit(self, hold: Hold) -> None:
        if self._rng.random() < 0.5:  # noqa: PLR2004 (a coin)
            self._postpone(hold, self._rng.choice((-300, 60)))
        else:
            self._rewrite(hold, replace(hold.terms, cpu=hold.terms.cpu + _STEP))

    def _postpone(self, hold: Hold, seconds: int) -> None:
        self._rewrite(hold, replace(hold.terms, expires=hold.terms.expires + seconds))

    def _rewrite(self, hold: Hold, terms: Terms) -> None:
        if not self._book.amend(hold, terms):
            return
        if self._store.replace(Ref.of(hold.form, terms), hold.form.write(terms)):
            self._book.confirm(hold)
        else:
            self._book.end(hold)

    def _remove(self, hold: Hold) -> None:
        self._store.remove(Ref.of(hold.form, hold.terms))
        self._book.end(hold)

    def _arrive(self, hold: Hold, cpu: int) -> None:
        self._book.await_owner(hold)
        self._pods.create(hold.terms.owner, cpu)

    def _evict(self, pod: SeenPod, hold: Hold, cpu: int) -> None:
        """Delete the owner's predecessor; create the owner once it is gone."""
        self._pods.delete(pod)
        self._when_gone(hold, cpu)

    def _when_gone(self, hold: Hold, cpu: int) -> None:
        if self._book.pod(hold.terms.owner) is None:
            self._arrive(hold, cpu)
        else:
            self._agenda.after(_LOOK_AGAIN, _LOOK_AGAIN, lambda: self._when_gone(hold, cpu))
