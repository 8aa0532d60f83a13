"""`reserver explain`: asks a running reserver why things are as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion
from reserver.cli.connect import run
from reserver.cli.help import App
from reserver.cli.options import NamespaceOption, Report, ReportOption, pod_of, taking
from reserver.cli.patience import patience
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.connect import Session

app = App()


@app.callback()
def _explain() -> None:
    """Explain why a pod has no node.

    Examples:
        reserver explain pod shop/web-0
    """


@app.command()
@taking
def pod(
    target: Target,
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAMESPACE/]NAME", help="Pod to explain.", autocompletion=completion.pods
        ),
    ],
    namespace: NamespaceOption = "",
    output: ReportOption = Report.TABLE,
) -> None:
    """Explain which nodes a pod can use, and why not the others.

    Exit status: 0 explained; 1 there is no such pod, or refused; 2 wrong usage; 3 Reserver cannot
    be reached.

    Examples:
        reserver explain pod shop/web-0
        reserver explain pod web-0 -n shop -o json
    """
    own, pod_name = pod_of(name, "NAME")

    async def ask(session: Session) -> None:
        from reserver.cli import explain_view
        from reserver.cli import output as outputs

        where = own or namespace or session.namespace
        async with patience(f"Asking about pod {where}/{pod_name}"):
            explanation = await session.client.capacity.explain(where, pod_name)
        if output is Report.TABLE:
            explain_view.show(explanation)
        else:
            outputs.document(outputs.in_camel_case(explanation), output)

    run(target, ask)
