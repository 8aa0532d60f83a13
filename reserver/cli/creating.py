"""Creates reservations, one by one or as a set, or checks their fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

import typer

from reserver.cli import failure, formatting, lookup, output, similar, table, wait
from reserver.cli.create_requests import NewReservation
from reserver.cli.failure import ExitStatus, Failed, Failures, Refused, WrongUsage
from reserver.cli.output import Output
from reserver.cli.table import Cell
from reserver.cli.terminal import progress
from reserver.client import CallFailed, Client, PodOwner, ReservationInfo, Shortage, Spec

_ON_NO_NODE = re.compile(r"0/(\d+) nodes are available: \1 node\(s\) didn't match")
_MOST_REPORTED = 5
_MEMBER = re.compile(r"reservations\[(\d{1,4})\]")


async def create_each(
    client: Client,
    wanted: Sequence[NewReservation],
    form: Output,
    request_id: str,
    *,
    no_wait: bool,
    force: bool,
    wait_s: float | None,
) -> None:
    """Create reservations one after the other; failures are independent.

    What can never fit is refused unless `force` is set: it would hold what there is of its node,
    for nobody. What waits for room is waited for, `wait_s` seconds each at most; None for not at
    all, and then it counts as done.

    Raises:
        Failed: some were refused, or still wait.
    """
    made: list[ReservationInfo] = []
    failures = Failures()
    async with progress(f"Creating {_count(wanted)}"):
        for one in wanted:
            try:
                if not (force or no_wait):
                    await require_possible(client, one)
                made.append(await create(client, one, request_id=request_id, no_wait=no_wait))
            except (CallFailed, Failed) as exc:
                if failure.is_without_answer(exc):
                    _show_created(made, form, alone=False)
                    raise
                failures.append(await _refusal(client, one, exc))
    await _warn(client, made)
    if output.is_for_programs(form):
        made = await wait.in_force(client, made, wait_s, failures)
        _show_created(made, form, alone=len(wanted) == 1)
    else:
        _show_created(made, form, alone=len(wanted) == 1)
        await wait.in_force(client, made, wait_s, failures)
    failures.raise_all()


async def _warn(client: Client, made: Sequence[ReservationInfo]) -> None:
    """Report on standard error why new reservations may not work as expected."""
    for each in made[:_MOST_REPORTED]:
        with suppress(CallFailed):  # Who may create need not have the right to read.
            if place := await lookup.find_in_line(client, each):
                failure.report(f"{each.name}: {place}")
            for owner in each.spec.owners[:_MOST_REPORTED]:
                if isinstance(owner, PodOwner) and (said := await _runs(client, owner)):
                    failure.report(f"{each.name}: owner {owner.namespace}/{owner.name}: {said}")


async def _runs(client: Client, owner: PodOwner) -> str:
    """Return that a pod runs already, and so claims nothing; empty if it does not."""
    try:
        explanation = await client.capacity.explain(owner.namespace, owner.name)
    except CallFailed:  # There is no such pod yet: the usual case.
        return ""
    summary = str(explanation["summary"])
    is_bound = summary.startswith("it is on ")
    return f"{summary}; the next pod of that name may claim the reservation" if is_bound else ""


async def _refusal(client: Client, one: NewReservation, error: CallFailed | Failed) -> Failed:
    """Return why a reservation was not created; of an unknown namespace, with a similar one."""
    if isinstance(error, CallFailed) and "namespace" in error.fields:
        remedy = await similar.namespace(client, one.namespace, "create it, or name another one")
        problem = f"--namespace: there is no namespace {one.namespace!r}; {remedy}"
        return Refused(f"{one.name}: {problem}")
    return failure.of(error, one.name)


async def create(
    client: Client, one: NewReservation, *, request_id: str = "", no_wait: bool = False
) -> ReservationInfo:
    """Create a reservation in its namespace.

    Raises:
        CallFailed: it was refused.
    """
    return await client.create(
        one.name,
        one.spec,
        request_id=request_id,
        no_wait=no_wait,
        labels=one.labels,
        namespace=one.namespace,
    )


async def require_possible(client: Client, one: NewReservation) -> None:
    """Refuse a reservation that would not fit an empty node.

    Raises:
        Failed: it would not.
        CallFailed: it cannot be said.
    """
    try:
        verdict = await client.capacity.what_if([one.spec], one.namespace)
    except CallFailed as exc:
        if exc.code == "PERMISSION_DENIED":  # Who may create need not have the right to ask.
            return
        raise
    for shortage in verdict.shortages:
        if shortage.never:
            remedy = await _remedy(client, one.spec, shortage)
            problem = f"{shortage.message.rstrip('.')}; it would never fit"
            raise Failed(ExitStatus.NO_ROOM, f"{one.name}: {problem}; {remedy}")


async def _remedy(client: Client, spec: Spec, shortage: Shortage) -> str:
    """Return what may make a reservation possible that never fits."""
    selector = (spec.placement or {}).get("nodeSelector")
    if selector and _ON_NO_NODE.match(shortage.message):
        labels = ", ".join(f"{key}={value}" for key, value in selector.items())
        return f"no node has the label {labels}; see `kubectl get nodes --show-labels`"
    if spec.node and (question := await similar.node(client, spec.node)):
        return question.replace("mean ", "mean --node ")
    for name in spec.resources:
        if question := await similar.resource(client, name):
            return question.replace("mean ", "mean --resource ")
    return "ask for less or for another node, or pass --force"


@contextmanager
def _by_name(wanted: Sequence[NewReservation]) -> Iterator[None]:
    """Name reservations in errors of a set: ``reservations[1].spec.node`` is of the second."""
    try:
        yield
    except CallFailed as exc:
        names = [one.name for one in wanted]
        fields = {_named(field, names): text for field, text in exc.fields.items()}
        raise CallFailed(exc.code, exc.message, exc.reason, fields) from exc


def _named(field: str, names: Sequence[str]) -> str:
    found = _MEMBER.match(field)
    if found is None or int(found[1]) >= len(names):
        return field
    rest = field[found.end() :].lstrip(".").removeprefix("spec").lstrip(".")
    return ": ".join(filter(None, (names[int(found[1])], rest)))


async def create_set(
    client: Client, wanted: Sequence[NewReservation], form: Output, request_id: str
) -> None:
    """Create reservations that are all backed, or none.

    Raises:
        Failed: they are not of one namespace, or a name is given twice.
        CallFailed: none was created.
    """
    namespaces = sorted({one.namespace for one in wanted})
    if len(namespaces) > 1:
        several = ", ".join(each or "Reserver's own" for each in namespaces)
        problem = f"a set has one namespace, and these have {several}"
        raise WrongUsage(f"--set: {problem}; create a set for each")
    async with progress(f"Creating {_count(wanted)}"):
        with _by_name(wanted):
            made = await client.create_set(
                {one.name: one.spec for one in wanted},
                request_id=request_id,
                labels={one.name: one.labels for one in wanted},
                namespace=namespaces[0],
            )
    _show_created(made, form, alone=False)


async def check_fit(client: Client, wanted: Sequence[NewReservation], form: Output) -> None:
    """Say whether reservations would all be backed.

    Raises:
        Failed: some lack room.
    """
    namespaces = {one.namespace for one in wanted}
    namespace = namespaces.pop() if len(namespaces) == 1 else ""
    async with progress(f"Checking {_count(wanted)}"):
        with _by_name(wanted):
            verdict = await client.capacity.what_if([one.spec for one in wanted], namespace)
    names = [one.name for one in wanted]
    lacking = {each.index: each for each in verdict.shortages}
    if form is Output.NAME:
        output.names([name for at, name in enumerate(names) if at not in lacking])
    elif output.is_for_programs(form):
        shortages = [
            {"name": name, "message": lacking[at].message, "never": lacking[at].never}
            for at, name in enumerate(names)
            if at in lacking
        ]
        placements = {
            name: [part._asdict() for part in parts]
            for name, parts in zip(names, verdict.placements, strict=True)
        }
        told = {"fits": verdict.fits, "placements": placements, "shortages": shortages}
        output.document(told, form)
    else:
        rows = [
            (name, formatting.places(verdict.placements[at]), *_verdict(lacking.get(at)))
            for at, name in enumerate(names)
        ]
        table.show(("NAME", "NODE", "FITS", "MISSING"), rows)
    if not verdict.fits:
        raise typer.Exit(ExitStatus.NO_ROOM)


def _verdict(shortage: Shortage | None) -> tuple[Cell, str]:
    if shortage is None:
        return Cell("yes", "green"), ""
    return Cell("never" if shortage.never else "not now", "red"), shortage.message


def _show_created(made: Sequence[ReservationInfo], form: Output, *, alone: bool) -> None:
    if output.is_for_programs(form):
        if made:
            output.reservations(made, form, alone=alone)
    else:
        now = datetime.now().astimezone()
        for each in made:
            typer.echo(f"{each.name} created: {formatting.one_line(each, now)}")
    for each in made:
        if not each.is_backed:
            failure.report(f"{each.name}: {each.message}")


def _count(wanted: Sequence[NewReservation]) -> str:
    return f"{len(wanted)} reservations" if len(wanted) > 1 else f"reservation {wanted[0].name}"
