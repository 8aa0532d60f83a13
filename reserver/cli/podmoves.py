"""Writes, awaits and shows PodMoves through the API server of a kubeconfig."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

import typer

from reserver.cli import connection, failure, interrupt, output, table
from reserver.cli.failure import Failed, Refused
from reserver.cli.output import Output
from reserver.cli.target import Target
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.moves import podmove, podmove_group
from reserver.moves.phases import ENDED, MovePhase, MoveReason
from reserver.printable import printable

T = TypeVar("T")

LOOK_S = 0.5
"""Seconds between two looks of a waiting command."""

_UNANSWERED_S = 15.0
"""After so many seconds without a status, a message asks for a Reserver that moves pods."""


Document = Mapping[str, Any]
"""An object as JSON."""


class KubeClient(Protocol):
    """A client of the API server (`k8s.client.ApiClient`)."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return an object, or a list."""

    async def create(self, path: str, body: object) -> bytes:
        """Create an object."""

    async def patch(self, path: str, body: object) -> bytes:
        """Change an object."""

    async def delete(self, path: str, options: object) -> bytes:
        """Delete an object."""


def run(target: Target, work: Callable[[KubeClient, str], Awaitable[T]]) -> T:
    """Return the result of `work`, given a client and the namespace of the context."""
    return interrupt.run(connection.calling(target, work))


async def create(client: KubeClient, body: Document) -> Document:
    """Write a PodMove; return it as the API server has it.

    Raises:
        Failed: the API server has no PodMoves, or refuses this one.
    """
    path = podmove.collection(body["metadata"]["namespace"])
    try:
        written: Document = json.loads(await client.create(path, body))
    except ApiError as exc:
        raise _failed(exc) from exc
    return written


async def declare(client: KubeClient, body: Document) -> None:
    """Write a PodMoveGroup: which PodMoves of several namespaces are to be a group.

    Raises:
        Failed: the API server has no PodMoveGroups, or refuses this one.
    """
    try:
        await client.create(podmove_group.COLLECTION, body)
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            said = "the API server has no PodMoveGroups, which moves of several namespaces take"
            remedy = "apply scheduler-config/components/moves of this version"
            raise Refused(f"{said}: {remedy}") from exc
        if failure.lacks_right(exc):
            said = "moves of several namespaces that wait for each other take a PodMoveGroup"
            remedy = "ask for a ClusterRoleBinding to the ClusterRole reserver-move-groups"
            raise Refused(f"{exc}; {said}: {remedy}") from exc
        raise failure.of(exc) from exc


async def listed(client: KubeClient, namespace: str = "") -> list[Document]:
    """Return the PodMoves of a namespace, or of all, the oldest first.

    Raises:
        Failed: the API server has no PodMoves, or does not show them.
    """
    path = podmove.collection(namespace) if namespace else podmove.COLLECTION
    try:
        found: list[Document] = json.loads(await client.get(path))["items"]
    except ApiError as exc:
        raise _failed(exc) from exc
    return sorted(found, key=lambda each: (each["metadata"]["creationTimestamp"], name_of(each)))


async def pause(client: KubeClient, namespace: str, name: str, *, paused: bool) -> Document:
    """Have a PodMove begin nothing new, or go on; return it as it is then.

    Raises:
        Failed: there is no such PodMove, or it cannot be changed.
    """
    path = podmove.path(PodName(namespace, name))
    try:
        changed: Document = json.loads(await client.patch(path, {"spec": {"paused": paused}}))
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND and f'"{name}"' in exc.message:
            raise Refused(f"there is no PodMove {namespace}/{name}") from exc
        raise _failed(exc) from exc
    return changed


async def awaited(
    client: KubeClient, moves: Sequence[Document], timeout_s: float, *, tells: bool
) -> list[Document]:
    """Return PodMoves once all have ended, or after the timeout.

    Args:
        moves: the written PodMoves.
        timeout_s: seconds to wait; 0 for ever.
        tells: each change of a phase is printed.
    """
    loop = asyncio.get_running_loop()
    begun, said = loop.time(), dict[str, str]()
    wanted = {each["metadata"]["uid"]: each for each in moves}
    spaces = {each["metadata"]["namespace"] for each in moves}
    is_told = False
    while True:
        for namespace in sorted(spaces):
            for each in await listed(client, namespace):
                uid = each["metadata"]["uid"]
                if uid in wanted:
                    wanted[uid] = each
                    _report(each, said, tells=tells)
        passed = loop.time() - begun
        if all(map(is_over, wanted.values())) or 0 < timeout_s <= passed:
            return list(wanted.values())
        if not is_told and passed > _UNANSWERED_S and not any(map(phase, wanted.values())):
            asked = "does a Reserver run with featureGates.PodMoves (--pod-moves)?"
            failure.report(f"no Reserver carries out the moves yet; {asked}")
            is_told = True
        await asyncio.sleep(LOOK_S)


def _report(move: Document, said: dict[str, str], *, tells: bool) -> None:
    line = summary(move)
    if is_over(move) and not _is_done(move):
        return  # `check` says it, as an error.
    if tells and phase(move) and said.get(move["metadata"]["uid"]) != line:
        said[move["metadata"]["uid"]] = line
        typer.echo(line)


