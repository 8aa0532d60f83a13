"""RemoveDuplicates: pods of one owner, evenly over the nodes that may have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from math import ceil

import numpy as np

from reserver.rebalance.arguments import RemoveDuplicates
from reserver.rebalance.judges.cycle import Cycle
from reserver.scheduling.node_rules import allowed_by_affinity, tolerated


def duplicates(cycle: Cycle, args: RemoveDuplicates) -> None:
    """Move pods from nodes that have more than their share of an owner's pods to others."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    rows = cycle.stage.scene.board.rows
    for number, each in enumerate(cycle.stage.pods):
        kinds = {owner.kind for owner in each.owners}
        is_meant = args.namespaces.has(each.name.namespace) and cycle.seen[rows[number]]
        if each.owners and is_meant and not kinds & args.exclude_owner_kinds:
            owners = frozenset((owner.kind, owner.name) for owner in each.owners)
            groups[each.name.namespace, owners, each.images].append(number)
    for numbers in groups.values():
        if len(numbers) > 1:
            _spread_out(cycle, numbers)


def _spread_out(cycle: Cycle, numbers: list[int]) -> None:
    board = cycle.stage.scene.board
    size = len(board.closed)
    constraints, snapshot = board.pods[numbers[0]].constraints, board.snapshot
    may = allowed_by_affinity(constraints, snapshot) & tolerated(constraints, snapshot)
    may &= cycle.seen & cycle.offered & ~board.closed & ~snapshot.topology.cordoned
    if np.count_nonzero(may) < 2:  # noqa: PLR2004 - nowhere else to go
        return
    share = ceil(len(numbers) / np.count_nonzero(may))
    counts = np.bincount(board.rows[numbers], minlength=size)
    for number in cycle.in_order(numbers):
        home = int(board.rows[number])
        if counts[home] <= share:
            continue
        each = cycle.stage.pods[number]
        reason = (
            f"{counts[home]} pods of {each.owners[0].kind} {each.owners[0].name} on {each.node}"
        )
        why = cycle.why(reason, f"no more than {share} of them on a node")
        if cycle.send(number, counts < share, why, counts.astype(np.float64)):
            counts[home] -= 1
            counts[board.rows[number]] += 1
