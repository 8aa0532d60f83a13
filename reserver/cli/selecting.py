"""The options that say which reservations are meant."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion
from reserver.cli.failure import Failed, Status

if TYPE_CHECKING:
    from reserver.client import Selection

_PANEL = "Which ones"


class PhaseName(StrEnum):
    """How far a reservation has come."""

    PENDING = "Pending"
    ACTIVE = "Active"
    CLAIMED = "Claimed"
    EXPIRED = "Expired"
    FAILED = "Failed"


NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Names or ids.",
        autocompletion=completion.reservations,
        show_default=False,
    ),
]
NodeOption = Annotated[
    str,
    typer.Option(
        metavar="NODE",
        help="Those that hold on a node.",
        autocompletion=completion.nodes,
        rich_help_panel=_PANEL,
    ),
]
OwnerOption = Annotated[
    str,
    typer.Option(metavar="NAMESPACE/POD", help="Those that name a pod.", rich_help_panel=_PANEL),
]
OwnerNamespaceOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Those of which some owner is in a namespace.",
        rich_help_panel=_PANEL,
    ),
]
PhaseOption = Annotated[
    list[PhaseName] | None,
    typer.Option(
        help="Those of a phase. May be given more than once.",
        case_sensitive=False,
        rich_help_panel=_PANEL,
    ),
]


def selection(
    node: str, owner: str, owner_namespace: str, phases: list[PhaseName] | None
) -> Selection:
    """Return which reservations options mean.

    Raises:
        Failed: an owner is not of the form NAMESPACE/POD.
    """
    from reserver.client import Phase, PodOwner, Selection

    namespace, _, pod = owner.partition("/")
    if owner and (not (namespace and pod) or "/" in pod):
        raise Failed(Status.USAGE, f"--owner: {owner!r} is not a pod; write NAMESPACE/POD")
    return Selection(
        node=node,
        owner=PodOwner(namespace, pod) if owner else None,
        owner_namespace=owner_namespace,
        phases=[Phase[phase.name] for phase in phases or ()],
    )
