"""Findings about written objects: would another version read them as this one does?

Each finding is a decision on fetched documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from reserver.cli.doctor import Finding
from reserver.cli.preflight_files import Id, Object, spec_schema, unknown_fields
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import LabelledConfigMap
from reserver.moves.phases import ENDED
from reserver.printable import printable
from reserver.reservations.enums import Phase
from reserver.reservations.quota import Quota, exceeded, forbidden, usage
from reserver.reservations.reservation import Ref
from reserver.stores.codec.document import parse
from reserver.stores.configmap.entries import read_kept, read_key
from reserver.stores.configmap.status_codec import admitted_items
from reserver.stores.entries import Entries
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.entries import read_object

MOST_NAMED = 5
"""Most entries that a line names; the rest is counted."""

SEAT_FIELD = "owners[].replaces"
"""The field that keeps the seat of a move for the replacement of its pod."""

END_MOVES = "run `kubectl delete podmoves --all --all-namespaces`, or wait until they end"

_REMEDIES = {
    SEAT_FIELD: END_MOVES,
    "lend": "for each, first run `kubectl --namespace {} patch reservation {} --type merge "
    """--patch '{{"spec":{{"lend":null}}}}'`: nobody would delete borrowers for an owner""",
    "nodes": "for each, first run `kubectl --namespace {} delete reservation {}`, and taint its "
    "nodes: it would hold nothing",
    "schedule": "for each, first run `kubectl --namespace {} delete reservation {}`: it would hold "
    "at all times",
}
"""The action for a field before a version without that field runs, because more would be held or
lent, or other pods could claim. Namespace and name of an object follow."""

_WHOLE = frozenset({"nodes", "schedule"})
"""Fields without which an entry of a ConfigMap would hold something else."""

Unknown = Callable[[Any], Iterable[str]]
"""Yields the fields of a spec that the other version does not have."""


class WrittenSpec(NamedTuple):
    """One reservation, or what stands in its place.

    Attributes:
        where: its namespace and name, or the key of its ConfigMap.
        entries: as this version reads it.
        spec: as it is written; None for a list, and for what cannot be parsed.
        has_status: the running version has said what became of it.
        was_in_force: it has said that it holds.
        is_object: it is a Reservation, not a key of a ConfigMap.
    """

    where: str
    entries: Entries
    spec: Any
    has_status: bool
    was_in_force: bool
    is_object: bool


def keys_of(
    configmap: LabelledConfigMap, companion: Mapping[str, str], now: float
) -> Iterator[WrittenSpec]:
    """Yield the entries of a store's keys, given its companion."""
    metadata = configmap.metadata
    for key, text in (configmap.data or {}).items():
        ref = Ref(metadata.namespace, metadata.name, key)
        entries = read_key(ref, text, now)
        admitted = dict(admitted_items(companion.get(key, "")))
        if entries.problems and "" in admitted:
            kept = read_kept(ref, text, now, admitted[""])
            beyond = str(entries.problems[0].error)
            entries = replace(kept, beyond=beyond) if kept else entries
        has_status, was_in_force = key in companion, bool(admitted)
        yield WrittenSpec(
            str(ref), entries, _parsed(text), has_status, was_in_force, is_object=False
        )


def object_of(item: ReservationObject, home: str, now: float) -> WrittenSpec:
    """Return the spec of a Reservation."""
    said = item.stored_status()
    is_read = said is not None and said.observed_generation == item.metadata.generation
    held = said is not None and said.phase != Phase.INVALID
    spec = _parsed(bytes(item.spec).decode(errors="replace"))
    entries = read_object(item, now, home)
    return WrittenSpec(str(item.ref), entries, spec, is_read, held, is_object=True)


def _parsed(text: str) -> Any:  # noqa: ANN401 - whatever YAML can hold
    try:
        return parse(text)
    except InvalidInput:
        return None


def of_entries(written: Iterable[WrittenSpec]) -> Iterator[Finding]:
    """Yield findings about what this version reads in another way than the one before."""
    lost, beyond, unread = [], [], []
    for each in written:
        if each.entries.problems and each.was_in_force:
            lost.append(f"{each.where}: {each.entries.problems[0].error}")
        if each.entries.beyond:
            beyond.append(f"{each.where}: {each.entries.beyond}")
        if not each.has_status and each.entries.reservations:
            unread.append(each.where)
    yield from _said("entries", lost, "{} would be Invalid: {}", "correct them before the upgrade")
    remedy = "split or shorten them before their next edit"
    yield from _said("bounds", beyond, "{} hold on, and exceed a bound: {}", remedy)
    remedy = "wait until the running version has written their status"
    yield from _said("status", unread, "{} have no status yet: {}", remedy)


def of_fields(
    written: Iterable[WrittenSpec], unknown: Unknown, *, is_strict: bool
) -> Iterator[Finding]:
    """Yield findings about fields that the other version does not have.

    `is_strict` if it takes unknown fields in ConfigMaps for errors, as versions before 0.2.0 do.
    """
    objects: dict[str, list[str]] = {}
    keys: dict[str, list[str]] = {}
    for each in written:
        fields = objects if each.is_object else keys
        for field in dict.fromkeys(unknown(each.spec)):
            fields.setdefault(field, []).append(each.where)
    for field, where in keys.items():
        text = f"{{}} keep {field}, ignored: {{}}"
        if is_strict:
            text = f"{{}} would be Invalid, and hold nothing, because of {field}: {{}}"
        is_ok = not is_strict and field not in _REMEDIES
        namespace, name, _ = where[0].split("/", 2)
        what = "the entry" if field in _WHOLE else "it"
        edit = f"`kubectl --namespace {namespace} edit configmap {name}`"
        edit = f"for each, remove {what} first: {edit}"
        yield Finding("fields", is_ok, listed(where, text), "" if is_ok else edit)
    for field, where in objects.items():
        remedy = _REMEDIES.get(field, "write it again afterwards").format(*where[0].split("/"))
        yield from _said("fields", where, f"{{}} would lose {field}: {{}}", remedy)


def of_quotas(
    written: Iterable[WrittenSpec], default: Quota | None, home: str
) -> Iterator[Finding]:
    """Yield findings about namespaces whose Reservations exceed a quota that is new to them.

    Args:
        written: the written reservations.
        default: the quota of each namespace but `home`; None if they have been judged by it.
        home: Reserver's own namespace.
    """
    used: dict[str, dict[str, int]] = {}
    over: dict[str, str] = {}
    found = [one for each in written if each.is_object for one in each.entries.reservations]
    for each in found:
        namespace = each.ref.namespace
        if namespace == home or default is None:
            continue
        total = used.setdefault(namespace, {})
        for counted, amount in usage(each, each.slots).items():
            total[counted] = total.get(counted, 0) + amount
        why = exceeded([default], total, {}) or forbidden([default], each, each.created_at)
        over |= {namespace: why} if why else {}
    for namespace, why in sorted(over.items()):
        remedy = "they hold on; write a ReservationQuota there before their next edit"
        yield Finding("quotas", False, f"{namespace}: {why}", remedy)


def of_moves(moves: Iterable[Mapping[str, Any]], *, keeps_seats: bool) -> Iterator[Finding]:
    """Yield a finding about moves under way; a version that `keeps_seats` goes on with them."""
    where = [
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in moves
        if each.get("status", {}).get("phase") not in ENDED
    ]
    if where and keeps_seats:
        said = listed(where, "{} under way, which go on: {}")
        yield Finding("moves", True, said)
        return
    text = "{} under way, whose seats any pod of the workload could take: {}"
    yield from _said("moves", where, text, END_MOVES)


def _said(check: str, where: Sequence[str], text: str, remedy: str) -> Iterator[Finding]:
    if where:
        yield Finding(check, False, listed(where, text), remedy)


def listed(where: Sequence[str], text: str) -> str:
    """Return a text with a number of names, and the first of them."""
    named, more = ", ".join(map(printable, where[:MOST_NAMED])), len(where) - MOST_NAMED
    return text.format(len(where), f"{named} and {more} more" if more > 0 else named)


_DELETE = "run `kubectl delete {}` first"
REMEDIES = {
    "maintenancewindows": _DELETE.format("maintenancewindows --all")
    + ": Reserver then uncordons the nodes that it has cordoned",
    "podmovegroups": _DELETE.format("podmovegroups --all"),
    "podmoves": END_MOVES,
    "reservationquotas": "",
    "schedpatches": _DELETE.format("schedpatches --all --all-namespaces"),
}
"""The collections of features, and the action before a version without them; empty for none."""

_SINCE_0_2 = frozenset({"maintenancewindows"})
"""Collections that no version before 0.2 has."""


def of_features(
    found: Mapping[str, Sequence[Object]], there: Mapping[Id, Object], *, is_first: bool
) -> Iterator[Finding]:
    """Yield findings about objects, by their collections.

    Args:
        found: the objects of each of `REMEDIES`.
        there: the files of the other version; empty if they are not given.
        is_first: that version is older than 0.2.
    """
    for plural, objects in found.items():
        crd = there.get(Id("CustomResourceDefinition", "", f"{plural}.reserver.io"))
        open_ = [each for each in objects if _phase(each) not in ENDED]
        if crd is None and open_ and (there or (is_first and plural in _SINCE_0_2)):
            said = listed([*map(_name, open_)], f"{{}} {plural} have no effect then: {{}}")
            yield Finding("features", not REMEDIES[plural], said, REMEDIES[plural])
        elif crd is not None:
            yield from _of_fields(plural, open_, spec_schema(crd))


def _of_fields(plural: str, objects: Sequence[Object], schema: Object) -> Iterator[Finding]:
    lost: dict[str, list[str]] = {}
    for each in objects:
        for field in dict.fromkeys(unknown_fields(each.get("spec"), schema)):
            lost.setdefault(field, []).append(_name(each))
    for field, names in lost.items():
        said = listed(names, f"{{}} {plural} would lose {field}: {{}}")
        is_value = ": " in field
        if is_value:
            said = listed(names, f"{{}} {plural} have {field}, which that version does not: {{}}")
        remedy = REMEDIES[plural] if is_value else ""
        yield Finding("features", False, said, remedy or "write them again afterwards")


def _phase(item: Object) -> str:
    return str((item.get("status") or {}).get("phase"))


def _name(item: Object) -> str:
    metadata = item["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
