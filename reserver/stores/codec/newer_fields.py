"""Handles fields of a newer version of Reserver, which this version ignores (docs/adr/0070)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from msgspec import inspect

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import HOME, MOST_ITEMS, SpecLimits
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.codec import spec_codec
from reserver.stores.codec.decode_errors import near, type_info
from reserver.stores.codec.placement_codec import PlacementObject
from reserver.stores.codec.spec_codec import EntrySpec

_MOST_NAMED = 5
_MOST_NAMES = 64
"""Most names of unknown fields in one document: each is compared with all known fields."""

_PARTS = ("pod", "controller", "selector")

_MEANT = frozenset({"nodename", "replicas", "count", "cpu", "memory", "mem", "ttlseconds"})
"""Frequent wrong names for ``node``, ``slots``, ``resources`` and ``ttl``, in lower case."""


class Known(NamedTuple):
    """The part of a document that this version has fields for.

    Attributes:
        document: the document without newer fields, and without the owners with such a field.
        ignored: the paths of the newer fields.
        closed: the namespaces of these owners; no pod may claim as one, because the newer field may
            restrict the owner.
    """

    document: Any
    ignored: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for a status or an event; empty if nothing is ignored."""
        if not self.ignored:
            return ""
        more = len(self.ignored) - _MOST_NAMED
        named = ", ".join(self.ignored[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        closed = "; an owner with such a field claims nothing" if self.closed else ""
        return f"ignored, because this version does not know the field: {named}{closed}"


def read(
    document: Any,  # noqa: ANN401 - whatever YAML can hold
    ref: Ref,
    seen_at: float,
    limits: SpecLimits = HOME,
    *,
    was_in_force: bool = False,
) -> tuple[Reservation, str]:
    """Return the reservation of a mapping in a store, and a line about its ignored fields.

    Args:
        document: the parsed value.
        ref: the ref of the reservation.
        seen_at: start of a ``ttl``, in unix seconds.
        limits: the bounds on its fields, as for `spec_codec.read`.
        was_in_force: whether some version has accepted it, so that no field is misspelt.

    Raises:
        InvalidInput: some field is not acceptable, or misspelt.
    """
    try:
        return spec_codec.read(document, ref, seen_at, limits), ""
    except InvalidInput:
        known = known_part(document, ref.namespace, was_in_force=was_in_force)
        if not known.ignored:
            raise
    return spec_codec.read(known.document, ref, seen_at, limits, known.closed), str(known)


def known_part(
    document: Any,  # noqa: ANN401 - whatever YAML can hold
    namespace: str,
    *,
    was_in_force: bool = False,
) -> Known:
    """Return a document without the fields of a newer version; misspelt fields stay.

    Args:
        document: the parsed value.
        namespace: the default namespace of owners.
        was_in_force: whether some version has accepted it, so that no field is misspelt.

    Raises:
        InvalidInput: it has more than `_MOST_NAMES` names of unknown fields.
    """
    if not isinstance(document, dict):
        return Known(document)
    found = [*_unknown(document, type_info(EntrySpec), ())]
    if not was_in_force:
        found = [*_not_meant(found)]
    unknown = [path for path, _ in found]
    closed = {path[:2] for path in unknown if path[0] == "owners" and path[2:]}
    gone = closed | {path for path in unknown if path[:2] not in closed}
    nobody = [_namespace(document["owners"][index]) or namespace for _, index in sorted(closed)]
    return Known(_without(document, gone), tuple(map(_shown, unknown)), tuple(nobody))


_Path = tuple[Any, ...]
_Unknown = tuple[_Path, tuple[str, ...]]
"""The path of an unknown field, and the valid fields at the same place."""


def _unknown(
    value: Any,  # noqa: ANN401 - whatever YAML can hold
    kind: inspect.Type,
    path: _Path,
) -> Iterator[_Unknown]:
    """Yield the unknown fields, without those in the rest of a list that is too long anyway."""
    if path == ("placement",):
        kind = type_info(PlacementObject)
    if isinstance(kind, inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in kind.fields}
        known = tuple(fields)
        for name, part in value.items():
            if name in fields:
                yield from _unknown(part, fields[name], (*path, name))
            elif isinstance(name, str):
                yield (*path, name), known
    elif isinstance(kind, inspect.ListType) and isinstance(value, list):
        for index, part in enumerate(value[:MOST_ITEMS]):
            yield from _unknown(part, kind.item_type, (*path, index))


def _not_meant(found: Sequence[_Unknown]) -> Iterator[_Unknown]:
    """Yield the unknown fields that are no mistake for a known field."""
    count = len({path[-1] for path, _ in found})
    if count > _MOST_NAMES:
        raise InvalidInput("", f"{count} names of fields are not known", "remove these fields")
    is_meant = cache(_is_meant)  # A thousand owners may have the same new field.
    return ((path, known) for path, known in found if not is_meant(path[-1], known))


def _is_meant(name: str, fields: Collection[str]) -> bool:
    """Return whether a name is a mistake for a known field: misspelt, misplaced or a synonym."""
    return bool(near(name, fields)) or name.lower() in _elsewhere() | _MEANT


@cache
def _elsewhere() -> frozenset[str]:
    kinds: list[inspect.Type] = [type_info(each) for each in (EntrySpec, PlacementObject)]
    found = set[str]()
    while kinds:
        kind = kinds.pop()
        kinds += getattr(kind, "types", ())
        kinds += [kind.item_type] if isinstance(kind, inspect.ListType) else []
        for field in kind.fields if isinstance(kind, inspect.StructType) else ():
            found.add(field.encode_name.lower())
            kinds.append(field.type)
    return frozenset(found)


def _without(value: Any, paths: Collection[_Path]) -> Any:  # noqa: ANN401 - as above
    """Return a value without the parts at the given paths."""
    below: dict[Any, list[_Path]] = {}
    for path in paths:
        below.setdefault(path[0], []).append(path[1:])
    if not below:
        return value
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    kept = {
        step: _without(part, below.get(step, ()))
        for step, part in parts
        if () not in below.get(step, ())
    }
    return kept if isinstance(value, dict) else [*kept.values()]


def _namespace(owner: Any) -> str:  # noqa: ANN401 - as above
    parts = (owner.get(field) for field in _PARTS)
    named = (part.get("namespace") for part in parts if isinstance(part, dict))
    return next((each for each in named if isinstance(each, str) and names.is_subdomain(each)), "")


def _shown(path: _Path) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{shorten(step)}" for step in path)
    return "".join(steps).removeprefix(".")
