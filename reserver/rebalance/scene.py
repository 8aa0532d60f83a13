"""The cluster that a plan is made for: pods on nodes, holds, and who may be moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np

from reserver.cluster.beside import clamped
from reserver.cluster.columns import Bools
from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.rebalance.board import NOWHERE, Board
from reserver.rebalance.disruptions import Disruptions
from reserver.rebalance.inventory import Amounts, Inventory, ListedPod
from reserver.rebalance.ordering import Order
from reserver.rebalance.plan import MOST_KEPT, NO_BOUND, Bound, Kept, Landing, Move, NodeUse, Plan
from reserver.rebalance.policy import NO_LIMITS, EvictionLimits

Held = Mapping[str, Amounts]
"""What reservations hold, by node."""

NOTHING_HELD: Held = MappingProxyType({})

_DAEMONS = "DaemonSet"


class Why(NamedTuple):
    """Why a pod moves.

    Attributes:
        strategy: the plugin that asks for it.
        profile: the profile of the policy that the plugin runs in.
        reason: why it has to leave.
        improves: what is better once it has moved.
    """

    strategy: str
    profile: str = ""
    reason: str = ""
    improves: str = ""

    def move(self, pod: Pod, source: str, target: str | None) -> Move:
        """Return the move of a pod from a node to another one."""
        return Move(pod=pod.name, uid=pod.uid, source=source, target=target, **self._asdict())


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene:
    """A cluster that a plan is made for.

    Attributes:
        board: where the pods are.
        movable: bool array, pods: whether it may be moved.
        protected: why those may not that are on nodes, by their numbers.
        stays_behind: bool array, pods: a node is empty with it (daemon pods, mirror pods).
        disruptions: what budgets allow.
        before: what is requested of each node, by its name.
    """

    board: Board
    movable: Bools
    protected: Mapping[int, str]
    stays_behind: Bools
    disruptions: Disruptions
    before: Mapping[str, Amounts]


def scene_of(
    inventory: Inventory,
    protects: Callable[[ListedPod], str],
    *,
    held: Held = NOTHING_HELD,
    wanted: Sequence[Pod] = (),
    limits: EvictionLimits = NO_LIMITS,
) -> Scene:
    """Return the scene of an inventory.

    Args:
        inventory: the cluster.
        protects: returns what protects a pod from eviction; empty if nothing does.
        held: what reservations hold.
        wanted: pods that are to get a node and are not in the inventory, or not on a node there.
        limits: how many pods may be evicted, where nothing else counts them.
    """
    snapshot = snapshot_of(inventory, held)
    disruptions = Disruptions(inventory.budgets, limits)
    listed = [each for each in inventory.pods if takes_room(each.pod)]
    board = Board(snapshot, [*(each.pod for each in listed), *wanted])
    protected = {}
    for number, each in enumerate(listed):
        why = protects(each) or disruptions.refusal(each.pod)
        if why or each.pod.terminating:
            protected[number] = why or "it is being deleted"
    movable = np.ones(len(board.pods), dtype=np.bool_)
    movable[[*protected, *range(len(listed), len(movable))]] = False
    stays = [pod.controller.kind == _DAEMONS or pod.is_mirror for pod in board.pods]
    return Scene(
        board=board,
        movable=movable,
        protected=protected,
        stays_behind=np.array(stays, dtype=np.bool_),
        disruptions=disruptions,
        before=_uses(board),
    )


def identified(inventory: Inventory) -> Inventory:
    """Return an inventory whose pods can be told from each other, though a dump has no UIDs."""
    if all(each.pod.uid for each in inventory.pods):
        return inventory
    pods = (
        each
        if each.pod.uid
        else msgspec.structs.replace(each, pod=replace(each.pod, uid=str(each.name)))
        for each in inventory.pods
    )
    return replace(inventory, pods=tuple(pods))


def snapshot_of(inventory: Inventory, held: Held = NOTHING_HELD) -> Snapshot:
    """Return the capacity of an inventory's cluster; nobody else has it."""
    snapshot = Snapshot()
    for node in inventory.nodes.values():
        snapshot.set_node(node.node)
    snapshot.namespaces = dict(inventory.namespaces)
    snapshot.storage = inventory.storage
    snapshot.count_all([each.pod for each in inventory.pods if takes_room(each.pod)])
    for name, amounts in held.items():
        snapshot.set_held(name, amounts)
    return snapshot