async def follow(client: KubeClient, written: list[Document], form: Output, *, wait: bool) -> None:
    """Wait for moves if `wait` is set, and print them.

    Raises:
        Failed: some have failed.
    """
    try:
        written = await followed(client, written, form, wait=wait)
    except asyncio.CancelledError:
        failure.report(left(written))
        raise
    if form is not Output.TABLE:
        show(written, form)
    if wait:
        check(written)


async def followed(
    client: KubeClient, written: list[Document], form: Output, *, wait: bool
) -> list[Document]:
    """Wait for moves if `wait` is set, print each phase for people, and return them."""
    is_told = form is Output.TABLE
    if wait:
        return await awaited(client, written, 0, tells=is_told)
    if is_told:
        for each in written:
            typer.echo(f"{summary(each)} as {name_of(each)}")
    return written


def left(moves: Sequence[Document]) -> str:
    """Return the state that an interrupted command leaves, and how to go on or to cancel."""
    by_namespace: dict[str, list[str]] = {}
    for each in moves:
        by_namespace.setdefault(each["metadata"]["namespace"], []).append(name_of(each))
    where = "-A" if len(by_namespace) > 1 else f"-n {next(iter(by_namespace))}"
    cancel = " && ".join(
        f"kubectl delete podmoves -n {namespace} {' '.join(names)}"
        for namespace, names in by_namespace.items()
    )
    goes = "the move goes on" if len(moves) == 1 else f"{len(moves)} moves go on"
    return f"{goes} without this command\nto follow: reserver moves {where} -w\nto cancel: {cancel}"


def check(moves: Sequence[Document]) -> None:
    """Raise if pods are not where they were to go.

    Raises:
        Failed: some moves have failed, or have not ended.
    """
    left = [each for each in moves if not _is_done(each)]
    if left:
        raise Refused("\n".join(map(summary, left)))


def _is_done(move: Document) -> bool:
    """Return whether nothing is left to move, unless another PodMove has the pod."""
    reason = (move.get("status") or {}).get("reason")
    is_aborted = phase(move) == MovePhase.ABORTED and reason != MoveReason.MOVED_ALREADY
    return is_aborted or phase(move) == MovePhase.SUCCEEDED


def summary(move: Document) -> str:
    """Return the phase of a move, in a line; once it has ended, also why its pod did not surge."""
    status = move.get("status") or {}
    where = f" to {status['to']}" if status.get("to") else ""
    why = f": {status['message']}" if status.get("message") else ""
    if is_over(move) and status.get("fallback"):
        why += f"; it did not surge: {status['fallback']}"
    pod = f"{move['metadata']['namespace']}/{_pod_of(move)}"
    return printable(f"{pod}{where} {phase(move) or 'written'}{why}")


def _pod_of(move: Document) -> str:
    """Return the name of the pod of a move; a workload's pod has one in the status only."""
    return str((move.get("status") or {}).get("pod") or move["spec"]["pod"]["name"])


def phase(move: Document) -> str:
    """Return the phase of a move; empty before anybody has looked at it."""
    return str((move.get("status") or {}).get("phase", ""))


def is_over(move: Document) -> bool:
    """Return whether a move has ended."""
    return phase(move) in ENDED


def name_of(move: Document) -> str:
    """Return the name of a PodMove."""
    return str(move["metadata"]["name"])


def show(found: Sequence[Document], form: Output, *, everywhere: bool = False) -> None:
    """Print moves."""
    if form is Output.NAME:
        output.names([name_of(each) for each in found])
    elif form not in {Output.TABLE, Output.WIDE}:
        output.document({"apiVersion": "v1", "kind": "List", "items": list(found)}, form)
    elif not found:
        failure.report("no moves" if everywhere else "no moves in this namespace; -A lists all")
    else:
        columns = ["NAME", "POD", "PHASE", "REASON", "FROM", "TO"]
        more = ["AFTER", "OPENS", "MESSAGE"] if form is Output.WIDE else []
        columns = ["NAMESPACE"] * everywhere + columns + more
        table.show(columns, [_row(each, form, everywhere=everywhere) for each in found])


def _row(move: Document, form: Output, *, everywhere: bool) -> list[str]:
    status = move.get("status") or {}
    row = [
        name_of(move),
        _pod_of(move),
        *(status.get(f) or "" for f in ("phase", "reason", "from")),
    ]
    row.append(status.get("to") or (move["spec"].get("to") or {}).get("node", ""))
    spaces = [move["metadata"]["namespace"]] * everywhere
    told = (status.get("windowOpensAt") or "", status.get("message") or "")
    more = [move["spec"]["pod"].get("after") or "", *told]
    return spaces + row + (more if form is Output.WIDE else [])


def _failed(error: ApiError) -> Failed:
    if error.status == HTTPStatus.NOT_FOUND:
        return Refused("the API server has no PodMoves: apply scheduler-config/components/moves")
    if failure.lacks_right(error):
        roles = "reserver-edit, or to reserver-view if you only look"
        return Refused(f"{error}; ask for a RoleBinding to the ClusterRole {roles}")
    return failure.of(error)
