"""Options and arguments that commands share, such as the selection of reservations and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion
from reserver.cli.failure import WrongUsage
from reserver.cli.target import Target
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects import names
from reserver.reservations.enums import Phase
from reserver.settings.flags import flag

if TYPE_CHECKING:
    from reserver.client import Selection


class DryRun(StrEnum):
    """The kinds of dry runs."""

    NONE = "none"
    CLIENT = "client"
    """Print the manifests, without a call."""

    SERVER = "server"
    """Whether it would fit."""


def _namespace(text: str) -> str:
    """Refuse an impossible name of a namespace; an empty text means no namespace."""
    try:
        names.check_label(text or "default", "--namespace", "a namespace's name")
    except InvalidInput as exc:
        raise WrongUsage(str(exc)) from exc
    return text


NamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        callback=_namespace,
        autocompletion=completion.namespaces,
        help="Namespace of the pods. Default: the context's, or default.",
    ),
]

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name or id of the reservation.",
        autocompletion=completion.reservations,
    ),
]


def pod_of(text: str, metavar: str) -> tuple[str, str]:
    """Return namespace and name of a pod that an argument gives.

    Args:
        text: NAME or NAMESPACE/NAME; of NAME the namespace is empty.
        metavar: of the argument.

    Raises:
        Failed: it is none.
    """
    home, slash, name = text.rpartition("/")
    if not (names.is_subdomain(name) and (names.is_label(home) or not slash)):
        problem = f"{metavar}: {shorten(text)!r} is not a pod"
        raise WrongUsage(f"{problem}; write NAME or NAMESPACE/NAME")
    return home, name


def require_name(metavar: str, text: str, what: str) -> None:
    """Refuse a text that cannot be the name of an object: it would stand in a path.

    Args:
        metavar: of the argument, or the flag.
        what: the text should be, such as "a node's name".

    Raises:
        Failed: it cannot.
    """
    try:
        names.check_subdomain(text, metavar, what)
    except InvalidInput as exc:
        raise WrongUsage(str(exc)) from exc


def options(ctx: typer.Context, target: Target) -> None:  # noqa: ARG001 - they are shown
    """Show the options for the connection, which most commands have.

    Examples:
        reserver options
        reserver get --context staging
    """
    typer.echo(ctx.get_help())


PANEL = "Which ones"


FILES = typer.Option(
    "--filename",
    "-f",
    metavar="FILE",
    help="File, folder, or - for standard input. May be repeated.",
    autocompletion=completion.files,
)
_NAMES = typer.Argument(
    metavar="NAME", help="Names or ids of reservations.", autocompletion=completion.reservations
)
NamesArgument = Annotated[list[str] | None, _NAMES]
RequiredNamesArgument = Annotated[list[str], _NAMES]


def check_named(named: Sequence[str], chosen: SelectionFlags, *, every: bool) -> None:
    """Refuse names together with filters, and a change of all without `--all` or labels.

    Raises:
        Failed: neither names nor `--all` or labels are given, or both.
    """
    if not named and not every and not chosen.selector:
        raise WrongUsage("NAME: is missing; give names, --selector, or --all")
    if named and (every or chosen.anywhere.is_narrow):
        raise WrongUsage("NAME: give names (and -n), or --all with its filters, not both")


_flag = partial(flag, panel=PANEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFlags:
    """The selection that options make; without one it is all reservations."""

    node: str = _flag(
        "Reservations that hold room on this node.",
        default="",
        metavar="NODE",
        complete=completion.nodes,
    )
    owner: str = _flag(
        "Reservations for this owner: pod/NAME, KIND/NAME, or labels such as app=web.",
        default="",
        metavar="OWNER",
        complete=completion.owners,
    )
    namespace: str = _flag(
        "Reservations for pods of this namespace; with --owner, the owner's namespace.",
        default="",
        short="-n",
        metavar="NAME",
        complete=completion.namespaces,
    )
    phases: tuple[Phase, ...] = _flag("Reservations in this phase.", default=())
    selector: str = _flag(
        "Reservations with these labels, as in kubectl: team=shop, or 'tier in (a,b),!old'. "
        "Reservation objects have labels; entries of ConfigMaps have none.",
        default="",
        short="-l",
        metavar="LABELS",
    )

    given: frozenset[str] = field(default=frozenset(), compare=False)
    """The fields of which an option was given."""

    def __post_init__(self) -> None:
        """Refuse empty values: an unset variable would select all reservations."""
        for name in self.given:
            value = getattr(self, name)
            if isinstance(value, str) and not value.strip():
                raise WrongUsage(f"--{name}: is empty; leave it out if all are meant")

    @property
    def anywhere(self) -> SelectionFlags:
        """The same in all namespaces."""
        return replace(self, namespace="", given=self.given - {"namespace"})

    @property
    def is_narrow(self) -> bool:
        """Whether some reservations are not meant."""
        return self != SelectionFlags()

    def selection(self, default_namespace: str) -> Selection:
        """Return them for the client.

        Args:
            default_namespace: of an owner, where no option names one.

        Raises:
            Failed: the owner or the selector of labels is malformed.
        """
        from reserver.cli import owner_flags, serialization
        from reserver.cli.create_requests import flag_of
        from reserver.client import PodOwner, Selection
        from reserver.k8s.objects import selectors

        try:
            selectors.parse_selector(self.selector)
        except InvalidInput as exc:
            raise WrongUsage(f"--selector: {exc}") from exc
        chosen = Selection(
            node=self.node,
            owner_namespace=self.namespace,
            phases=self.phases,
            label_selector=self.selector,
        )
        if not self.owner:
            return chosen
        namespace = self.namespace or default_namespace
        try:
            owner = serialization.read_owner(owner_flags.owner(self.owner, namespace), namespace)
        except InvalidInput as exc:
            raise flag_of(exc) from exc
        if isinstance(owner, PodOwner):
            return replace(chosen, owner=owner)
        return replace(
            chosen,
            owner_namespace=owner.namespace,
            owner_controller=owner.controller,
            owner_labels=owner.match_labels,
        )
