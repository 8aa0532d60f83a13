"""Writes, awaits and shows PodMoves through the API server of a kubeconfig."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import typer

from reserver.cli import connect, failure, interrupt, output
from reserver.cli.failure import Failed, Status
from reserver.cli.move_view import Document, is_over, name_of, phase, show, told
from reserver.cli.options import Output
from reserver.cluster.pod import PodName
from reserver.errors import ApiError, ReserverError
from reserver.moves import podmove, podmove_group
from reserver.moves.phases import MovePhase

if TYPE_CHECKING:
    from reserver.cli.target import Target

T = TypeVar("T")

_LOOK_S = 0.5
"""How often a command that waits looks, in seconds."""

_UNHEEDED_S = 15.0
"""After this it is told that nobody writes the status of PodMoves, in seconds."""


class Client(Protocol):
    """What calls the API server (`kube.api.client.ApiClient`)."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return an object, or a list."""

    async def create(self, path: str, body: object) -> bytes:
        """Create an object."""

    async def patch(self, path: str, body: object) -> bytes:
        """Change an object."""

    async def delete(self, path: str, options: object) -> bytes:
        """Delete an object."""


def run(target: Target, work: Callable[[Client, str], Awaitable[T]]) -> T:
    """Return the result of `work`, given a client and the namespace of the context.

    On failure, print why and exit.
    """
    try:
        return interrupt.run(connect.calling(target, work))
    except ReserverError as exc:
        failure.end(exc)


async def create(client: Client, body: Document) -> Document:
    """Write a PodMove; return it as the API server has it.

    Raises:
        Failed: the API server has no PodMoves, or refuses this one.
    """
    path = podmove.collection(body["metadata"]["namespace"])
    try:
        written: Document = _read(await client.create(path, body))
    except ApiError as exc:
        raise _told(exc) from exc
    return written


async def declare(client: Client, body: Document) -> None:
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
            raise Failed(Status.REFUSED, f"{said}: {remedy}") from exc
        if failure.lacks_right(exc):
            said = "moves of several namespaces that wait for each other take a PodMoveGroup"
            remedy = "ask for a ClusterRoleBinding to the ClusterRole reserver-move-groups"
            raise Failed(Status.REFUSED, f"{exc}; {said}: {remedy}") from exc
        raise failure.of(exc) from exc


async def listed(client: Client, namespace: str = "") -> list[Document]:
    """Return the PodMoves of a namespace, or of all, the oldest first.

    Raises:
        Failed: the API server has no PodMoves, or does not show them.
    """
    path = podmove.collection(namespace) if namespace else podmove.COLLECTION
    try:
        found: list[Document] = _read(await client.get(path))["items"]
    except ApiError as exc:
        raise _told(exc) from exc
    return sorted(found, key=lambda each: (each["metadata"]["creationTimestamp"], name_of(each)))


async def pause(client: Client, namespace: str, name: str, *, paused: bool) -> Document:
    """Have a PodMove begin nothing new, or go on; return it as it is then.

    Raises:
        Failed: there is no such PodMove, or it cannot be changed.
    """
    path = podmove.path(PodName(namespace, name))
    try:
        changed: Document = _read(await client.patch(path, {"spec": {"paused": paused}}))
    except ApiError as exc:
        is_missing = f'"{name}"' in exc.message or "/" in name
        if exc.status == HTTPStatus.NOT_FOUND and is_missing:
            raise Failed(Status.REFUSED, f"there is no PodMove {namespace}/{name}") from exc
        raise _told(exc) from exc
    return changed


async def pause_each(
    client: Client, namespace: str, names: Sequence[str], form: Output, *, paused: bool
) -> None:
    """Pause PodMoves or let them go on, and say so; failures are independent.

    Raises:
        Failed: some are not there, or cannot be changed.
    """
    changed: list[Document] = []
    refused: list[Failed] = []
    for name in names:
        try:
            changed.append(await pause(client, namespace, name, paused=paused))
        except Failed as exc:
            refused.append(exc)
            if exc.status is Status.UNREACHABLE:
                break
        else:
            if not output.is_for_programs(form):
                typer.echo(f"{name} {'paused' if paused else 'resumed'}")
    if output.is_for_programs(form):
        show(changed, form)
    failure.raise_all(refused)


