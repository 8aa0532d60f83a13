"""`reserver debug`: what a bug report needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from reserver.cli.connect import run
from reserver.cli.help import App
from reserver.cli.options import taking
from reserver.cli.patience import patience
from reserver.cli.target import Target

if TYPE_CHECKING:
    from reserver.cli.connect import Session

app = App()


@app.callback()
def _debug() -> None:
    """Collect what a bug report needs.

    Examples:
        reserver debug dump > reserver.json
    """


@app.command()
@taking
def dump(target: Target) -> None:
    """Print the state of a running Reserver as JSON, without secrets.

    It has settings, versions, watches, queues and metrics. It names namespaces, reservations, nodes
    and pods: read it before you send it to somebody.

    Exit status: 0 printed; 1 refused; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver debug dump > reserver.json
        reserver debug dump --address 127.0.0.1:9443
    """

    async def ask(session: Session) -> bytes:
        async with patience("Asking how it is"):
            return await session.client.capacity.dump()

    typer.echo(run(target, ask))
