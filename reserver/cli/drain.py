"""`reserver drain`: cordons a node and moves its pods as one group, each with a seat elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from secrets import token_hex
from typing import Annotated

import typer

from reserver.cli import completion, drain_checks, failure, podmoves, similar
from reserver.cli.failure import Failed, Refused, WrongUsage
from reserver.cli.move import SharedMoveFlags
from reserver.cli.options import require_name
from reserver.cli.output import Output, OutputOption
from reserver.cli.podmoves import Document, KubeClient, show
from reserver.cli.target import Target
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.moves import drain as drains
from reserver.moves import podmove, podmove_group
from reserver.moves.drain import Drain, DrainOptions, LeavingPod, StayingPod
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.model import MOST_IN_GROUP, GroupMember, MoveGroup
from reserver.moves.phases import MoveMode
from reserver.rebalance.capacity import Held
from reserver.settings.flags import flag

_NO_ROOM = (
    "free room or add a node, or go on with --wait-for-room: no pod is evicted before all have "
    "room, and the moves fail after --timeout"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainFlags(SharedMoveFlags):
    """The flags of `drain`."""

    ignore_daemonsets: bool = flag("Leave pods of DaemonSets on the node.", default=False)
    delete_emptydir_data: bool = flag(
        "Also move pods with emptyDir volumes; their data is lost.", default=False
    )
    force: bool = flag("Also evict pods that no controller will replace.", default=False)
    wait_for_room: bool = flag(
        "Go on although some pods have no room elsewhere yet.", default=False
    )
    dry_run: bool = flag("Print which pods would move, and change nothing.", default=False)

    @property
    def allowed(self) -> DrainOptions:
        """The pods that the drain may delete."""
        return DrainOptions(
            ignores_daemon_sets=self.ignore_daemonsets,
            deletes_empty_dirs=self.delete_emptydir_data,
            evicts_unmanaged=self.force,
        )


def drain(
    target: Target,
    flags: DrainFlags,
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="Node to drain.", autocompletion=completion.nodes)
    ],
    form: OutputOption = Output.TABLE,
) -> None:
    """Cordon a node and move its pods; evict none before all have a seat elsewhere.

    The command looks first: if some pods have no room elsewhere, it names them and changes nothing.
    If one pod gets no seat in time, no pod is evicted. The command moves the same pods as `kubectl
    drain`, and respects PodDisruptionBudgets. After Ctrl-C Reserver goes on with the moves.

    Exit status: 0 the node is drained, or with --no-wait the moves are written; 1 some pods are not
    moved, and the errors say why; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver drain worker-3 --ignore-daemonsets
        reserver drain worker-3 --ignore-daemonsets --timeout 30m --no-wait
        reserver drain worker-3 --ignore-daemonsets --surge
    """
    if flags.dry_run and form is not Output.TABLE:
        raise WrongUsage("--output: --dry-run writes no PodMoves; leave one out")
    require_name("NODE", node, "a node's name")
    allowed, terms = flags.allowed, flags.terms()
    held = None if flags.wait_for_room else partial(drain_checks.held_by_reservations, target)

    async def make(client: KubeClient, _: str) -> None:
        wait, dry_run = flags.wait, flags.dry_run
        await drained(client, node, allowed, terms, form, held, wait=wait, dry_run=dry_run)

    podmoves.run(target, make)


async def drained(
    client: KubeClient,
    node: str,
    allowed: DrainOptions,
    terms: SharedFields,
    form: Output,
    held: Callable[[], Awaitable[Held]] | None = None,
    *,
    wait: bool,
    dry_run: bool,
) -> None:
    """Cordon a node, and move its pods as one group.

    Args:
        node: its name.
        allowed: what may be lost.
        held: returns what reservations hold, by node; None if pods may wait for room.
        wait: until all have ended.
        dry_run: only print what would be moved.

    Raises:
        Failed: some pods are not moved.
        ApiError: the API server refuses, or does not answer.
    """
    found = await _judged(client, node, allowed)
    untouched = "nothing would be moved" if dry_run else f"nothing is moved; {node} is unchanged"
    _check(found, untouched)
    if held is not None:
        await _check_room(client, node, found, held, untouched)
    await _cordon(client, node, dry_run=dry_run)
    begun: list[Document] = []
    try:
        if not dry_run:  # Others may have come before it was cordoned.
            found = await _judged(client, node, allowed)
            _check(found, _nothing_moved(node))
        if form is Output.TABLE:
            for each in found.staying:
                typer.echo(f"{each.namespace}/{each.name} stays: {each.why}")
        if dry_run:
            _show_trial(node, found)
            return
        await _carry_out(client, node, found, terms, form, begun, wait=wait)
    except asyncio.CancelledError:
        if not dry_run:
            failure.report(_left(node, begun))
        raise
    if wait and form is Output.TABLE:
        typer.echo(f"{node} drained")


def _show_trial(node: str, found: Drain) -> None:
    for pod in found.leaving:
        typer.echo(f"{pod.namespace}/{pod.name} would move")
    if not found.leaving:
        failure.report(f"{node}: no pod would move")


async def _carry_out(
    client: KubeClient,
    node: str,
    found: Drain,
    terms: SharedFields,
    form: Output,
    begun: list[Document],
    *,
    wait: bool,
) -> None:
    """Write the moves, add them to `begun`, and wait for them."""
    managed = [pod for pod in found.leaving if pod.is_managed]
    others = [pod for pod in found.leaving if not pod.is_managed]
    moves: list[Document] = []
    try:
        for pods in filter(None, (managed, others)):  # What has no seat comes last.
            written = await _write_group(client, node, pods, terms)
            begun += written
            moves += await podmoves.followed(client, written, form, wait=wait)
            if wait:
                podmoves.check(moves)
    finally:
        if form is not Output.TABLE:
            show(moves, form)


async def _check_room(
    client: KubeClient, node: str, found: Drain, held: Callable[[], Awaitable[Held]], then: str
) -> None:
    """Refuse to go on if some pods have no room elsewhere."""
    leaving = [PodName(pod.namespace, pod.name) for pod in found.leaving if pod.is_managed]
    if not leaving:
        return
    missing = await drain_checks.roomless(client, node, leaving, await held())
    if missing:
        lines = [f"{pod} has no room elsewhere: {why}" for pod, why in missing.items()]
        raise Refused("\n".join([*lines, f"{then}; {_NO_ROOM}"]))


async def _cordon(client: KubeClient, node: str, *, dry_run: bool) -> None:
    path = f"/api/v1/nodes/{node}"
    try:
        if dry_run:
            await client.get(path)
            return
        await client.patch(path, {"spec": {"unschedulable": True}})
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            raise await similar.no_node(client, node) from exc
        raise
    typer.echo(f"{node} cordoned", err=True)


async def _judged(client: KubeClient, node: str, allowed: DrainOptions) -> Drain:
    pods = await client.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
    found = drains.judge(pods, allowed)
    confined = await drain_checks.confined(client, node, pods)
    kept = [
        StayingPod(pod.namespace, pod.name, why)
        for pod in found.leaving
        if pod.is_managed and (why := confined.get(PodName(pod.namespace, pod.name)))
    ]
    found = found._replace(refused=(*found.refused, *kept))
    if len(found.leaving) > MOST_IN_GROUP:
        problem = f"{node} has {len(found.leaving)} pods to move, {MOST_IN_GROUP} is the most"
        raise Refused(f"{problem}; first move some of them by `reserver move`")
    return found


def _check(found: Drain, then: str) -> None:
    """Refuse to go on if some pods must not be moved, or cannot be."""
    if found.refused:
        lines = [f"{each.namespace}/{each.name}: {each.why}" for each in found.refused]
        raise Refused("\n".join([*lines, then]))


async def _write_group(
    client: KubeClient, node: str, pods: list[LeavingPod], terms: SharedFields
) -> list[Document]:
    """Write the PodMoves of a group; if one cannot be written, take the others back.

    The group is only as large as it says once all are written, so nothing has begun by then. What
    lists its members comes first, where they are of several namespaces.
    """
    across = pods[0].is_managed and len({pod.namespace for pod in pods}) > 1
    named = {pod: f"{pod.name[:200]}-{token_hex(4)}" if across else "" for pod in pods}
    group = MoveGroup(f"drain-{node[:200]}-{token_hex(8)}", len(pods), across)
    terms = replace(terms, group=group)
    if across:
        members = (GroupMember(PodName(pod.namespace, named[pod]), pod.uid) for pod in pods)
        try:
            await podmoves.declare(client, podmove_group.manifest(group.name, members))
        except Failed as exc:
            raise Failed(exc.status, f"{exc}\n{_nothing_moved(node)}") from exc
    written: list[Document] = []
    for pod in pods:
        body = manifest(
            PodName(pod.namespace, pod.name),
            terms,
            uid=pod.uid,
            mode=terms.mode if pod.is_managed else MoveMode.EVICT_ONLY,
            metadata={"name": named[pod]} if across else None,
        )
        try:
            written.append(await podmoves.create(client, body))
        except asyncio.CancelledError:
            await _take_back(client, written)
            raise
        except Failed as exc:
            await _take_back(client, written)
            why = f"{pod.namespace}/{pod.name}: {exc}"
            lines = [why, _nothing_moved(node)]
            raise Failed(exc.status, "\n".join(lines)) from exc
    return written


async def _take_back(client: KubeClient, written: list[Document]) -> None:
    for each in written:
        metadata = each["metadata"]
        path = podmove.path(PodName(metadata["namespace"], metadata["name"]))
        with suppress(ApiError):  # It ends at its deadline, because its group never begins.
            await client.delete(path, {"preconditions": {"uid": metadata["uid"]}})


def _left(node: str, begun: Sequence[Document]) -> str:
    """Return the state after an interrupted drain, and the commands that resume or undo it."""
    if not begun:
        return _nothing_moved(node)
    return f"{node} stays cordoned (kubectl uncordon {node}), and {podmoves.left(begun)}"


def _nothing_moved(node: str) -> str:
    """Return the state after a drain without moves, and the command that undoes it."""
    return f"nothing is moved; {node} stays cordoned (kubectl uncordon {node})"