async def awaited(
    client: Client, moves: Sequence[Document], timeout_s: float, *, tells: bool
) -> list[Document]:
    """Return PodMoves as they are once all have ended, or the time is over.

    Args:
        client: of the API server.
        moves: as they were written.
        timeout_s: how long to wait, in seconds; 0 for ever.
        tells: each change of a phase is told.
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
                    _tell(each, said, tells=tells)
        passed = loop.time() - begun
        if all(map(is_over, wanted.values())) or 0 < timeout_s <= passed:
            return list(wanted.values())
        if not is_told and passed > _UNHEEDED_S and not any(map(phase, wanted.values())):
            failure.tell("nobody carries the moves out yet; is `reserver serve --pod-moves` there?")
            is_told = True
        await asyncio.sleep(_LOOK_S)


def _tell(move: Document, said: dict[str, str], *, tells: bool) -> None:
    line = told(move)
    if tells and phase(move) and said.get(move["metadata"]["uid"]) != line:
        said[move["metadata"]["uid"]] = line
        typer.echo(line)


async def watch(
    client: Client, namespace: str, form: Output, *, everywhere: bool, look_s: float = _LOOK_S
) -> None:
    """Print moves, of a namespace or of all, then each change until interrupted.

    A program gets an object for each from the beginning.
    """
    said: dict[str, str] = {}
    if not output.is_for_programs(form):
        found = await listed(client, namespace)
        show(found, form, everywhere=everywhere)
        said = {each["metadata"]["uid"]: told(each) for each in found}
    while True:
        for each in await listed(client, namespace):
            line = told(each)
            if said.get(each["metadata"]["uid"]) != line:
                said[each["metadata"]["uid"]] = line
                _print_change(each, line, form)
        await asyncio.sleep(look_s)


def _print_change(move: Document, line: str, form: Output) -> None:
    if form is Output.NAME:
        output.names([name_of(move)])
    elif output.is_for_programs(form):
        output.item(move, form)
    else:
        typer.echo(line)


async def follow(client: Client, written: list[Document], form: Output, *, wait: bool) -> None:
    """Wait for moves if that is asked for, and print them.

    Raises:
        Failed: some have failed.
    """
    written = await followed(client, written, form, wait=wait)
    if form is not Output.TABLE:
        show(written, form)
    if wait:
        check(written)


async def followed(
    client: Client, written: list[Document], form: Output, *, wait: bool
) -> list[Document]:
    """Wait for moves if that is asked for, tell people of each, and return them."""
    is_told = form is Output.TABLE
    if wait:
        return await awaited(client, written, 0, tells=is_told)
    if is_told:
        for each in written:
            typer.echo(f"{told(each)} as {name_of(each)}")
    return written


def check(moves: Sequence[Document]) -> None:
    """Raise if pods are not where they were to go.

    What was aborted had nothing left to move.

    Raises:
        Failed: some moves have failed, or have not ended.
    """
    left = [each for each in moves if phase(each) not in {MovePhase.SUCCEEDED, MovePhase.ABORTED}]
    if left:
        raise Failed(Status.REFUSED, "\n".join(map(told, left)))


def _read(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON can hold
    return json.loads(text)


def _told(error: ApiError) -> Failed:
    if error.status == HTTPStatus.NOT_FOUND:
        message = "the API server has no PodMoves: apply scheduler-config/components/moves"
        return Failed(Status.REFUSED, message)
    if failure.lacks_right(error):
        roles = "reserver-edit, or to reserver-view if you only look"
        return Failed(Status.REFUSED, f"{error}; ask for a RoleBinding to the ClusterRole {roles}")
    return failure.of(error)
