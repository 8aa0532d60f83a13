"""Reads what `reserver rebalance plan` needs: policy, cluster or dump, and holds."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from reserver.cli import failure, room_for
from reserver.cli.documents import STDIN
from reserver.cli.failure import Failed, Status
from reserver.cli.holds import held
from reserver.cli.options import Goal
from reserver.cli.patience import patience
from reserver.cli.plan_flags import PlanFlags
from reserver.cli.policies import raw
from reserver.cli.target import Target
from reserver.cluster.pod import Pod
from reserver.errors import InvalidInput
from reserver.rebalance import pending, planner, upstream
from reserver.rebalance.capacity import NOTHING_HELD, Held, identified
from reserver.rebalance.cluster_state import ClusterState
from reserver.rebalance.defragment import defragment
from reserver.rebalance.load import Load
from reserver.rebalance.measured_load import Source
from reserver.rebalance.modes import Compat
from reserver.rebalance.plan import Plan
from reserver.rebalance.planning_snapshot import planning_snapshot
from reserver.rebalance.policy import Policy
from reserver.rebalance.round_input import RoundInput
from reserver.rebalance.solver import is_installed
from reserver.wire.rebalance.dump import is_one_a_line, read_dump, read_lines
from reserver.wire.rebalance.policyform import read
from reserver.wire.rebalance.reading import REMEDY, Dump

MOST_BYTES = 4 * 2**30
_TOO_LARGE = "is larger than 4 GiB; leave objects out"
_BUFFER = 2**20
"""Bytes that are read at a time: several lines of a dump, not a part of one."""

_HEAD = 8
"""Lines that show whether there is an object in each."""

_MOST_TOLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    inventory: ClusterState
    policy: Policy
    loads: Mapping[Source, Load]
    held: Held
    notes: tuple[str, ...] = ()


async def planned(flags: PlanFlags, dump: str, target: Target) -> Plan:
    """Return the plan.

    Args:
        flags: what is to be planned.
        dump: file with the cluster's objects; empty for the live cluster.
        target: the cluster, and where Reserver is.

    Raises:
        Failed: the policy or a dump cannot be read, or it asks for what cannot be.
        ApiError: the API server does not show the cluster.
        LoadUnknown: a source of load does not say.
    """
    if flags.solver_seconds and not is_installed():
        problem = "there is no solver: pip install './WHEEL[solver]', or leave it out"
        raise Failed(Status.USAGE, f"--solver-seconds: {problem}")
    asked = await asyncio.to_thread(room_for.read, flags.pods) if flags.pods else None
    async with patience("Reading the cluster"):
        cluster = await (_read_dump(flags, dump) if dump else _read_live(flags, target))
    async with patience("Planning"):
        with _collecting_later():
            plan = await asyncio.to_thread(_plan, flags, cluster, asked)
    return replace(plan, notes=(*cluster.notes, *plan.notes))


def _plan(flags: PlanFlags, cluster: _Cluster, asked: Sequence[Pod] | None) -> Plan:
    look = RoundInput(
        policy=cluster.policy,
        cluster=cluster.inventory,
        loads=cluster.loads,
        rounds={},
        now=time.time(),
    )
    if flags.goal is Goal.POLICY and flags.compat is Compat.UPSTREAM:
        return upstream.decide(look).plan
    look = replace(look, cluster=identified(look.cluster))
    if flags.goal is Goal.POLICY:
        return planner.decide(look, cluster.held).plan
    seconds = flags.solver_seconds
    if flags.goal is Goal.MAKE_ROOM:
        wanted = pending.waiting(look.cluster) if asked is None else asked
        return pending.plan(look, cluster.held, wanted, together=flags.together, seconds=seconds)
    protects = planner.protection(look, pending.profile_of(cluster.policy))
    limits = cluster.policy.limits
    scene = planning_snapshot(look.cluster, protects, held=cluster.held, limits=limits)
    return defragment(scene, seconds=seconds)


async def _read_dump(flags: PlanFlags, name: str) -> _Cluster:
    if flags.policy_config_file == name == STDIN:
        problem = "standard input is the dump already; give the policy's file"
        raise Failed(Status.USAGE, f"--policy-config-file: {problem}")
    with _collecting_later():
        dump = await asyncio.to_thread(_dump, name)
    if not dump.inventory.nodes:
        raise Failed(Status.REFUSED, f"{name}: the dump has no nodes; {REMEDY}")
    notes = () if flags.without_holds else ("a dump does not say what reservations hold",)
    return _Cluster(
        inventory=dump.inventory,
        policy=await asyncio.to_thread(_policy, flags.policy_config_file, dump.inventory),
        loads={},
        held=NOTHING_HELD,
        notes=(*_broken(dump), *notes),
    )


def _dump(name: str) -> Dump:
    """Return what a dump says; one that is an object a line is never in memory as a whole."""
    try:
        with sys.stdin.buffer if name == STDIN else Path(name).open("rb", _BUFFER) as file:
            lines = _bounded(name, file)
            head = list(islice(lines, _HEAD))
            if is_one_a_line(head):
                return read_lines(chain(head, lines))
            whole = b"".join((*head, file.read(MOST_BYTES)))
            if len(whole) >= MOST_BYTES:
                raise Failed(Status.REFUSED, f"{name}: {_TOO_LARGE}")
            return read_dump(whole)
    except OSError as exc:
        raise Failed(Status.USAGE, f"--filename: {name} cannot be read: {exc.strerror}") from exc
    except InvalidInput as exc:
        raise Failed(Status.REFUSED, f"{name}: {exc}") from exc


def _bounded(name: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, so that memory holds one of them; it may not be too large."""
    length = 0
    while line := file.readline(MOST_BYTES + 1):
        length += len(line)
        if length > MOST_BYTES:
            raise Failed(Status.REFUSED, f"{name}: {_TOO_LARGE}")
        yield line


async def _read_live(flags: PlanFlags, target: Target) -> _Cluster:
    from reserver.kube.api import credentials
    from reserver.kube.api.client import ApiClient
    from reserver.kube.rebalance.listing import list_cluster
    from reserver.kube.rebalance.loads import Loads

    access = await credentials.load(target.kubeconfig, target.context)
    async with ApiClient(access) as client:
        with _collecting_later():
            dump = await list_cluster(client)
        policy = await asyncio.to_thread(_policy, flags.policy_config_file, dump.inventory)
        loads = await Loads(client, time.time).read(policy, dump.inventory)
    holds = NOTHING_HELD if flags.without_holds else await held(target)
    return _Cluster(
        inventory=dump.inventory, policy=policy, loads=loads, held=holds, notes=_broken(dump)
    )


def _policy(file: str, inventory: ClusterState) -> Policy:
    if not file:
        return Policy()
    policy, problems, warnings = read(raw(file), inventory.priority_classes.get)
    for warning in warnings:
        failure.tell(f"{file}: warning: {warning}")
    if policy is None:
        found = "\n".join(f"{file}: {problem}" for problem in problems)
        raise Failed(Status.REFUSED, found)
    return policy


def _broken(dump: Dump) -> tuple[str, ...]:
    notes = [f"{each.what} is passed over: {each.error}" for each in dump.broken[:_MOST_TOLD]]
    more = dump.broken_count - len(notes)
    return (*notes, f"{more} further objects are passed over") if more > 0 else tuple(notes)


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Leave Python's collector out of a large reading, most of which it would take."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
