"""`reserver drain`: cordons a node and moves its pods as one group, each with a seat elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from secrets import token_hex
from typing import Annotated

import msgspec
import typer

from reserver.cli import completion, failure, podmoves
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.move import GraceOption, TimeoutOption, WaitOption, terms_of
from reserver.cli.options import Output, OutputOption, Target
from reserver.cli.podmoves import Document, KubeClient, show
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError
from reserver.moves import drain as drains
from reserver.moves import podmove, podmove_group
from reserver.moves.drain import Drain, DrainOptions, LeavingPod, StayingPod
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.model import MOST_IN_GROUP, GroupMember, MoveGroup
from reserver.moves.phases import MoveMode
from reserver.rebalance.capacity import snapshot_of
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.dump_reader import DumpReading
from reserver.scheduling.volumes import confinement

_CLAIMS = "/api/v1/namespaces/{}/persistentvolumeclaims"
_OTHERS = ("/api/v1/persistentvolumes", "/api/v1/nodes")
_REMEDY = "kubectl drain evicts it without a seat, and it waits until {} is uncordoned"


def drain(
    target: Target,
    node: Annotated[
        str,
        typer.Argument(metavar="NODE", help="Node to drain.", autocompletion=completion.nodes),
    ],
    ignore_daemonsets: Annotated[
        bool, typer.Option("--ignore-daemonsets", help="Leave pods of DaemonSets on the node.")
    ] = False,
    delete_emptydir_data: Annotated[
        bool,
        typer.Option(
            "--delete-emptydir-data",
            help="Also move pods with emptyDir volumes; their data is lost.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also evict pods that no controller will replace.")
    ] = False,
    timeout: TimeoutOption = "",
    grace_period: GraceOption = -1,
    wait: WaitOption = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be moved, and change nothing.")
    ] = False,
    form: OutputOption = Output.TABLE,
) -> None:
    """Cordon a node and move its pods; evict none before all have a seat elsewhere.

    If one pod gets no seat in time, the command names it and evicts none. It moves the same pods
    as `kubectl drain`, and respects PodDisruptionBudgets.

    Exit status: 0 the node is drained, or with --no-wait the moves are written; 1 some pods are not
    moved, and it says which and why; 2 wrong usage; 3 the API server does not answer.

    Examples:
        reserver drain worker-3 --ignore-daemonsets
        reserver drain worker-3 --ignore-daemonsets --timeout 30m --no-wait
    """
    if dry_run and form is not Output.TABLE:
        failure.end(
            Failed(ExitStatus.USAGE, "--output: --dry-run writes no PodMoves; leave one out")
        )
    allowed = DrainOptions(
        ignores_daemon_sets=ignore_daemonsets,
        deletes_empty_dirs=delete_emptydir_data,
        evicts_unmanaged=force,
    )
    terms = terms_of(timeout, grace_period)

    async def make(client: KubeClient, _: str) -> None:
        await drained(client, node, allowed, terms, form, wait=wait, dry_run=dry_run)

    podmoves.run(target, make)


async def drained(
    client: KubeClient,
    node: str,
    allowed: DrainOptions,
    terms: SharedFields,
    form: Output,
    *,
    wait: bool,
    dry_run: bool,
) -> None:
    """Cordon a node, and move its pods as one group.

    Raises:
        Failed: some pods are not moved.
        ApiError: the API server refuses, or does not answer.
    """
    found = await _judged(client, node, allowed)
    untouched = "nothing would be moved" if dry_run else f"nothing is moved; {node} is as it was"
    _check(found, untouched)
    await _cordon(client, node, dry_run=dry_run)
    if not dry_run:  # Others may have come before it was cordoned.
        found = await _judged(client, node, allowed)
        _check(found, _nothing_moved(node))
    if form is Output.TABLE:
        for each in found.staying:
            typer.echo(f"{each.namespace}/{each.name} stays: {each.why}")
    if dry_run:
        for pod in found.leaving:
            typer.echo(f"{pod.namespace}/{pod.name} would move")
        return
    managed = [pod for pod in found.leaving if pod.is_managed]
    others = [pod for pod in found.leaving if not pod.is_managed]
    moves: list[Document] = []
    try:
        for pods in filter(None, (managed, others)):  # What has no seat comes last.
            written = await _write(client, node, pods, terms)
            moves += await podmoves.followed(client, written, form, wait=wait)
            if wait:
                podmoves.check(moves)
    finally:
        if form is not Output.TABLE:
            show(moves, form)
    if wait and form is Output.TABLE:
        typer.echo(f"{node} drained")


async def _cordon(client: KubeClient, node: str, *, dry_run: bool) -> None:
    path = f"/api/v1/nodes/{node}"
    try:
        if dry_run:
            await client.get(path)
            return
        await client.patch(path, {"spec": {"unschedulable": True}})
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            raise Failed(ExitStatus.REFUSED, f"there is no node {node!r}") from exc
        raise
    typer.echo(f"{node} cordoned", err=True)


async def _judged(client: KubeClient, node: str, allowed: DrainOptions) -> Drain:
    pods = await client.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
    found = drains.judge(pods, allowed)
    confined = await _confined(client, node, pods)
    kept = [
        StayingPod(pod.namespace, pod.name, why)
        for pod in found.leaving
        if pod.is_managed and (why := confined.get(PodName(pod.namespace, pod.name)))
    ]
    found = found._replace(refused=(*found.refused, *kept))
    if len(found.leaving) > MOST_IN_GROUP:
        problem = f"{node} has {len(found.leaving)} pods to move, and a group {MOST_IN_GROUP}"
        raise Failed(ExitStatus.REFUSED, f"{problem}; move some of them before")
    return found


def _check(found: Drain, then: str) -> None:
    """Refuse to go on if some pods must not be moved, or cannot be.

    Raises:
        Failed: it names each of them.
    """
    if found.refused:
        lines = [f"{each.namespace}/{each.name}: {each.why}" for each in found.refused]
        raise Failed(ExitStatus.REFUSED, "\n".join([*lines, then]))


async def _write(
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
            mode=MoveMode.RESERVE_FIRST if pod.is_managed else MoveMode.EVICT_ONLY,
            metadata={"name": named[pod]} if across else None,
        )
        try:
            written.append(await podmoves.create(client, body))
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


def _nothing_moved(node: str) -> str:
    return f"nothing is moved; {node} stays cordoned (kubectl uncordon {node})"


async def _confined(client: KubeClient, node: str, pods: bytes) -> Mapping[PodName, str]:
    """Return why pods of a node cannot move because of their volumes, by name.

    Who may not look at volumes learns it from the moves: Reserver judges them in any case.

    Args:
        client: of the API server.
        node: where they are.
        pods: a list of them as the API server sends it.

    Raises:
        ApiError: the API server does not answer.
    """
    bound = [pod for pod in _inventory([pods]).pods if _lasting(pod.pod)]
    if not bound:
        return {}
    paths = [_CLAIMS.format(name) for name in sorted({pod.name.namespace for pod in bound})]
    try:
        lists = [await client.get(path) for path in (*paths, *_OTHERS)]
    except ApiError as exc:
        if not exc.is_definite:
            raise
        typer.echo(f"where volumes are cannot be seen before the moves: {exc}", err=True)
        return {}
    snapshot = snapshot_of(_inventory(lists))
    rows = snapshot.exists.copy()
    if (row := snapshot.row(node)) is not None:
        rows[row] = False
    found = {pod.name: confinement(pod.pod, snapshot, rows) for pod in bound}
    return {name: f"{why}; {_REMEDY.format(node)}" for name, why in found.items() if why}


def _lasting(pod: Pod) -> bool:
    return any(not use.is_ephemeral for use in pod.volume_claims)


def _inventory(lists: list[bytes]) -> ClusterState:
    reading = DumpReading()
    for each in lists:
        reading.take("the API server's answer", msgspec.Raw(each))
    return reading.result().inventory
