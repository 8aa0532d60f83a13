"""One store ConfigMap as it was last read."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import MOST_KEYS
from reserver.k8s.objects.objects import Metadata
from reserver.reservations.reservation import Ref
from reserver.stores.configmap.entries import Entries, EntryProblem


@dataclass(slots=True)
class StoreKey:
    """One data key as it was last read."""

    text: str
    entries: Entries


@dataclass(slots=True)
class StoreDocument:
    """One ConfigMap as it was last read.

    Attributes:
        metadata: up to which resourceVersion all of it is known.
        keys: what each data key says.
        size: what keys and values take, in bytes.
    """

    metadata: Metadata
    keys: dict[str, StoreKey] = field(default_factory=dict)
    size: int = 0

    def exchange(self, name: str, key: StoreKey | None) -> StoreKey | None:
        """Replace a data key, None for no key; return the one before."""
        before = self.keys.pop(name, None)
        if before is not None:
            self.size -= size_of(name, before.text)
        if key is not None:
            self.keys[name] = key
            self.size += size_of(name, key.text)
        return before

    @property
    def problem_count(self) -> int:
        """How many of its entries are not enforced."""
        entries = [key.entries for key in self.keys.values()]
        return sum(len(each.problems) + each.more_problems for each in entries)


def size_of(name: str, text: str) -> int:
    """Return what a data key takes, in bytes."""
    return len(name.encode()) + len(text.encode())


def within_bounds(
    metadata: Metadata, data: Mapping[str, str], known: Container[str]
) -> tuple[Mapping[str, str], EntryProblem | None]:
    """Return the keys to read of one ConfigMap, at most `MOST_KEYS`, known ones first.

    The second value is the problem if some are left out.
    """
    if len(data) <= MOST_KEYS:
        return data, None
    kept = sorted(data, key=lambda key: key not in known)
    remedy = "remove keys that are no reservations, or write several ConfigMaps"
    error = InvalidInput(
        "data", f"{len(data)} keys are too many", f"{MOST_KEYS} are read; {remedy}"
    )
    ref = Ref(metadata.namespace, metadata.name, kept[MOST_KEYS])
    return {key: data[key] for key in kept[:MOST_KEYS]}, EntryProblem(ref, error)
