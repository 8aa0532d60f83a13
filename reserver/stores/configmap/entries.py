"""Reads the data keys of a store ConfigMap into reservations, and problems of broken entries."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from reserver.base.pacer import outcome
from reserver.cluster.quantity import shorten
from reserver.errors import Fault, InvalidInput, ReserverError
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import HOME, ITEM_BYTES, KEPT, MOST_KEYS, SpecLimits, check_text
from reserver.k8s.objects.objects import Metadata
from reserver.reservations.recurrence import series_digest
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import document, lifetime_codec, newer_fields
from reserver.stores.configmap import list_codec
from reserver.stores.entries import MOST_PROBLEMS, Entries, EntryProblem

STORE_LABEL = "reserver.io/store"
"""The label, with the value ``true``, of the store ConfigMaps in Reserver's own namespace."""


Noted = Callable[[Ref, Exception], Fault]
"""Logs an exception from reading an entry; returns the fault to report."""


def _raise(_: Ref, exc: Exception) -> Fault:
    raise exc


def read_kept(ref: Ref, text: str, seen_at: float, digest: str) -> Entries | None:
    """Return the entry of a key that was in force, despite exceeded bounds or unknown fields.

    None if its digest is not `digest`, unless unknown fields are part of that digest.
    """
    try:
        entries = _read_one(ref, text, seen_at, KEPT, was_in_force=True)
    except InvalidInput:
        return None
    digests = [each.digest for each in entries.reservations]
    return entries if entries.ignored or digests == [series_digest(digest)] else None


def read_key(ref: Ref, text: str, seen_at: float) -> Entries:
    """Return the entries of one data key; a broken entry does not affect others.

    `seen_at` is the time at which Reserver first saw this value, in unix seconds.
    """
    return outcome(reading_key(ref, text, seen_at, _raise))


def reading_key(
    ref: Ref, text: str, seen_at: float, noted: Noted, ignored: str = ""
) -> Generator[None, None, Entries]:
    """Read a key as `read_key` does, entry by entry; an exception affects only its own entry.

    Fields that were `ignored` before stay ignored, even if they resemble known fields.
    """
    try:
        if text.lstrip().startswith("["):
            return (yield from _read_list(ref, text, noted))
        with _faults(ref, noted):
            if ignored:
                entries = _read_one(ref, text, seen_at, was_in_force=True)
                if entries.ignored == ignored:
                    return entries
            return _read_one(ref, text, seen_at)
    except InvalidInput as exc:
        return Entries(problems=(EntryProblem(ref, exc),))


@contextmanager
def _faults(ref: Ref, noted: Noted) -> Iterator[None]:
    """Turn unexpected exceptions of this block into faults."""
    try:
        yield
    except (ReserverError, MemoryError):
        raise
    except Exception as exc:
        raise noted(ref, exc) from exc


def _read_one(
    ref: Ref, text: str, seen_at: float, limits: SpecLimits = HOME, *, was_in_force: bool = False
) -> Entries:
    check_text(text, limits.spec_bytes)
    value = document.parse(text)
    if value is None:
        return Entries()  # Go programs write null for an empty list.
    if isinstance(value, dict):
        reservation, ignored = newer_fields.read(
            value, ref, seen_at, limits, was_in_force=was_in_force
        )
        unstamped = lifetime_codec.needs_stamp(value)
        return Entries((reservation,), unstamped=unstamped, ignored=ignored)
    if isinstance(value, list):
        raise InvalidInput("", "a list has to be JSON", 'write [{"pod": …}, …]')
    problem = f"{shorten(repr(value))} is neither a reservation nor a list of them"
    raise InvalidInput("", problem, "write a mapping, or a JSON list for a node")


def _read_list(ref: Ref, text: str, noted: Noted) -> Generator[None, None, Entries]:
    with _faults(ref, noted):
        items = document.split_list(text)
    names.check_subdomain(ref.key, "", "a node's name, as the key of a list has to be")
    reservations: dict[Ref, Reservation] = {}
    problems = []
    for index, item in enumerate(items):
        try:
            with _faults(ref, noted):
                check_text(item, ITEM_BYTES)
                reservation = list_codec.read_item(document.parse(item), ref)
                if reservation.ref in reservations:
                    problem = f"pod {reservation.ref.item} is in the list already"
                    raise InvalidInput("", problem, "write one entry for a pod and a node")
                reservations[reservation.ref] = reservation
        except InvalidInput as exc:
            problems.append(EntryProblem(ref, exc.under(f"[{index}]")))
        yield
    return Entries(
        tuple(reservations.values()),
        tuple(problems[:MOST_PROBLEMS]),
        more_problems=len(problems[MOST_PROBLEMS:]),
    )


@dataclass(slots=True)
class StoreKey:
    """A data key, as last read."""

    text: str
    entries: Entries


@dataclass(slots=True)
class StoreDocument:
    """A ConfigMap, as last read.

    Attributes:
        metadata: the metadata of the last version that was read completely.
        keys: the data keys by name.
        size: bytes of keys and values.
    """

    metadata: Metadata
    keys: dict[str, StoreKey] = field(default_factory=dict)
    size: int = 0

    def exchange(self, name: str, key: StoreKey | None) -> StoreKey | None:
        """Replace a data key, or remove it with None; return the former key."""
        before = self.keys.pop(name, None)
        if before is not None:
            self.size -= size_of(name, before.text)
        if key is not None:
            self.keys[name] = key
            self.size += size_of(name, key.text)
        return before

    @property
    def problem_count(self) -> int:
        """The number of entries that are not enforced."""
        entries = [key.entries for key in self.keys.values()]
        return sum(len(each.problems) + each.more_problems for each in entries)


def size_of(name: str, text: str) -> int:
    """Return the bytes of a data key and its value."""
    return len(name.encode()) + len(text.encode())


def within_bounds(
    metadata: Metadata, data: Mapping[str, str], known: Container[str]
) -> tuple[Mapping[str, str], EntryProblem | None]:
    """Return the keys to read of one ConfigMap, at most `MOST_KEYS`, with cached keys first.

    The second value is the problem if some keys are left out; else None.
    """
    if len(data) <= MOST_KEYS:
        return data, None
    kept = sorted(data, key=lambda key: key not in known)
    remedy = "remove keys that are not reservations, or write several ConfigMaps"
    error = InvalidInput(
        "data", f"{len(data)} keys are too many", f"{MOST_KEYS} are read; {remedy}"
    )
    ref = Ref(metadata.namespace, metadata.name, kept[MOST_KEYS])
    return {key: data[key] for key in kept[:MOST_KEYS]}, EntryProblem(ref, error)
