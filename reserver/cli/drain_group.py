"""The PodMoves of a drained node: one group, written as a whole or taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex

from reserver.cli import podmoves
from reserver.cli.failure import Failed
from reserver.cli.podmoves import Document, KubeClient
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.moves import podmove, podmove_group
from reserver.moves.drain import LeavingPod
from reserver.moves.manifests import SharedFields, manifest
from reserver.moves.model import GroupMember, MoveGroup
from reserver.moves.phases import MoveMode


async def write(
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
            raise Failed(exc.status, f"{exc}\n{nothing_moved(node)}") from exc
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
            lines = [why, nothing_moved(node)]
            raise Failed(exc.status, "\n".join(lines)) from exc
    return written


async def _take_back(client: KubeClient, written: list[Document]) -> None:
    for each in written:
        metadata = each["metadata"]
        path = podmove.path(PodName(metadata["namespace"], metadata["name"]))
        with suppress(ApiError):  # It ends at its deadline, because its group never begins.
            await client.delete(path, {"preconditions": {"uid": metadata["uid"]}})


def left(node: str, begun: Sequence[Document]) -> str:
    """Return the state after an interrupted drain, and the commands that resume or undo it."""
    if not begun:
        return nothing_moved(node)
    return f"{node} stays cordoned (kubectl uncordon {node}), and {podmoves.left(begun)}"


def nothing_moved(node: str) -> str:
    """Return the state after a drain without moves, and the command that undoes it."""
    return f"nothing is moved; {node} stays cordoned (kubectl uncordon {node})"
