"""The register: which reservations are written; by place, by identity, and by who may claim them.

What has the same identity is one reservation that stands in several places (docs/adr/0009).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from reserver.cluster.pod import Pod, PodName
from reserver.reservations import owner
from reserver.reservations.entry import Entry
from reserver.reservations.owner import OwnerRule
from reserver.reservations.reservation import Ref, Reservation

K = TypeVar("K")
V = TypeVar("V")


class _Claimable(NamedTuple):
    """What a pod may claim if one of some rules matches it, or if it is named.

    Attributes:
        entry: what is written.
        rules: those of its rules that are found by one key.
    """

    entry: Entry
    rules: tuple[OwnerRule, ...]

    def by(self, pod: Pod) -> bool:
        """Return whether a pod may claim it."""
        is_named = pod.name in self.entry.reservation.owners
        return is_named or any(rule.matches(pod) for rule in self.rules)


class Register:
    """Which reservations are written."""

    def __init__(self) -> None:
        """Begin with none."""
        self._entries: dict[Ref, Entry] = {}
        self._by_owner: dict[owner.Key, dict[Ref, _Claimable]] = {}
        self._same: dict[str, dict[Ref, Entry]] = {}
        self._recorded: dict[str, dict[Ref, Entry]] = {}

    def __iter__(self) -> Iterator[Entry]:
        """Yield all, in the order in which they became known."""
        return iter(self._entries.values())

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._entries)

    def __getitem__(self, ref: Ref) -> Entry:
        """Return what is written at a place; KeyError if that is nothing."""
        return self._entries[ref]

    def get(self, ref: Ref) -> Entry | None:
        """Return what is written at a place."""
        return self._entries.get(ref)

    def add(self, entry: Entry) -> None:
        """Take an entry; nothing is written at its place."""
        reservation = entry.reservation
        self._entries[reservation.ref] = entry
        self._same.setdefault(reservation.identity, {})[reservation.ref] = entry
        self._recorded.setdefault(reservation.record, {})[reservation.ref] = entry
        for key, rules in _rules_by_key(reservation).items():
            self._by_owner.setdefault(key, {})[reservation.ref] = _Claimable(entry, tuple(rules))

    def remove(self, entry: Entry) -> None:
        """Forget an entry."""
        reservation = entry.reservation
        del self._entries[reservation.ref]
        _discard(self._same, reservation.identity, reservation.ref)
        _discard(self._recorded, reservation.record, reservation.ref)
        for key in _rules_by_key(reservation):
            _discard(self._by_owner, key, reservation.ref)

    def same(self, identity: str) -> Iterable[Entry]:
        """Return the entries of one identity, the one that holds for all of them first."""
        return self._same.get(identity, {}).values()

    def meant(self, identity: str) -> Iterable[Entry]:
        """Return the entries that a claim is of: whoever wrote it may have worked out their ttl."""
        same = self.same(identity)
        if same:
            return same
        record, _, digest = identity.rpartition("@")
        entries = self._recorded.get(record, {}).values()
        return [entry for entry in entries if entry.reservation.is_called(digest)]

    def first(self, identity: str) -> Entry | None:
        """Return the entry that holds for all of one identity."""
        return next(iter(self.same(identity)), None)

    def is_first(self, entry: Entry) -> bool:
        """Return whether an entry holds for all that have the same identity."""
        return self.first(entry.reservation.identity) is entry

    def naming(self, pod: PodName) -> tuple[Entry, ...]:
        """Return the entries that name a pod, in the order in which they became known."""
        found = self._by_owner.get(owner.named(pod), {}).values()
        return tuple(each.entry for each in found if pod in each.entry.reservation.owners)

    def matching(self, pod: Pod) -> Iterable[Entry]:
        """Return the entries that a pod may claim, oldest first.

        No rule is asked but those that may match it, however many there are.
        """
        found = {
            each.entry.order: each.entry
            for key in owner.keys(pod)
            for each in self._by_owner.get(key, {}).values()
            if each.by(pod)
        }
        return [found[order] for order in sorted(found)]


def _discard(index: dict[K, dict[Ref, V]], key: K, ref: Ref) -> None:
    """Remove an entry from an index, and its key with the last one."""
    entries = index[key]
    del entries[ref]
    if not entries:
        del index[key]


def _rules_by_key(reservation: Reservation) -> dict[owner.Key, list[OwnerRule]]:
    """Return what finds a reservation, with the rules that are found by it; none for a name."""
    keys: dict[owner.Key, list[OwnerRule]] = {owner.named(pod): [] for pod in reservation.owners}
    for rule in reservation.rules:
        keys.setdefault(rule.key(), []).append(rule)
    return keys
