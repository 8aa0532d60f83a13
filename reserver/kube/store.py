"""The view of the store: what ConfigMaps say into the ledger, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import structlog

from reserver.errors import InvalidInput
from reserver.reservations.ledger import Ledger
from reserver.reservations.reservation import Phase, Ref, Reservation
from reserver.wire import companion, edits
from reserver.wire.edits import Edit
from reserver.wire.objects import ConfigMapObject, Metadata
from reserver.wire.store import Entries, Problem, read_key

log = structlog.get_logger(__name__)

NO_COMPANION = f"!{companion.LABEL}"
"""Selects all but the ConfigMaps that we write ourselves (`kube.status`)."""

LABEL = f"reserver.io/store=true,{NO_COMPANION}"
"""Selects the ConfigMaps that are read without being named."""

Name = tuple[str, str]
"""Namespace and name of a ConfigMap."""

_OVER = (Phase.CLAIMED, Phase.EXPIRED)


@dataclass(slots=True)
class _Key:
    """One data key as it was last read."""

    text: str
    entries: Entries


@dataclass(slots=True)
class _Document:
    """One ConfigMap as it was last read."""

    metadata: Metadata
    keys: dict[str, _Key] = field(default_factory=dict)


class Store:
    """What all store ConfigMaps say, and where.

    Only keys whose value has changed are read again, and only entries that say something else
    touch the ledger.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Callable[[], float],
        report: Callable[[Metadata, Problem], None],
        touched: Callable[[Ref], None] = lambda _: None,
    ) -> None:
        """Keep a ledger up to date.

        Args:
            ledger: where reservations go.
            clock: unix seconds.
            report: is told of each entry that is not enforced, with its ConfigMap.
            touched: is told of each key that is written anew or removed.
        """
        self._ledger = ledger
        self._clock = clock
        self._report = report
        self._touched = touched
        self._documents: dict[Name, _Document] = {}
        self._homeless: set[str] = set()

    def put(self, configmap: ConfigMapObject) -> None:
        """Take a ConfigMap as it is now."""
        self._ledger.advance(self._clock())
        metadata = configmap.metadata
        name = (metadata.namespace, metadata.name)
        document = self._documents.setdefault(name, _Document(metadata))
        document.metadata = metadata
        data = configmap.data or {}
        for key in document.keys.keys() - data.keys():
            self._exchange(document, key, None)
        for key, text in data.items():
            known = document.keys.get(key)
            if known is None or known.text != text:
                ref = Ref(metadata.namespace, metadata.name, key)
                entries = read_key(ref, text, self._clock())
                self._exchange(document, key, _Key(text, entries))

    def drop(self, name: Name) -> None:
        """Forget a ConfigMap that is gone or is no store any more."""
        document = self._documents.pop(name, None)
        if document is not None:
            for key in list(document.keys):
                self._exchange(document, key, None)

    def names(self) -> tuple[Name, ...]:
        """Return the ConfigMaps that are read."""
        return tuple(self._documents)

    def metadata(self, name: Name) -> Metadata | None:
        """Return the metadata of a ConfigMap that is read, None for any other."""
        document = self._documents.get(name)
        return document.metadata if document else None

    def keys(self, name: Name) -> tuple[str, ...]:
        """Return the data keys of a ConfigMap; none if it is not read."""
        document = self._documents.get(name)
        return tuple(document.keys) if document else ()

    def entries(self, ref: Ref) -> Entries | None:
        """Return what one data key says, None when there is none."""
        document = self._documents.get((ref.namespace, ref.configmap))
        key = document.keys.get(ref.key) if document else None
        return key.entries if key else None

    def problems(self) -> Iterator[Problem]:
        """Yield why entries are not enforced."""
        for document in self._documents.values():
            for key in document.keys.values():
                yield from key.entries.problems

    def problem_counts(self) -> Iterator[tuple[Name, int]]:
        """Yield each ConfigMap with the number of its entries that are not enforced."""
        for name, document in self._documents.items():
            entries = [key.entries for key in document.keys.values()]
            yield name, sum(len(entry.problems) + entry.more_problems for entry in entries)

    def report_unknown_nodes(self, has_node: Callable[[str], bool]) -> int:
        """Report, once, each reservation whose node does not exist; return how many there are."""
        homeless: dict[str, Reservation] = {
            reservation.identity: reservation
            for reservation, phase in self._ledger
            if phase not in _OVER and not has_node(reservation.node)
        }
        for identity in homeless.keys() - self._homeless:
            ref = homeless[identity].ref
            problem = f"node {homeless[identity].node!r} does not exist"
            remedy = "correct the name; the capacity is held as soon as such a node appears"
            error = InvalidInput("" if ref.item else "node", problem, remedy)
            self._report(
                self._documents[ref.namespace, ref.configmap].metadata, Problem(ref, error)
            )
        self._homeless = set(homeless)
        return len(homeless)

    def due_edits(self, now: float) -> Iterator[Edit]:
        """Yield the edits that tidy the store: remove what is over, stamp what has a ttl.

        Args:
            now: unix seconds.
        """
        self._ledger.advance(now)
        over = {
            reservation.ref._replace(item="")
            for reservation, _ in self._ledger
            if self._ledger.is_over(reservation.ref)
        }
        for document in self._documents.values():
            for name, key in document.keys.items():
                ref = Ref(document.metadata.namespace, document.metadata.name, name)
                edit = self._due_edit(ref, key, is_over=ref in over)
                if edit is not None:
                    yield edit

    def _due_edit(self, ref: Ref, key: _Key, *, is_over: bool) -> Edit | None:
        if is_over and key.entries.reservations[0].ref.item:
            return edits.remove(ref, key.text, self._is_over)
        if is_over:
            return Edit(ref, key.text, None, "over")
        if key.entries.unstamped:
            return edits.stamp(ref, key.text, key.entries.reservations[0])
        return None

    def _is_over(self, reservation: Reservation) -> bool:
        known = self._ledger.get(reservation.ref)
        return known == reservation and self._ledger.is_over(reservation.ref)

    def _exchange(self, document: _Document, name: str, key: _Key | None) -> None:
        before = document.keys.pop(name, None)
        self._touched(Ref(document.metadata.namespace, document.metadata.name, name))
        old = {r.ref: r for r in before.entries.reservations} if before else {}
        new = {r.ref: r for r in key.entries.reservations} if key else {}
        for ref in old.keys() - new.keys():
            self._ledger.drop(ref)
        for reservation in new.values():
            if reservation != old.get(reservation.ref):
                self._ledger.put(reservation)
                self._warn_if_past(document.metadata, reservation)
        if key is not None:
            document.keys[name] = key
            for problem in key.entries.problems:
                self._report(document.metadata, problem)

    def _warn_if_past(self, metadata: Metadata, reservation: Reservation) -> None:
        if self._ledger.phase(reservation.ref) is Phase.EXPIRED:
            field_ = "expire" if reservation.ref.item else "expiresAt"
            remedy = "write a moment in the future; the cleaner removes this entry"
            error = InvalidInput(field_, "lies in the past, so nothing is held", remedy)
            self._report(metadata, Problem(reservation.ref, error))
