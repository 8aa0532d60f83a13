"""The inputs of `reserver rebalance`: policy, cluster or dump, pods that want room, and holds.

A slot of a Reservation counts as a pod of its size, where its node or placement allows.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from reserver.cli import failure
from reserver.cli.connection import connected
from reserver.cli.failure import Failed, Refused, WrongUsage
from reserver.cli.manifests import STDIN, ManifestDocument, read_files, read_manifests
from reserver.cli.target import Target
from reserver.cluster import quantity
from reserver.cluster.pod import Pod
from reserver.errors import InvalidInput
from reserver.rebalance.capacity import NOTHING_HELD, Held
from reserver.rebalance.cluster_state import Amounts, ClusterState
from reserver.rebalance.dump import is_one_a_line, list_cluster, read_dump, read_lines
from reserver.rebalance.dump_pods import read_pod
from reserver.rebalance.dump_reader import REMEDY, Dump
from reserver.rebalance.pending import Slots
from reserver.rebalance.policy import DeschedulerPolicy
from reserver.rebalance.policy_reader import read
from reserver.reservations.reservation import Ref
from reserver.settings.strict_yaml import MOST_BYTES as MOST_POLICY_BYTES
from reserver.stores.codec import spec_codec

if TYPE_CHECKING:
    from reserver.rebalance.load import SmoothedLoad
    from reserver.rebalance.measured_load import Source

MOST_BYTES = 4 * 2**30
_TOO_LARGE = "is larger than 4 GiB; leave objects out"
_BUFFER = 2**20
"""Bytes that are read at a time: several lines of a dump, not a part of one."""

_HEAD = 8
"""Lines that show whether there is an object in each."""

_MOST_TOLD = 20

_UNNAMED = "reservation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster to plan for.

    Attributes:
        inventory: its objects.
        policy: to plan by.
        loads: measured, by source.
        held: by reservations, on each node.
        notes: for the reader of the plan.
    """

    inventory: ClusterState
    policy: DeschedulerPolicy
    loads: Mapping[Source, SmoothedLoad]
    held: Held
    notes: tuple[str, ...] = ()


async def from_dump(policy_file: str, name: str, *, without_holds: bool) -> Cluster:
    """Return the cluster of a dump, with the inputs of a policy."""
    if policy_file == name == STDIN:
        problem = "standard input is the dump already; give the policy's file"
        raise WrongUsage(f"--policy-config-file: {problem}")
    with collecting_later():
        dump = await asyncio.to_thread(_read_dump_file, name)
    if not dump.inventory.nodes:
        raise Refused(f"{name}: the dump has no nodes; {REMEDY}")
    notes = () if without_holds else ("the plan ignores reservations, which a dump does not have",)
    return Cluster(
        inventory=dump.inventory,
        policy=await asyncio.to_thread(_read_policy, policy_file, dump.inventory),
        loads={},
        held=NOTHING_HELD,
        notes=(*_broken(dump), *notes),
    )


def _read_dump_file(name: str) -> Dump:
    """Return a dump; one with an object a line is never in memory as a whole."""
    try:
        with sys.stdin.buffer if name == STDIN else Path(name).open("rb", _BUFFER) as file:
            lines = _bounded(name, file)
            head = list(islice(lines, _HEAD))
            if is_one_a_line(head):
                return read_lines(chain(head, lines))
            whole = b"".join((*head, file.read(MOST_BYTES)))
            if len(whole) >= MOST_BYTES:
                raise Refused(f"{name}: {_TOO_LARGE}")
            return read_dump(whole)
    except OSError as exc:
        raise WrongUsage(f"--filename: {name} cannot be read: {exc.strerror}") from exc
    except InvalidInput as exc:
        raise Refused(f"{name}: {exc}") from exc


