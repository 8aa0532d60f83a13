"""Prints a plan: moves, bars of each node before and after, JSON, or a picture."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from reserver.cli import output, table
from reserver.cli.output import Report
from reserver.cli.table import AnyCell, Row, bar, bar_legend, counted, fitting
from reserver.cli.terminal import save_picture
from reserver.cluster import quantity
from reserver.printable import printable
from reserver.rebalance.cluster_state import Amounts
from reserver.rebalance.move_cost import ORDINARY
from reserver.rebalance.plan import Kept, NodeUse, Plan, PlannedMove

if TYPE_CHECKING:
    from rich.console import Console

_RESOURCES = ("cpu", "memory")
_MOST_NODES = 40
_MOST_KEPT = 10
_MOST_NOTES = 20
_BAR = 12


def show(plan: Plan, form: Report) -> None:
    """Print a plan."""
    if form is not Report.TABLE:
        output.document(document(plan), form)
        return
    if plan.moves:
        table.show(_TITLES, _moves(plan))
        typer.echo()
    changed = _changed(plan)
    if changed and sys.stdout.isatty():
        names = max(len(use.node) for use in changed[:_MOST_NODES])
        table.show(*_bars(changed, fitting(2 * len(_RESOURCES), [names], _BAR)))
        bar_legend()
    elif changed:
        table.show(*_uses(changed))
    for line in summary(plan):
        typer.echo(printable(line))


def document(plan: Plan) -> dict[str, object]:
    """Return a plan as a program reads it."""
    return {
        "moves": [_move(move) for move in plan.moves],
        "kept": [_kept(kept) for kept in plan.kept],
        "moreKept": plan.more_kept,
        "landings": [
            {"namespace": each.pod.namespace, "pod": each.pod.name, "node": each.node}
            for each in plan.landings
        ],
        "emptied": list(plan.emptied),
        "nodes": [
            {
                "node": use.node,
                "allocatable": _shown(use.allocatable),
                "held": _shown(use.held),
                "before": _shown(use.before),
                "after": _shown(use.after),
            }
            for use in plan.nodes
        ],
        "bound": {
            "fewestMoves": plan.bound.fewest_moves,
            "mostNodes": plan.bound.most_nodes,
            "by": plan.bound.by,
        },
        "cost": plan.cost,
        "gainPerMove": _per_move(plan),
        "notes": list(plan.notes),
    }


def summary(plan: Plan) -> Iterable[str]:
    """Yield the summary of a plan, line by line."""
    strategies = Counter(move.strategy for move in plan.moves)
    by_strategy = ", ".join(f"{name} {count}" for name, count in sorted(strategies.items()))
    cost = f", cost {plan.cost:g}" if plan.moves else ""
    yield f"{counted(len(plan.moves), 'move')}: {by_strategy}{cost}" if plan.moves else "no moves"
    yield from (f"{each.pod} gets room on {each.node}" for each in plan.landings)
    if plan.emptied:
        yield f"empty afterwards: {', '.join(plan.emptied)}"
    if (gain := _per_move(plan)) is not None:
        what = "nodes emptied" if plan.emptied else "pods that get room"
        yield f"{what} per move: {gain:g}"
    if plan.bound.by and (bound := _bound(plan)):
        yield bound
    kept = len(plan.kept) + plan.more_kept
    for each in plan.kept[:_MOST_KEPT]:
        place = f"on {each.node}" if each.node else "pending"
        yield f"{each.pod} stays {place} ({each.strategy}): {each.why}"
    if kept > _MOST_KEPT:
        yield f"{kept - _MOST_KEPT} more pods stay; -o json names them"
    yield from plan.notes[:_MOST_NOTES]


def _per_move(plan: Plan) -> float | None:
    """Return how many nodes are emptied, or pods get room, for each move; None without either."""
    leaving = sum(bool(move.source) for move in plan.moves)
    return round(plan.reached / leaving, 2) if plan.reached and leaving else None


def draw(plan: Plan, path: Path) -> None:
    """Draw a plan into a file: SVG or HTML, by its name.

    Raises:
        Failed: the file cannot be written.
    """

    def print_on(console: Console) -> None:
        if plan.moves:
            console.print(table.drawn(_TITLES, _moves(plan)))
        changed = _changed(plan)
        if changed:
            titles, rows = _bars(changed, _BAR)
            console.print(table.drawn(titles, rows))
        for line in summary(plan):
            console.print(printable(line), markup=False, highlight=False)

    save_picture(path, "reserver rebalance plan", print_on)


_TITLES = ("NAMESPACE", "POD", "FROM", "TO", "STRATEGY", "REASON", "IMPROVES")


def _moves(plan: Plan) -> list[Row]:
    return [
        [
            move.pod.namespace,
            move.pod.name,
            move.source,
            move.target or "-",
            move.strategy,
            move.reason,
            f"{move.improves} {_weighed(move)}".strip(),
        ]
        for move in plan.moves
    ]


def _weighed(move: PlannedMove) -> str:
    """Return gain and cost of a move, as far as they say something."""
    said = [] if move.gain is None else [f"gain {move.gain:g}"]
    said += [f"cost {move.cost:g}"] if move.source and move.cost != ORDINARY else []
    return f"({', '.join(said)})" if said else ""


def _changed(plan: Plan) -> list[NodeUse]:
    return [use for use in plan.nodes if use.before != use.after]


def _bars(uses: Sequence[NodeUse], width: int) -> tuple[Sequence[str], list[Row]]:
    """Return a bar of each resource of each node, before and after, of so many characters."""
    titles = ["NODE"]
    for resource in _RESOURCES:
        titles += [f"{resource.upper()} BEFORE", "AFTER"]
    rows: list[Row] = []
    for use in uses[:_MOST_NODES]:
        row: list[AnyCell] = [use.node]
        for resource in _RESOURCES:
            total, held = use.allocatable.get(resource, 0), use.held.get(resource, 0)
            row += [
                bar(total, each.get(resource, 0), held, width) for each in (use.before, use.after)
            ]
        rows.append(row)
    if len(uses) > _MOST_NODES:
        rows.append([f"… {len(uses) - _MOST_NODES} more", *[""] * (2 * len(_RESOURCES))])
    return titles, rows


def _uses(uses: Sequence[NodeUse]) -> tuple[Sequence[str], list[Row]]:
    """Return amounts of each resource of each node, before and after."""
    rows: list[Row] = [
        [use.node, name, *(quantity.show(name, each.get(name, 0)) for each in _amounts(use))]
        for use in uses
        for name in _RESOURCES
    ]
    return ("NODE", "RESOURCE", "ALLOCATABLE", "HELD", "BEFORE", "AFTER"), rows


def _amounts(use: NodeUse) -> tuple[Amounts, ...]:
    return use.allocatable, use.held, use.before, use.after


def _move(move: PlannedMove) -> dict[str, object]:
    return {
        "namespace": move.pod.namespace,
        "pod": move.pod.name,
        "from": move.source,
        "to": move.target,
        "strategy": move.strategy,
        "profile": move.profile,
        "reason": move.reason,
        "gain": move.gain,
        "cost": move.cost,
    }


def _kept(kept: Kept) -> dict[str, str]:
    return {
        "namespace": kept.pod.namespace,
        "pod": kept.pod.name,
        "node": kept.node,
        "strategy": kept.strategy,
        "profile": kept.profile,
        "why": kept.why,
    }


def _shown(amounts: Amounts) -> dict[str, str]:
    return {name: quantity.show(name, amount) for name, amount in sorted(amounts.items())}


def _bound(plan: Plan) -> str:
    bound = plan.bound
    parts = []
    if bound.most_nodes is not None:
        most = counted(bound.most_nodes, "node")
        parts.append(
            f"at most {most} can be emptied" if bound.most_nodes else "no node can be emptied"
        )
    if bound.fewest_moves:
        parts.append(f"no plan does this with fewer than {counted(bound.fewest_moves, 'move')}")
    if not parts and not plan.moves:
        return ""
    return f"{', and '.join(parts) or 'a plan with fewer moves may exist'} ({bound.by})"
