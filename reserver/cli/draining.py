"""Cordons a node and moves its pods as one group."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from secrets import token_hex

import typer

from reserver.cli import drain_volumes, podmoves
from reserver.cli.failure import Failed, Status
from reserver.cli.move_view import Document, show
from reserver.cli.options import Output
from reserver.cli.podmoves import Client
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.moves import drain, podmove, podmove_group
from reserver.moves.drain import Drain, DrainOptions, LeavingPod, StayingPod
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.model import MOST_IN_GROUP, GroupMember, MoveGroup
from reserver.moves.phases import MoveMode


async def drained(
    client: Client,
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


async def _cordon(client: Client, node: str, *, dry_run: bool) -> None:
    path = f"/api/v1/nodes/{node}"
    try:
        if dry_run:
            await client.get(path)
            return
        await client.patch(path, {"spec": {"unschedulable": True}})
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            raise Failed(Status.REFUSED, f"there is no node {node!r}") from exc
        raise
    typer.echo(f"{node} cordoned", err=True)


async def _judged(client: Client, node: str, allowed: DrainOptions) -> Drain:
    pods = await client.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
    found = drain.judge(pods, allowed)
    confined = await drain_volumes.confined(client, node, pods)
    kept = [
        StayingPod(pod.namespace, pod.name, why)
        for pod in found.leaving
        if pod.is_managed and (why := confined.get(PodName(pod.namespace, pod.name)))
    ]
    found = found._replace(refused=(*found.refused, *kept))
    if len(found.leaving) > MOST_IN_GROUP:
        problem = f"{node} has {len(found.leaving)} pods to move, and a group {MOST_IN_GROUP}"
        raise Failed(Status.REFUSED, f"{problem}; move some of them before")
    return found


def _check(found: Drain, then: str) -> None:
    """Refuse to go on if some pods must not be moved, or cannot be.

    Raises:
        Failed: it names each of them.
    """
    if found.refused:
        lines = [f"{each.namespace}/{each.name}: {each.why}" for each in found.refused]
        raise Failed(Status.REFUSED, "\n".join([*lines, then]))


async def _write(
    client: Client, node: str, pods: list[LeavingPod], terms: SharedFields
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


async def _take_back(client: Client, written: list[Document]) -> None:
    for each in written:
        metadata = each["metadata"]
        path = podmove.path(PodName(metadata["namespace"], metadata["name"]))
        with suppress(ApiError):  # It ends at its deadline, because its group never begins.
            await client.delete(path, {"preconditions": {"uid": metadata["uid"]}})


def _nothing_moved(node: str) -> str:
    return f"nothing is moved; {node} stays cordoned (kubectl uncordon {node})"