def _bounded(name: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, so that memory holds one of them; it may not be too large."""
    length = 0
    while line := file.readline(MOST_BYTES + 1):
        length += len(line)
        if length > MOST_BYTES:
            raise Refused(f"{name}: {_TOO_LARGE}")
        yield line


async def from_cluster(policy_file: str, target: Target, *, without_holds: bool) -> Cluster:
    """Return the live cluster, with the inputs of a policy and Reserver's holds."""
    from reserver.k8s import credentials
    from reserver.k8s.client import ApiClient
    from reserver.rebalance.load_sources import Loads

    access = await credentials.load(target.kubeconfig, target.context)
    async with ApiClient(access) as client:
        with collecting_later():
            dump = await list_cluster(client)
        policy = await asyncio.to_thread(_read_policy, policy_file, dump.inventory)
        loads = await Loads(client, time.time).read(policy, dump.inventory)
    holds = NOTHING_HELD if without_holds else await held(target)
    return Cluster(
        inventory=dump.inventory, policy=policy, loads=loads, held=holds, notes=_broken(dump)
    )


def _read_policy(file: str, inventory: ClusterState) -> DeschedulerPolicy:
    if not file:
        return DeschedulerPolicy()
    policy, problems, warnings = read(read_policy_file(file), inventory.priority_classes.get)
    for warning in warnings:
        failure.report(f"{file}: warning: {warning}")
    if policy is None:
        found = "\n".join(f"{file}: {problem}" for problem in problems)
        raise Refused(found)
    return policy


def _broken(dump: Dump) -> tuple[str, ...]:
    notes = [f"{each.what} is skipped: {each.error}" for each in dump.broken[:_MOST_TOLD]]
    more = dump.broken_count - len(notes)
    return (*notes, f"{more} further objects are skipped") if more > 0 else tuple(notes)


@contextmanager
def collecting_later() -> Iterator[None]:
    """Leave Python's collector out of a large reading, most of which it would take."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # What was read stays until the end, and takes long to count.
        gc.enable()


def read_policy_file(name: str) -> bytes:
    """Return a file, or standard input (``-``), one byte longer than a policy may be at most.

    Raises:
        Failed: it cannot be read.
    """
    try:
        if name == STDIN:
            return sys.stdin.buffer.read(MOST_POLICY_BYTES + 1)
        with Path(name).open("rb") as file:
            return file.read(MOST_POLICY_BYTES + 1)
    except OSError as exc:
        raise WrongUsage(f"{name}: cannot be read: {exc.strerror}") from exc


async def held(target: Target) -> Held:
    """Return the resources that reservations hold, by node.

    Raises:
        Failed: Reserver cannot be reached, or does not say.
    """
    found: dict[str, Amounts] = {}
    try:
        async with connected(target) as session:
            async for each in session.client.capacity.nodes():
                found[each.node] = {
                    name: quantity.amount(name, amounts.held)
                    for name, amounts in each.resources.items()
                    if amounts.held
                }
    except Failed as exc:
        remedy = "or go on --without-holds, as if nothing were held"
        raise Failed(exc.status, f"{exc}; {remedy}") from exc
    return {node: amounts for node, amounts in found.items() if amounts}


def read_pods(name: str) -> list[Pod]:
    """Return the pods of a file that want room.

    Raises:
        Failed: it cannot be read, or some of it is neither a Pod nor a Reservation.
    """
    found: list[Pod] = []
    for document in read_files([name]):
        try:
            found += _pods(document)
        except InvalidInput as exc:
            raise Refused(f"{document.where}: {exc}") from exc
    return found


def _pods(document: ManifestDocument) -> Iterator[Pod]:
    if document.kind != "Pod":
        yield from _slots(document)
        return
    pod = read_pod(json.dumps(document.value).encode()).pod
    if not pod.name.name:
        raise InvalidInput("metadata.name", "is empty", "give the pod a name")
    yield replace(pod, uid=f"wanted {pod.name}", node="")


def _slots(document: ManifestDocument) -> Iterator[Pod]:
    found, problems = read_manifests([document], _UNNAMED)
    if problems:
        raise problems[0][1]
    (asked,) = found
    namespace = asked.namespace or "default"
    try:
        ref = Ref.of_object(namespace, asked.name)
        reservation = spec_codec.read(asked.spec, ref, time.time())
    except InvalidInput as exc:
        raise exc.under(asked.path) if asked.path else exc from exc
    yield from Slots.of(reservation, asked.name).pods()
