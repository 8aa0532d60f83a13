"""`reserver rebalance run`: evicts or moves the pods that a policy selects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

import typer

from reserver.cli import failure, interrupt
from reserver.cli.failure import WrongUsage
from reserver.cli.output import Report, ReportOption
from reserver.cli.table import counted
from reserver.cli.target import Target
from reserver.errors import ReserverError, cause
from reserver.process import logs
from reserver.rebalance.settings import Mode, RebalanceSettings

if TYPE_CHECKING:
    from reserver.rebalance.rounds import Round


def run(settings: RebalanceSettings, target: Target, form: ReportOption = Report.TABLE) -> None:
    """Evict the pods that a policy moves: once, or at an interval until SIGTERM or Ctrl-C.

    A round reads everything that its policy needs, or does nothing. Evictions respect
    PodDisruptionBudgets; the round tries a forbidden eviction again. With --mode reserve-first a
    round writes PodMoves, and no pod is evicted before its replacement has a seat. With --mode
    surge-first a copy of the pod is ready on the seat before that, if the pod can surge. With
    --defragment rounds follow each other until no node can be emptied. If you interrupt them, nodes
    stay cordoned; the next run empties or uncordons these.

    Exit status: 0 the round is done, even if single evictions failed; 1 the input makes no sense,
    or is refused; 2 wrong usage, or a broken policy; 3 the API server, or a source of load, does
    not answer. With an interval, the log reports failed rounds.

    Examples:
        reserver rebalance run --policy-config-file policy.yaml --dry-run
        reserver rebalance run --policy-config-file policy.yaml --mode reserve-first
        reserver rebalance run --make-room --mode reserve-first
        reserver rebalance run --defragment --mode reserve-first --most-moves 20
    """
    import uvloop

    if settings.descheduling_interval and form is not Report.TABLE:
        problem = "--output: shows one round; leave out --descheduling-interval, or read the log"
        raise WrongUsage(problem)
    logs.configure(settings.log_level)
    try:
        done = interrupt.run(_run(settings, target), uvloop.new_event_loop)
    except (ReserverError, ExceptionGroup) as exc:
        first = cause(exc, ReserverError)
        if not isinstance(first, ReserverError):
            raise
        raise failure.of(first) from exc
    if done is not None:
        _show(settings, done, form)


async def _run(settings: RebalanceSettings, target: Target) -> Round | None:
    import structlog

    from reserver.cli.plan_inputs import held
    from reserver.k8s import credentials
    from reserver.rebalance import setup
    from reserver.rebalance.capacity import NOTHING_HELD, Held
    from reserver.rebalance.metrics import DeschedulingMetrics

    stop = asyncio.Event()
    access = await credentials.load(target.kubeconfig, target.context)

    async def holds() -> Held:
        return NOTHING_HELD if settings.without_holds else await held(target)

    def started(line: str) -> None:
        if settings.descheduling_interval and logs.is_json(None):
            name, _, said = line.partition("  ")
            key = name.lower().replace(" ", "_")
            structlog.get_logger(__name__).info("serving", **{key: said.strip()})
        else:
            typer.echo(line, err=True)

    # A single round is broken off at once.
    stopping = interrupt.handing(stop.set) if settings.descheduling_interval else nullcontext()
    with stopping:
        return await setup.rebalance(
            settings, access, holds, started, stop.wait, DeschedulingMetrics()
        )


def _show(settings: RebalanceSettings, done: Round, form: Report) -> None:
    if form is Report.TABLE:
        typer.echo(_summary(settings, done))
        return
    from reserver.cli import output, plan_view

    outcomes = [
        {
            "namespace": each.move.pod.namespace,
            "pod": each.move.pod.name,
            "result": each.result.value,
            "podMove": each.pod_move,
            "why": each.why,
        }
        for each in done.outcomes
    ]
    more = {
        "outcomes": outcomes,
        "left": done.left,
        "dryRun": settings.dry_run,
        "nodesEmptied": list(done.settled.emptied),
        "nodesGivenBack": list(done.settled.given_back),
    }
    output.document(plan_view.document(done.plan) | more, form)


def _summary(settings: RebalanceSettings, done: Round) -> str:
    seats = settings.mode is not Mode.EVICT_ONLY
    moves = sum(bool(move.source) for move in done.plan.moves)
    rooms, kept = len(done.plan.moves) - moves, len(done.plan.kept) + done.plan.more_kept
    stay = f"{kept} stay that a strategy would move"
    if seats:
        stay = f"{done.left} are left to the next round, {stay}"
    if settings.dry_run:
        whom = f" to make room for {rooms}" if settings.make_room else ""
        if settings.defragment:
            whom = f" to empty {counted(len(done.plan.emptied), 'node')}"
        return f"{moves} pods would be {'moved' if seats else 'evicted'}{whom}, {stay}"
    written = sum(bool(outcome.pod_move) for outcome in done.outcomes)
    evicted = sum(not outcome.why for outcome in done.outcomes) - written
    begun = f"{written} PodMoves written, " if seats else ""
    failed = moves + rooms - written - evicted
    said = f"{begun}{evicted} pods evicted, {failed} could not be, {stay}"
    return "\n".join((said, *_nodes(settings, done))) if settings.defragment else said


def _nodes(settings: RebalanceSettings, done: Round) -> Iterator[str]:
    """Yield what became of the nodes that were to be emptied."""
    emptied, given_back = done.settled
    count = counted(len(emptied), "node")
    end = ", left cordoned for an autoscaler" if settings.hand_over and emptied else ""
    yield f"{count} emptied for good{end}{': ' if emptied else ''}{', '.join(emptied)}"
    if given_back:
        yield f"given back, as not all of their pods could leave: {', '.join(given_back)}"
