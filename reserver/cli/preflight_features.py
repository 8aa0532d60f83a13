"""Findings about objects of features that another version does not have, or reads otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reserver.cli.checkup import Finding
from reserver.cli.preflight_files import Id, Object, spec_schema, unknown_fields
from reserver.cli.preflight_holds import END_MOVES, listed
from reserver.moves.phases import ENDED

_DELETE = "run `kubectl delete {}` first"
REMEDIES = {
    "maintenancewindows": _DELETE.format("maintenancewindows --all")
    + ": Reserver then uncordons the nodes that it has cordoned",
    "podmovegroups": _DELETE.format("podmovegroups --all"),
    "podmoves": END_MOVES,
    "reservationquotas": "",
    "schedpatches": _DELETE.format("schedpatches --all --all-namespaces"),
}
"""The collections of features, and what is to be done before a version runs that has none; empty:
nothing."""

_SINCE_0_2 = frozenset({"maintenancewindows"})
"""Those that no version before 0.2 has."""


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
