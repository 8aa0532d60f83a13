"""`reserver get`: reservations as a table or for programs, chosen and sorted by their fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from reserver.cli import (
    completion,
    failure,
    history,
    listing,
    lookup,
    serialization,
    similar,
    watch,
)
from reserver.cli.connection import run
from reserver.cli.failure import Failures, WrongUsage
from reserver.cli.options import PANEL, NamesArgument, SelectionFlags
from reserver.cli.output import ListOutputOption, Output
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import Client, ReservationInfo, Selection
from reserver.cluster import quantity
from reserver.errors import InvalidInput
from reserver.settings.flags import flag

if TYPE_CHECKING:
    from reserver.cli.connection import Session

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_TERM = re.compile(r"([^=!]+?)\s*(!=|==|=)\s*(.*)")
_ROOTS = ("name", "id", "etag", "labels", "spec", "status")
_EXAMPLE = "write one that `-o json` prints, such as spec.node or status.phase"


class Term(NamedTuple):
    """A condition on a field: `path` is `value`, or is not."""

    path: Sequence[str]
    value: str
    is_negated: bool


def path_of(flag: str, text: str) -> list[str]:
    """Return the steps to a field; kubectl's ``{.spec.node}`` and ``.metadata.name`` work, too.

    Raises:
        Failed: reservations have no such field.
    """
    plain = text.strip().strip("{}").lstrip(".").replace("metadata.name", "name")
    steps = [name or index for name, index in _STEP.findall(plain)]
    if plain.startswith("spec.resources."):  # Their names have dots.
        steps = ["spec", "resources", plain.removeprefix("spec.resources.")]
    if not steps or steps[0] not in _ROOTS:
        raise WrongUsage(f"{flag}: {text!r} is not a field; {_EXAMPLE}")
    return steps


def terms_of(text: str) -> list[Term]:
    """Return the conditions of a ``--field-selector``, all of which have to hold.

    Raises:
        Failed: it is malformed.
    """
    flag, terms = "--field-selector", []
    for part in filter(None, map(str.strip, text.split(","))):
        found = _TERM.fullmatch(part)
        if found is None:
            raise WrongUsage(f"{flag}: {part!r} is not FIELD=VALUE; write e.g. status.phase=Active")
        terms.append(Term(path_of(flag, found[1]), found[3].strip(), found[2] == "!="))
    return terms


def chosen(found: Sequence[ReservationInfo], selector: str, sort_by: str) -> list[ReservationInfo]:
    """Return the reservations that a selector means, in the order of a field.

    Raises:
        Failed: one of both is malformed.
    """
    terms = terms_of(selector)
    order = path_of("--sort-by", sort_by) if sort_by else None
    shown = [(each, serialization.show(each)) for each in found] if terms or order else []
    if not shown:
        return list(found)
    kept = [(each, told) for each, told in shown if all(_holds(term, told) for term in terms)]
    if order is not None:
        kept.sort(key=_key(order))
    return [each for each, _ in kept]


def _holds(term: Term, shown: Mapping[str, Any]) -> bool:
    value = _value(shown, term.path)
    said = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return (said == term.value) is not term.is_negated


def _key(path: Sequence[str]) -> Callable[[tuple[ReservationInfo, Mapping[str, Any]]], Any]:
    """Return the key of a sort: numbers and quantities by size, absent values last."""

    def key(pair: tuple[ReservationInfo, Mapping[str, Any]]) -> tuple[bool, float, str]:
        value = _value(pair[1], path)
        if isinstance(value, int | float):
            return False, value, ""
        if path[:2] == ["spec", "resources"] and value is not None:
            with suppress(InvalidInput):
                return False, quantity.amount(path[-1], str(value)), ""
        return value is None, 0, str(value)

    return key


def _value(shown: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 - whatever JSON can hold
    for step in path:
        if isinstance(shown, list):
            shown = shown[int(step)] if step.isdecimal() and int(step) < len(shown) else None
        else:
            shown = shown.get(step) if isinstance(shown, Mapping) else None
    return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class GetFlags:
    """The flags of `get`, without the selection's."""

    watch: bool = flag("Keep the table up to date until Ctrl-C.", default=False, short="-w")
    all_: bool = flag("Also list reservations that are over.", default=False)
    all_namespaces: bool = flag(
        "All namespaces (the default).", default=False, short="-A", panel=PANEL
    )
    field_selector: str = flag(
        "Reservations with these fields, as `-o json` prints them: status.phase=Active; also with "
        "!=, and several with commas.",
        default="",
        metavar="FIELD=VALUE",
        panel=PANEL,
    )
    sort_by: str = flag(
        "Sort by a field, such as spec.expiresAt.",
        default="",
        metavar="FIELD",
        complete=completion.fields,
    )
    no_headers: bool = flag("Print no titles, and no frame on a terminal.", default=False)

    def check(self, names: Sequence[str], chosen: SelectionFlags) -> None:
        """Refuse options that exclude each other.

        Raises:
            Failed: two options exclude each other.
        """
        if chosen.namespace and self.all_namespaces:
            raise WrongUsage("--all-namespaces: excludes --namespace; give one of them")
        is_listed = bool(self.field_selector or self.sort_by)
        is_narrow = chosen.anywhere.is_narrow
        if names and (is_narrow or self.watch or is_listed):
            raise WrongUsage("NAME: give names (and -n), or filters, not both")
        if self.watch and is_listed:
            problem = "--field-selector, --sort-by: are not for --watch"
            raise WrongUsage(f"{problem}; leave one of them out")
        if self.no_headers and (self.all_ or self.watch):
            raise WrongUsage("--no-headers: is not for --all and --watch; leave one of them out")
        if self.all_ and (names or self.watch or is_listed or is_narrow):
            problem = "--all: goes with --namespace and --output only"
            raise WrongUsage(f"{problem}; reserver history shows those of a name")


