"""`reserver move`, `moves`, `pause` and `resume`: pods go elsewhere and keep their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reserver.cli import completion, failure
from reserver.cli.failure import Failed, Status
from reserver.cli.options import NamespaceOption, Output, OutputOption, pod_of, taking
from reserver.cli.target import Target
from reserver.errors import InvalidInput

if TYPE_CHECKING:
    from reserver.cli.podmoves import Client
    from reserver.moves.manifests import SharedFields

WaitOption = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until the move has ended.")
]
TimeoutOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="A move fails if its pod has not landed by then. Default: 10m.",
        show_default="",
    ),
]
GraceOption = Annotated[
    int, typer.Option(min=-1, help="Seconds for a pod to stop. -1: the pod's own grace period.")
]
EvictOnlyOption = Annotated[
    bool, typer.Option("--evict-only", help="Evict the pod without holding a seat first.")
]
PatchOption = Annotated[
    bool,
    typer.Option(
        "--by-patch",
        help="For pods of a scheduler that does not ask Reserver: hold no seat, and have the "
        "replacement prefer the node by a SchedPatch.",
    ),
]


@taking
def move(
    target: Target,
    pod: Annotated[
        str,
        typer.Argument(
            metavar="[NAMESPACE/]POD", help="Pod to move.", autocompletion=completion.pods
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            metavar="NODE",
            help="Node to move it to. Default: any that fits.",
            autocompletion=completion.nodes,
        ),
    ] = "",
    namespace: NamespaceOption = "",
    evict_only: EvictOnlyOption = False,
    by_patch: PatchOption = False,
    timeout: TimeoutOption = "",
    grace_period: GraceOption = -1,
    wait: WaitOption = True,
    output_: OutputOption = Output.TABLE,
) -> None:
    """Move a pod to another node; hold room for its replacement first.

    It writes a PodMove, which Reserver carries out (`serve --pod-moves`). No pod is evicted before
    a seat is held for its replacement. Schedulers that do not ask Reserver see no seats: for their
    pods use --by-patch, which holds none and steers the replacement by a SchedPatch
    (`serve --webhook-address`).

    Exit status: 0 it has landed, or with --no-wait is written; 1 it failed, or is refused; 2 wrong
    usage; 3 the API server does not answer.

    Examples:
        reserver move shop/web-0 --to worker-2
        reserver move web-5d8f7c9b9d-x2x9p -n shop --no-wait
        reserver move shop/web-0 --to worker-2 --by-patch
    """
    from reserver.cli import patched_move, podmoves
    from reserver.cluster.pod import PodName
    from reserver.moves.manifests import manifest
    from reserver.moves.phases import MoveMode

    home, name = pod_of(pod, "POD")
    terms = terms_of(timeout, grace_period)
    mode = MoveMode.EVICT_ONLY if evict_only else MoveMode.RESERVE_FIRST

    async def make(client: Client, default: str) -> None:
        leaving = PodName(home or namespace or default, name)
        if by_patch:
            await patched_move.moved(client, leaving, to, terms, output_, wait=wait)
            return
        body = manifest(leaving, terms, to=to, mode=mode)
        written = [await podmoves.create(client, body)]
        await podmoves.follow(client, written, output_, wait=wait)

    podmoves.run(target, make)


@taking
def moves(
    target: Target,
    namespace: NamespaceOption = "",
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="All namespaces.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print each change as it happens.")
    ] = False,
    output_: OutputOption = Output.TABLE,
) -> None:
    """List moves of pods, and how far each is.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver moves -A
        reserver moves -n shop --watch
    """
    from reserver.cli import move_view, podmoves

    async def tell(client: Client, default: str) -> None:
        where = "" if everywhere else namespace or default
        if watch:
            await podmoves.watch(client, where, output_, everywhere=everywhere)
        else:
            move_view.show(await podmoves.listed(client, where), output_, everywhere=everywhere)

    podmoves.run(target, tell)


NamesArgument = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Names of PodMoves.", autocompletion=completion.moves),
]


@taking
def pause(
    target: Target,
    names: NamesArgument,
    namespace: NamespaceOption = "",
    output_: OutputOption = Output.TABLE,
) -> None:
    """Pause moves: they evict nothing until resumed. Their timeout keeps running.

    Exit status: 0 done; 1 refused; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver pause web-0-x7k2p -n shop
    """
    _set(target, names, namespace, output_, paused=True)


@taking
def resume(
    target: Target,
    names: NamesArgument,
    namespace: NamespaceOption = "",
    output_: OutputOption = Output.TABLE,
) -> None:
    """Resume paused moves.

    Exit status: 0 done; 1 refused; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver resume web-0-x7k2p -n shop
    """
    _set(target, names, namespace, output_, paused=False)


def _set(target: Target, names: list[str], namespace: str, form: Output, *, paused: bool) -> None:
    from reserver.cli import podmoves

    async def change(client: Client, default: str) -> None:
        await podmoves.pause_each(client, namespace or default, names, form, paused=paused)

    podmoves.run(target, change)


def terms_of(timeout: str, grace_period: int) -> SharedFields:
    """Return what `--timeout` and `--grace-period` say; end if that is nothing."""
    from reserver.moves.manifests import SharedFields
    from reserver.wire.times import in_hours

    try:
        lasts = in_hours(timeout) if timeout else ""
    except InvalidInput as exc:
        failure.end(Failed(Status.USAGE, f"--timeout: {exc.problem}; {exc.remedy}"))
    seconds = None if grace_period < 0 else grace_period
    return SharedFields(timeout=lasts, grace_period_s=seconds)
