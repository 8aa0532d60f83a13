"""The marks of a patched pod: an annotation that lists the SchedPatches that the pod has."""

from __future__ import annotations

from collections.abc import Iterable

from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import decode, encode
from reserver.patches.book import MOST_MERGED, Mark

_MARKS_BYTES = MOST_MERGED * 400
_MARK_PARTS = 3
_MOST_DIGITS = 6


def show_marks(marks: Iterable[Mark]) -> str:
    """Return marks as the annotation `MARKS_ANNOTATION` has them."""
    return encode([f"{each.patch}/{each.uid}/{each.slot}" for each in marks]).decode()


def read_marks(text: str | None) -> tuple[Mark, ...]:
    """Return what an annotation says of patches; nothing if Reserver did not write it."""
    if text is None or len(text) > _MARKS_BYTES:
        return ()
    try:
        written = decode(list[str], text.encode(errors="replace"))
    except InvalidInput:
        return ()
    found = []
    for each in written[:MOST_MERGED]:
        parts = each.split("/")
        if len(parts) == _MARK_PARTS and parts[2].isdecimal() and len(parts[2]) <= _MOST_DIGITS:
            found.append(Mark(parts[0], parts[1], int(parts[2])))
    return tuple(found)