def get(
    target: Target,
    chosen: SelectionFlags,
    flags: GetFlags,
    names: NamesArgument = None,
    form: ListOutputOption = Output.TABLE,
) -> None:
    """List reservations: all, by name, or by filter.

    Without -n, all namespaces.

    Exit status: 0 listed; 1 no such reservation, or refused; 2 wrong usage; 3 Reserver cannot be
    reached.

    Examples:
        reserver get
        reserver get -n shop --phase Pending
        reserver get web-1 -n shop -o yaml
        reserver get --field-selector spec.policy=Require --sort-by spec.expiresAt
        reserver get --owner app=web -w
    """
    flags.check(names or (), chosen)
    run(target, lambda session: _list(session, names or (), chosen, flags, form))


async def _list(
    session: Session, names: Sequence[str], chosen: SelectionFlags, flags: GetFlags, form: Output
) -> None:
    selection = chosen.selection(session.namespace)
    if flags.all_:
        await history.show_all(session.client, chosen.namespace, form)
    elif names:
        failures = Failures()
        found = await lookup.fetch(session, names, failures, chosen.namespace)
        if found:
            listing.show(found, form, alone=len(names) == 1, is_titled=not flags.no_headers)
        failures.raise_all()
    elif flags.watch:
        await watch.follow(session.client, selection, form)
    else:
        await _show_all(session.client, flags, selection, form)


async def _show_all(client: Client, flags: GetFlags, selection: Selection, form: Output) -> None:
    """Print the reservations that are meant (`fields.chosen`)."""
    by = (flags.field_selector, flags.sort_by)
    chosen((), *by)  # Refuses what is malformed before anybody is asked.
    async with progress("Listing reservations"):
        found = [each async for each in client.list(selection)]
    listing.show(chosen(found, *by), form, is_titled=not flags.no_headers)
    if not found:
        failure.report(await similar.why_none(client, selection))
