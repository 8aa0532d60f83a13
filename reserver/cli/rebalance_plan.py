"""`reserver rebalance plan`: the moves that a policy, or pods without room, ask for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from reserver.cli import completion, failure, interrupt, plan_inputs, plan_view
from reserver.cli.failure import ExitStatus, Failed, WrongUsage
from reserver.cli.output import Report, ReportOption
from reserver.cli.plan_inputs import Cluster, collecting_later
from reserver.cli.target import Target
from reserver.cli.terminal import check_picture, progress
from reserver.cluster.pod import Pod
from reserver.errors import ReserverError
from reserver.rebalance import emptying, pending, planner, upstream
from reserver.rebalance.capacity import identified
from reserver.rebalance.move_cost import with_costs
from reserver.rebalance.plan import Plan
from reserver.rebalance.round_input import RoundInput
from reserver.rebalance.settings import COMPATS, MOST_MOVES, Compat, read_compat
from reserver.rebalance.time_limit import SECONDS, TimeLimit
from reserver.settings.flags import flag

_LONGEST_S = 3600
_HAS_MOVES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFlags:
    """The flags of `reserver rebalance plan`.

    Raises:
        Failed: some do not go together.
    """

    policy_config_file: str = flag(
        "Policy of the descheduler (descheduler/v1alpha2); - for standard input.",
        default="",
        metavar="FILE",
        complete=completion.files,
    )
    make_room: bool = flag("Plan room for pending pods instead of a policy.", default=False)
    pods: str = flag(
        "With --make-room: Pods or Reservations to make room for; - for standard input.",
        default="",
        metavar="FILE",
        complete=completion.files,
    )
    together: bool = flag("With --make-room: make room for all, or for none.", default=False)
    defragment: bool = flag("Empty as many nodes as possible instead of a policy.", default=False)
    compat: Compat = flag(
        "Judge a policy as one plan, or as upstream's code does. Default: plan.",
        default=Compat.PLAN,
        metavar=COMPATS,
        read=read_compat,
    )
    without_holds: bool = flag("Ignore reservations.", default=False)
    most_moves: int | None = flag(
        "Most moves, also if the policy allows more.", metavar="NUMBER", most=MOST_MOVES
    )
    solver_seconds: float = flag(
        "With --make-room, --defragment: seconds to look for a better plan, and for a proof."
        " Default: 5; 0: no solver.",
        default=SECONDS,
        most=_LONGEST_S,
    )
    picture: Path | None = flag("Also draw the plan into a file: .svg or .html.", metavar="FILE")
    detailed_exitcode: bool = flag("Exit with 0: no moves; 1: an error; 2: moves.", default=False)

    def check(self) -> None:
        """Refuse options that exclude each other.

        Raises:
            Failed: something does not.
        """
        if self.make_room and self.defragment:
            raise WrongUsage("--defragment: excludes --make-room; leave one out")
        if not (self.policy_config_file or self.make_room or self.defragment):
            remedy = "give a policy's file, --make-room or --defragment"
            raise WrongUsage(f"--policy-config-file: is missing; {remedy}")
        if (self.pods or self.together) and not self.make_room:
            raise WrongUsage("--pods, --together: need --make-room; give it, too")
        check_picture(self.picture)


def plan(
    target: Target,
    flags: PlanFlags,
    filename: Annotated[
        str,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Plan for a dump instead of the live cluster; - for standard input.",
            autocompletion=completion.files,
        ),
    ] = "",
    form: ReportOption = Report.TABLE,
) -> None:
    """Show which pods would move where, and change nothing.

    Exit status: 0 shown; 1 refused; 2 wrong usage; 3 the cluster or Reserver cannot be reached;
    5 with --make-room, if a pod gets no room; the plan says why.
    With --detailed-exitcode: 0 nothing to do, 1 any error, 2 there are moves.

    Examples:
        reserver rebalance plan --policy-config-file policy.yaml
        reserver rebalance plan --make-room --pods reservation.yaml
        kubectl get nodes,pods,namespaces,pdb,pvc,pv,sc,priorityclasses -A -o json |
          reserver rebalance plan --defragment -f -
    """
    try:
        flags.check()
        found = interrupt.run(planned(flags, filename, target))
        plan_view.show(found, form)
        if flags.picture is not None:
            plan_view.draw(found, flags.picture)
    except ReserverError as exc:
        failed = failure.of(exc)
        status = ExitStatus.REFUSED if flags.detailed_exitcode else failed.status
        raise Failed(status, failed.message) from exc
    if flags.detailed_exitcode:
        raise typer.Exit(_HAS_MOVES if found.moves else ExitStatus.DONE)
    if flags.make_room and found.kept:
        raise typer.Exit(ExitStatus.WAITING)


async def planned(flags: PlanFlags, dump: str, target: Target) -> Plan:
    """Return the plan.

    Args:
        flags: the flags of the plan.
        dump: file with the cluster's objects; empty for the live cluster.
        target: the addresses of the cluster and of Reserver.

    Raises:
        Failed: the policy or a dump cannot be read, or the flags contradict.
        ApiError: the API server does not show the cluster.
        LoadUnknown: a source of load does not answer.
    """
    asked = await asyncio.to_thread(plan_inputs.read_pods, flags.pods) if flags.pods else None
    async with progress("Reading the cluster"):
        cluster = await (
            plan_inputs.from_dump(flags.policy_config_file, dump, without_holds=flags.without_holds)
            if dump
            else plan_inputs.from_cluster(
                flags.policy_config_file, target, without_holds=flags.without_holds
            )
        )
    async with progress("Planning"):
        with collecting_later():
            plan = await asyncio.to_thread(_decide, flags, cluster, asked)
    plan = with_costs(plan, cluster.inventory, time.time())
    return replace(plan, notes=(*cluster.notes, *plan.notes))


def _decide(flags: PlanFlags, cluster: Cluster, asked: Sequence[Pod] | None) -> Plan:
    look = RoundInput(
        policy=cluster.policy,
        cluster=cluster.inventory,
        loads=cluster.loads,
        rounds={},
        now=time.time(),
    )
    look = replace(look, policy=look.policy.with_most_moves(flags.most_moves))
    is_by_policy = not (flags.make_room or flags.defragment)
    if is_by_policy and flags.compat is Compat.UPSTREAM:
        return upstream.decide(look).plan
    look = replace(look, cluster=identified(look.cluster))
    if is_by_policy:
        return planner.decide(look, cluster.held).plan
    seconds = flags.solver_seconds
    limit = TimeLimit.after(seconds, time.monotonic) if seconds else None
    if flags.make_room:
        wanted = pending.waiting(look.cluster) if asked is None else asked
        return pending.plan(look, cluster.held, wanted, together=flags.together, limit=limit)
    return emptying.plan(look, cluster.held, limit=limit)
