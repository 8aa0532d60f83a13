"""The process that makes a plan for one that serves: `python -m reserver.cli.plan_child FD`."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

import uvloop

from reserver.cli.rebalance_child import channel_end
from reserver.errors import ApiError, ReserverError
from reserver.kube.api import credentials
from reserver.kube.api.client import ApiClient
from reserver.kube.rebalance.listing import list_cluster
from reserver.kube.rebalance.loads import Loads
from reserver.rebalance import pending
from reserver.rebalance.arguments.utilization import UsageSource
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.plan import Plan
from reserver.rebalance.policy import Policy
from reserver.rebalance.round_input import RoundInput
from reserver.rebalancing import WAYS
from reserver.wire.rebalance.channel import Planned, Question, Room, line, read
from reserver.wire.rebalance.policyform import Reading
from reserver.wire.rebalance.policyform import read as read_policy

_MOST_S = 300.0
"""How long a plan may take, in seconds, for those who would wait for ever."""

_PART = 500
"""Moves, or pods that stay, of one part."""

_NO_PROMETHEUS = (
    "metricsProviders: names a Prometheus, which Reserver would ask for whoever sends a policy; "
    "leave it out, or plan with `reserver rebalance plan`"
)

Tell = Callable[[Planned], None]


async def _plan(question: Question, tell: Tell) -> None:
    """Make a plan, and tell it."""
    tell(Planned(progress="reading the cluster"))
    access = await credentials.load(Path(question.kubeconfig) if question.kubeconfig else None)
    async with ApiClient(access) as client:
        inventory = (await list_cluster(client)).inventory
        classes = inventory.priority_classes.get
        written = question.policy.encode()
        reading = read_policy(written, classes) if written else Reading(Policy(), (), ())
        policy, problems, warnings = reading
        if policy is None or _asks_prometheus(policy):
            said = tuple(map(str, problems)) or (_NO_PROMETHEUS,)
            tell(Planned(problems=tuple(("policy", each) for each in said)))
            return
        if question.room is not None and (unfit := tuple(_not_waiting(question.room, inventory))):
            tell(Planned(problems=unfit))
            return
        loads = await Loads(client, time.time).read(policy, inventory)
    tell(Planned(progress="planning"))
    look = RoundInput(policy=policy, cluster=inventory, loads=loads, rounds={}, now=time.time())
    plan = await asyncio.to_thread(_decided, question, look)
    _tell_plan(plan, tuple(map(str, warnings)), tell)


def _not_waiting(room: Room, inventory: ClusterState) -> Iterator[tuple[str, str]]:
    """Yield those of the pods that room is asked for that do not wait for a node."""
    waiting = {pod.name for pod in pending.waiting(inventory)}
    there = {each.name for each in inventory.pods}
    for index, name in enumerate(room.pods):
        if name not in waiting:
            what = "does not wait for a node" if name in there else "is not there"
            yield f"makeRoom.pods[{index}]", f"{name} {what}; leave it out"


def _decided(question: Question, look: RoundInput) -> Plan:
    """Return what is asked for."""
    room = question.room
    if room is None:
        return WAYS[question.compat](look, question.held).plan
    wanted = pending.waiting(look.cluster)
    if room.pods or room.slots:
        named = frozenset(room.pods)
        wanted = [pod for pod in wanted if pod.name in named]
        wanted += (pod for each in room.slots for pod in each.pods())
    return pending.plan(look, question.held, wanted, together=room.together)


def _asks_prometheus(policy: Policy) -> bool:
    return any(each.source is UsageSource.PROMETHEUS for each in policy.metrics_providers)


def _tell_plan(plan: Plan, warnings: tuple[str, ...], tell: Tell) -> None:
    for at in range(0, len(plan.moves), _PART):
        tell(Planned(moves=plan.moves[at : at + _PART]))
    for at in range(0, len(plan.kept), _PART):
        tell(Planned(kept=plan.kept[at : at + _PART]))
    for at in range(0, len(plan.landings), _PART):
        tell(Planned(landings=plan.landings[at : at + _PART]))
    last = Planned(
        more_kept=plan.more_kept,
        fewest_moves=plan.bound.fewest_moves or 0,
        notes=plan.notes,
        warnings=warnings,
        complete=True,
    )
    tell(last)


async def _run(number: int) -> None:
    reader, writer = await channel_end(number)

    async def end_with_who_asks() -> None:
        await reader.read()
        os._exit(1)

    def tell(part: Planned) -> None:
        writer.write(line(part))

    asked = await reader.readline()
    if not asked.endswith(b"\n"):
        writer.close()  # Who would have asked has ended.
        return
    question = read(Question, asked)
    ending = asyncio.create_task(end_with_who_asks())
    try:
        async with asyncio.timeout(_MOST_S):
            await _plan(question, tell)
    except TimeoutError:
        tell(Planned(failure=f"it takes longer than {_MOST_S:.0f} s"))
    except ReserverError as exc:
        is_refused = isinstance(exc, ApiError) and exc.status == HTTPStatus.FORBIDDEN
        tell(Planned(failure=str(exc), is_refused=is_refused))
    await writer.drain()
    ending.cancel()
    writer.close()
    await writer.wait_closed()


def main() -> None:
    """Answer one question."""
    gc.disable()  # It would take most of the time, and the process ends soon.
    uvloop.run(_run(int(sys.argv[1])))


if __name__ == "__main__":
    main()
