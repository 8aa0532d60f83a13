"""The lives of entries, from the versions of what holds them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hack.promises.entries import Entry, Ref, read_key, read_parts
from hack.promises.gaps import beginning, gap_over, went
from hack.promises.history import Gap, Line
from hack.promises.life import Life

_STAMP_SLACK_S = 3.0
"""A ttl counts from when Reserver saw the entry, in whole seconds; we saw it a little later."""


@dataclass
class StoreReader:
    """Reads the lives of one ConfigMap's entries from its versions."""

    configmap: str
    gaps: tuple[Gap, ...]
    holds_many: ClassVar[bool] = True

    def lives(self, lines: list[Line]) -> Iterator[Life]:
        """Yield them, in the order in which they end."""
        living: dict[Ref, Life] = {}
        for line in lines:
            gap = gap_over(line.moment, self.gaps) if line.kind == "LISTED" else None
            now = {} if line.kind == "DELETED" else self._entries(line.item)
            gone = beginning(gap) if gap else line.moment
            for ref in [ref for ref in living if not _goes_on(living[ref], now, line.moment.at)]:
                deleted = line.kind == "DELETED" and self.holds_many
                yield replace(living.pop(ref), gone=gone, deleted=deleted, in_gap=gap is not None)
            for ref, entry in now.items():
                if ref in living:
                    living[ref] = living[ref].written_as(entry, line.moment)
                else:
                    life = Life(ref, entry, entry, line.moment)
                    living[ref] = life.written_as(entry, line.moment)
        end = went(lines, self.gaps)
        yield from (replace(life, gone=end, in_gap=end is not None) for life in living.values())

    def _entries(self, item: Mapping[str, Any]) -> dict[Ref, Entry]:
        entries: dict[Ref, Entry] = {}
        for key, text in (item.get("data") or {}).items():
            entries |= read_key(self.configmap, key, text)
        return entries


class ObjectReader(StoreReader):
    """Reads the lives of what stood in one Reservation, as the only key of its namespace's store.

    Its ref is ``namespace/name``; one that is deleted is an entry that is removed.
    """

    holds_many = False

    def _entries(self, item: Mapping[str, Any]) -> dict[Ref, Entry]:
        entries = read_key(self.configmap, item["metadata"]["name"], json.dumps(item.get("spec")))
        parts = read_parts((item.get("status") or {}).get("placements"))
        return {
            ref: entry if entry.node else replace(entry, placements=parts)
            for ref, entry in entries.items()
        }


def _goes_on(life: Life, now: Mapping[Ref, Entry], at: float) -> bool:
    """Return whether the same reservation exists now, perhaps with its ttl resolved.

    A reusable reservation may be extended until its end (docs/adr/0090).
    """
    after = now.get(life.ref)
    if after is None or after == life.entry:
        return after is not None
    same = replace(life.entry, expires=after.expires, ttl_s=after.ttl_s) == after
    if same and after.reusable and (life.entry.expires is None or at < life.entry.expires):
        return True
    if life.entry.expires is not None or life.entry.ttl_s is None or after.expires is None:
        return False
    resolved = replace(life.entry, expires=after.expires, ttl_s=None)
    earliest = life.written.at + life.entry.ttl_s - _STAMP_SLACK_S
    return resolved == after and after.expires >= earliest
