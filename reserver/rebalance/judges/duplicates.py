"""RemoveDuplicates: pods of one owner, evenly over the nodes that may have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from math import ceil

import numpy as np

from reserver.cluster.snapshot import Rows
from reserver.rebalance.arguments.placement import RemoveDuplicates
from reserver.rebalance.cluster_state import Owner
from reserver.rebalance.judges.cycle import Cycle
from reserver.rebalance.pod_index import Once
from reserver.scheduling.node_rules import allowed_by_affinity, tolerated


def duplicates(cycle: Cycle, args: RemoveDuplicates) -> None:
    """Move pods from nodes that have more than their share of an owner's pods to others."""

    def meant(owners: tuple[Owner, ...]) -> frozenset[tuple[str, str]]:
        if any(owner.kind in args.exclude_owner_kinds for owner in owners):
            return frozenset()
        return frozenset((owner.kind, owner.name) for owner in owners)

    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    owners_of = Once(meant)
    for number in np.flatnonzero(cycle.chosen(args.namespaces)).tolist():
        each = cycle.stage.pods[number]
        if owners := owners_of(each.owners):
            groups[each.name.namespace, owners, each.images].append(number)
    for numbers in groups.values():
        if len(numbers) > 1:
            _spread_out(cycle, np.array(numbers))


def _spread_out(cycle: Cycle, numbers: Rows) -> None:
    planned = cycle.stage.planned
    size = len(planned.closed)
    constraints, snapshot = planned.pods[numbers[0]].constraints, planned.snapshot
    may = allowed_by_affinity(constraints, snapshot) & tolerated(constraints, snapshot)
    may &= cycle.seen & cycle.offered & ~planned.closed & ~snapshot.topology.cordoned
    if np.count_nonzero(may) < 2:  # noqa: PLR2004 - nowhere else to go
        return
    share = ceil(len(numbers) / np.count_nonzero(may))
    counts = np.bincount(planned.rows[numbers], minlength=size)
    for number in cycle.in_order(numbers):
        home = int(planned.rows[number])
        if counts[home] <= share:
            continue
        each = cycle.stage.pods[number]
        reason = (
            f"{counts[home]} pods of {each.owners[0].kind} {each.owners[0].name} on {each.node}"
        )
        why = cycle.why(reason, f"no more than {share} of them on a node")
        if cycle.send(number, counts < share, why, counts.astype(np.float64)):
            counts[home] -= 1
            counts[planned.rows[number]] += 1
