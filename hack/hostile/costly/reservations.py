"""The costliest Reservations."""

from __future__ import annotations

import json
from typing import Any

from hack.hostile.costly import documents
from hack.hostile.costly.documents import AMOUNTS, APP, EXTREMES, REQUIRED
from hack.hostile.costly.entry import RESERVATION, Document, Entries, Target, enter

ENTRIES: Entries = {}

_DEEPEST = 900  # the deepest nesting of json.dumps

reservation = enter(ENTRIES, RESERVATION)


@reservation
def extreme_skew(target: Target, turn: int) -> Document:
    """Spread with the extremes of each number (security 1)."""
    constraint = {
        "maxSkew": 1 if turn % 2 else EXTREMES[turn // 2 % len(EXTREMES)],
        "minDomains": EXTREMES[turn // 2 % len(EXTREMES)] if turn % 2 else 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": APP}},
    }
    return documents.placed(target, slots=3, topologySpreadConstraints=[constraint])


@reservation
def extreme_amounts(target: Target, turn: int) -> Document:
    """Hold amounts beyond any integer (core 1, 2)."""
    amount = AMOUNTS[turn % len(AMOUNTS)]
    spec = documents.spec(
        turn, {"cpu": amount, "memory": amount}, slots=(1, 130, 1000, 100_000)[turn % 4]
    )
    spec |= {"node": target.node(turn), "preemptible": True, "priority": -(2**31)}
    return spec if turn % 2 else {k: v for k, v in spec.items() if k != "priority"}


@reservation
def whole_node(target: Target, turn: int) -> Document:
    """Hold a whole node forever (security 3)."""
    spec = documents.spec(turn, {"cpu": "1000"}, slots=100_000)
    return spec | {"node": target.node(turn), "ttl": "0", "policy": "Require"}


@reservation
def many_terms(target: Target, turn: int) -> Document:
    """Reject thousands of kinds of pods by anti-affinity (security 2): 1.2 MB."""
    terms = [
        documents.term({"app": f"x{number}"}) for number in range(target.many(9_000 + turn % 2))
    ]
    return documents.placed(target, slots=20, affinity={"podAntiAffinity": {REQUIRED: terms}})


@reservation
def many_owners(target: Target, turn: int) -> Document:
    """Have ten thousand kinds of owners, on all nodes (core 11, security 2)."""
    owners = [
        {"selector": {"matchLabels": {f"key-{number % 700}": f"v{turn}-{number}"}}}
        for number in range(target.many(10_000))
    ]
    return documents.placed(target, slots=5_000, strategy="spread") | {"owners": owners}


@reservation
def many_keys(target: Target, turn: int) -> Document:
    """Require a thousand absent labels of all pods (core 10)."""
    spec = documents.placed(
        target,
        slots=1,
        affinity={"podAffinity": {REQUIRED: [documents.keys(target.many(1_000), turn)]}},
    )
    return spec | {"resources": {"cpu": "100" if turn % 2 else "1m"}}


@reservation
def wide_spread(target: Target, turn: int) -> Document:
    """Hold small amounts on all nodes, for existing pods (core 13)."""
    spec = documents.placed(target, slots=5_000 + turn, strategy="spread")
    return spec | {"owners": [{"selector": {"matchLabels": {"app": APP}}}], "reusable": True}


@reservation
def many_resources(target: Target, turn: int) -> Document:
    """Hold unknown resources (core 18)."""
    amounts = {f"hostile.example/r{turn}-{number}": 1 for number in range(target.many(64))}
    return documents.spec(turn, amounts) | {"node": target.node(turn)}


@reservation
def many_constraints(target: Target, turn: int) -> Document:
    """Spread over all kinds of topology keys, also absent ones."""
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": ("kubernetes.io/hostname", f"hostile.example/zone-{number}")[number % 2],
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": documents.keys(target.many(16), number)["labelSelector"],
        }
        for number in range(target.many(64))
    ]
    return documents.placed(target, slots=200 + turn % 3, topologySpreadConstraints=constraints)


@reservation
def many_node_terms(target: Target, turn: int) -> Document:
    """Name all nodes in many terms: 1 MB."""
    values = [
        *target.nodes[: target.many(len(target.nodes))],
        *(f"node-{turn}-{number}" for number in range(target.many(1_000))),
    ]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In"}]}
    whole = len(json.dumps(values))
    term["matchExpressions"][0]["values"] = values  # type: ignore[assignment]
    terms = [term for _ in range(target.many(1_000_000 // whole))]
    node_affinity = {REQUIRED: {"nodeSelectorTerms": terms}}
    return documents.placed(target, slots=20, affinity={"nodeAffinity": node_affinity})


@reservation
def deep(target: Target, turn: int) -> Document:
    """Nest as deeply as the schema allows."""
    value: Any = turn
    for _depth in range(_DEEPEST):
        value = {"a": value}
    return documents.placed(target, slots=1, affinity={"podAffinity": value})


@reservation
def quick_edit(target: Target, turn: int) -> Document:
    """Edit the reservation at each turn (core 17)."""
    expires = f"20{40 + turn % 50}-01-01T00:00:{turn % 60:02}Z"
    return documents.spec(turn, {"cpu": "1m"}) | {
        "node": target.node(turn // 50),
        "expiresAt": expires,
    }


@reservation
def strange_text(target: Target, turn: int) -> Document:
    """Put characters that break terminals and logs into each text (security 13)."""
    text = ("\x1b[2J", "\u202e", "\x9b31m", "\ud7ff" * 60, "../" * 80, "%s%n{}")[turn % 6]
    owner = {"selector": {"matchLabels": {text: text}}}
    return documents.placed(target, slots=1, nodeSelector=target.labels | {text: text}) | {
        "owners": [owner]
    }


@reservation
def comes_again(target: Target, turn: int) -> Document:
    """Recur each minute, or every 28 years: a hundred times, or with a hundred skipped starts."""
    cron = (f"{turn % 60} 0 * 2 SUN#5", "* * * * *", f"*/59 {turn % 24} * 2 SUN#5")[turn % 3]
    days = [f"{2032 + 28 * number}-02-29" for number in range(target.many(100))]
    often: Document = {"skip": [f"{day}T03:{turn % 60:02}:00Z" for day in days]}
    if turn % 2:
        often = {"count": target.many(100)}
    schedule = {"cron": cron, "duration": "1m", "timeZone": "America/St_Johns", **often}
    spec = documents.placed(target, slots=1)
    return spec | {"startsAt": "2026-01-01T00:00:00Z", "schedule": schedule}


@reservation
def many_nodes(target: Target, turn: int) -> Document:
    """Request 500 whole nodes of an absent kind, for a hundred kinds of owners."""
    owners = [
        {"selector": {"matchLabels": {"app": f"{APP}-{number}"}}}
        for number in range(target.many(100))
    ]
    selector = target.labels | {"hostile.example/pool": str(turn)}
    return {"owners": owners, "nodes": {"count": 500, "selector": selector}}


@reservation
def lends_a_little(target: Target, turn: int) -> Document:
    """Lend small amounts on many nodes, below another priority each time, and recall them."""
    spec = documents.placed(target, slots=target.many(1_000), strategy="spread")
    lend = {"lend": {"belowPriority": turn % 1_000 - 500}} if turn % 3 else {}
    return spec | {"reusable": True} | lend


@enter(ENTRIES, RESERVATION, standing=5_000)
def small(target: Target, turn: int) -> Document:
    """Add another small reservation, up to thousands (security 2, 3)."""
    return documents.spec(turn, {"cpu": "1m"}) | {"node": target.node(turn), "ttl": "0"}
