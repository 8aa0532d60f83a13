"""`reserver edit`: opens a reservation in an editor until it is valid, as `kubectl edit` does."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

import typer
import yaml

from reserver.cli import failure, interrupt, listing, lookup, serialization
from reserver.cli.connection import Session, run
from reserver.cli.failure import Failed, Refused, WrongUsage
from reserver.cli.manifests import Manifest, read_manifests, read_text
from reserver.cli.options import NameArgument, NamespaceOption
from reserver.cli.output import Output, OutputOption
from reserver.cli.target import Target
from reserver.cli.terminal import progress
from reserver.client import CallFailed, Client, ReservationInfo
from reserver.errors import InvalidInput, ReserverError
from reserver.stores.object.codec import is_own

_HEAD = """\
# Edit the reservation below. Lines that begin with # are ignored; an empty file changes nothing.
# If something is wrong with what you save, this file opens again and says so.
#
"""


def edit(
    target: Target,
    name: NameArgument,
    namespace: NamespaceOption = "",
    form: OutputOption = Output.TABLE,
) -> None:
    """Edit a reservation in your editor (KUBE_EDITOR, EDITOR, or vi).

    If the reservation is invalid, the editor opens again and shows the errors at the top. Save it
    unchanged to cancel. If somebody else changed the reservation meanwhile, your file is kept.

    Exit status: 0 changed, or nothing to change; 1 refused, or not found; 2 wrong usage; 3 Reserver
    cannot be reached; 4 no room, on nodes or in the quota.

    Examples:
        reserver edit web-1
        EDITOR="code --wait" reserver edit web-1
    """
    # gRPC would warn of the editor, which is another process.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

    async def work(session: Session) -> None:
        await _edit(session, name, namespace, form)

    run(target, work)


async def _edit(session: Session, name: str, namespace: str, form: Output) -> None:
    """Let a person change a reservation, until it is taken or they give up; then print it."""
    async with progress("Asking for the reservation"):
        old = await lookup.by_name(session, name, session.client.get, namespace)
    labels = {key: old.labels[key] for key in sorted(old.labels) if not is_own(key)}
    shown = {"name": old.name, "labels": labels, "spec": serialization.show_spec(old.spec)}
    if not labels:
        del shown["labels"]
    before = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    file = _file(f"{_HEAD}{before}")
    problem: Failed | None = None
    while True:
        _open(file)
        text = _without_comments(file.read_text(encoding="utf-8"))
        if not text or text == before:
            if problem is not None:
                raise _kept(problem, file)
            file.unlink()
            why = "no changes made" if text else "the saved file is empty"
            typer.echo(f"Edit cancelled, {why}", err=True)
            listing.show_change(old.name, "", old, form)
            return
        try:
            new = await _update(session.client, old, text, namespace or session.namespace)
        except ReserverError as exc:
            problem = failure.of(exc)
            if not isinstance(exc, InvalidInput) and not _can_be_mended(exc):
                raise _kept(problem, file) from exc
            said = "".join(f"# {line}\n" for line in problem.message.splitlines())
            file.write_text(f"{_HEAD}{said}#\n{text}", encoding="utf-8")
            before = text
        else:
            file.unlink()
            listing.show_change(old.name, "edited", new, form)
            return


async def _update(
    client: Client, old: ReservationInfo, text: str, namespace: str
) -> ReservationInfo:
    one = _read(text)
    if one.name != old.name:
        raise InvalidInput("name", f"was {old.name!r}", "write the old name: it cannot be changed")
    spec = serialization.read(one.spec, one.name, namespace, time.time())
    gone = {key for key in old.labels if not is_own(key)} - one.labels.keys()
    async with progress(f"Changing {old.name}"):
        return await client.update(
            old.id, spec, etag=old.etag, labels=one.labels, remove_labels=gone
        )


def _read(text: str) -> Manifest:
    """Return the manifest of a file with one document.

    Raises:
        InvalidInput: it asks for anything else.
    """
    found, problems = read_manifests(read_text("", text))
    if problems:
        raise problems[0][1]
    if len(found) != 1:
        raise InvalidInput("", f"has {len(found)} documents", "leave one")
    return found[0]


def _file(text: str) -> Path:
    """Return a new file that only its owner reads."""
    number, name = tempfile.mkstemp(prefix="reserver-edit-", suffix=".yaml")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)


def _open(file: Path) -> None:
    command = os.environ.get("KUBE_EDITOR") or os.environ.get("EDITOR") or "vi"
    try:
        with interrupt.elsewhere():
            done = subprocess.run([*shlex.split(command), str(file)], check=False)  # noqa: S603 - theirs
    except (OSError, ValueError) as exc:
        file.unlink()
        problem = f"EDITOR: {command!r} cannot be run: {exc}"
        raise WrongUsage(f"{problem}; set EDITOR, or KUBE_EDITOR") from exc
    if done.returncode:
        problem = f"{command} ended with status {done.returncode}; nothing is changed"
        raise Refused(f"{problem}; your file is kept: {file}")


def _without_comments(text: str) -> str:
    lines = (line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    return "".join(lines).lstrip("\n")


def _can_be_mended(error: ReserverError) -> bool:
    """Return whether another text may be taken."""
    final = {"ABORTED", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED"}
    is_call = isinstance(error, CallFailed) and not failure.is_without_answer(error)
    return isinstance(error, CallFailed) and is_call and error.code not in final


def _kept(problem: Failed, file: Path) -> Failed:
    remedy = f"reserver apply -f {file}"
    return Failed(problem.status, f"{problem.message}\nyour file is kept; apply it with: {remedy}")