def held_on(snapshot: Snapshot) -> Held:
    """Return what reservations hold, by node."""
    rows = map(int, np.flatnonzero(snapshot.exists & snapshot.has_holds))
    return {snapshot.name_of(row): _amounts(snapshot, snapshot.held[row]) for row in rows}


def takes_room(pod: Pod) -> bool:
    """Return whether a pod takes something from a node."""
    return bool(pod.node) and not pod.finished


def plan_of(  # noqa: PLR0913 - the parts of a plan
    scene: Scene,
    order: Order,
    why: Callable[[int, int], Why],
    *,
    kept: Iterable[Kept] = (),
    emptied: Iterable[int] = (),
    bound: Bound = NO_BOUND,
    notes: Iterable[str] = (),
) -> Plan:
    """Return what was found on a scene as a plan.

    Args:
        scene: its board is as it is after all moves.
        order: of the moves.
        why: returns why a pod leaves a row.
        kept: what stays that was to move.
        emptied: rows of nodes.
        bound: how much better another plan could be.
        notes: what else people have to know.
    """
    board, name_of = scene.board, scene.board.snapshot.name_of
    moves, landings = [], []
    for number, source, target in order.steps:
        pod = board.pods[number]
        if source == NOWHERE:
            landings.append(Landing(pod.name, name_of(target)))
            continue
        moves.append(why(number, source).move(pod, name_of(source), name_of(target)))
    stays = list(kept)
    return Plan(
        moves=tuple(moves),
        kept=tuple(stays[:MOST_KEPT]),
        more_kept=max(0, len(stays) - MOST_KEPT),
        landings=tuple(landings),
        emptied=tuple(sorted(map(name_of, emptied))),
        nodes=node_uses(board, scene.before),
        bound=bound,
        notes=tuple(notes),
    )


def node_uses(board: Board, before: Mapping[str, Amounts]) -> tuple[NodeUse, ...]:
    """Return what is requested of each node, before and after."""
    snapshot, after = board.snapshot, _uses(board)
    return tuple(
        NodeUse(
            node=name,
            allocatable=_amounts(snapshot, snapshot.allocatable[row]),
            held=_amounts(snapshot, snapshot.held[row]),
            before=before[name],
            after=after[name],
        )
        for name in sorted(after)
        if (row := snapshot.row(name)) is not None
    )


def nodes_without(inventory: Inventory, uids: Container[str]) -> tuple[NodeUse, ...]:
    """Return what is requested of each node, before and once some pods are gone."""
    before: dict[str, Counter[str]] = {name: Counter() for name in sorted(inventory.nodes)}
    leaving: dict[str, Counter[str]] = {name: Counter() for name in before}
    for each in inventory.pods:
        if each.node in before and takes_room(each.pod):
            before[each.node].update(each.pod.requests)
            if each.pod.uid in uids:
                leaving[each.node].update(each.pod.requests)
    offered = {name for node in inventory.nodes.values() for name in node.node.allocatable}

    def shown(amounts: Mapping[str, int]) -> Amounts:
        return {name: clamped(n) for name, n in amounts.items() if n and name in offered}

    return tuple(
        NodeUse(
            node=name,
            allocatable=shown(inventory.nodes[name].node.allocatable),
            held={},
            before=shown(amounts),
            after=shown({key: n - leaving[name][key] for key, n in amounts.items()}),
        )
        for name, amounts in before.items()
    )


def _uses(board: Board) -> dict[str, Amounts]:
    snapshot = board.snapshot
    requested = snapshot.requested
    return {
        snapshot.name_of(row): _amounts(snapshot, requested[row])
        for row in map(int, snapshot.existing_rows())
    }


def _amounts(snapshot: Snapshot, cells: np.ndarray) -> Amounts:
    """Return the cells of a row by resource, without zeros."""
    values = cells.tolist()
    return {name: values[at] for name, at in snapshot.columns.items() if values[at]}
