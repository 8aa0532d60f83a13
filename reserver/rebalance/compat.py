"""Plans as upstream's descheduler would evict; the moves name no target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reserver.rebalance.cycle import Outcome, run
from reserver.rebalance.deciding import Decision, Look
from reserver.rebalance.inventory import Inventory
from reserver.rebalance.load import Load
from reserver.rebalance.plan import MOST_KEPT, Kept, Move, Plan
from reserver.rebalance.readings import Usage
from reserver.rebalance.scene import nodes_without
from reserver.rebalance.sources import Source
from reserver.rebalance.usage import METRIC


def decide(look: Look) -> Decision:
    """Return the plan that a policy asks for."""
    inventory = _with_usage(look.inventory, look.loads)
    outcome = run(inventory, look.policy, look.now, look.timed)
    return Decision(plan=_plan(outcome, inventory), rounds={})


def _plan(outcome: Outcome, inventory: Inventory) -> Plan:
    moves = tuple(
        Move(
            pod=each.pod.name,
            uid=each.pod.pod.uid,
            source=each.pod.node,
            target=None,
            strategy=each.strategy,
            profile=each.profile,
            reason=each.reason,
        )
        for each in outcome.evictions
    )
    kept = tuple(
        Kept(
            pod=each.pod.name,
            node=each.pod.node,
            strategy=each.strategy,
            profile=each.profile,
            why=each.why,
        )
        for each in outcome.refusals
    )
    return Plan(
        moves=moves,
        kept=kept[:MOST_KEPT],
        more_kept=max(0, len(kept) - MOST_KEPT),
        nodes=nodes_without(inventory, {move.uid for move in moves}),
        notes=outcome.notes,
    )


def _with_usage(inventory: Inventory, loads: Mapping[Source, Load]) -> Inventory:
    """Return an inventory that says what is used, by all sources that were asked."""
    nodes, pods = dict(inventory.node_usage), dict(inventory.pod_usage)
    for load in loads.values():
        for name, known in load.nodes.items():
            nodes[name] = {**nodes.get(name, {}), **_whole(known.usage)}
        pods |= {name: (_whole(usage),) for name, usage in load.pods.items()}
    return replace(inventory, node_usage=nodes, pod_usage=pods)


def _whole(usage: Usage) -> dict[str, int]:
    """Round amounts; upstream cuts the decimal places of what Prometheus says off."""
    return {name: int(n) if name == METRIC else round(n) for name, n in usage.items()}
