"""A policy judged as upstream's code judges it, as a plan: its moves name no target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reserver.rebalance.cycle import Outcome, run
from reserver.rebalance.deciding import Decision, Look
from reserver.rebalance.inventory import Inventory
from reserver.rebalance.load import Load
from reserver.rebalance.plan import MOST_KEPT, Kept, Move, Plan
from reserver.rebalance.scene import NOTHING_HELD, nodes_without, scene_of
from reserver.rebalance.sources import Source


def decide(look: Look) -> Decision:
    """Return the plan that a policy asks for."""
    inventory = _with_usage(look.inventory, look.loads)
    outcome = run(inventory, look.policy, look.now)
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
    scene = scene_of(inventory, lambda _: "", held=NOTHING_HELD)
    return Plan(
        moves=moves,
        kept=kept[:MOST_KEPT],
        more_kept=max(0, len(kept) - MOST_KEPT),
        nodes=nodes_without(scene, {move.uid for move in moves}),
        notes=outcome.notes,
    )


def _with_usage(inventory: Inventory, loads: Mapping[Source, Load]) -> Inventory:
    """Return an inventory that says what is used, where a source was asked."""
    for load in loads.values():
        usage = {
            name: {each: round(amount) for each, amount in known.usage.items()}
            for name, known in load.nodes.items()
        }
        pods = {
            name: ({each: round(amount) for each, amount in usage.items()},)
            for name, usage in load.pods.items()
        }
        inventory = replace(
            inventory,
            node_usage={**inventory.node_usage, **usage},
            pod_usage={**inventory.pod_usage, **pods},
        )
    return inventory
