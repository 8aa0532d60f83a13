"""The costliest ConfigMaps among those that Reserver is configured to read."""

from __future__ import annotations

import json

from hack.hostile.costly.documents import APP
from hack.hostile.costly.entry import CONFIGMAP, Document, Entries, Target, enter

ENTRIES: Entries = {}

configmap = enter(ENTRIES, CONFIGMAP)


@configmap
def invalid_entries(target: Target, turn: int) -> Document:
    """Write thousands of empty specs (core 12)."""
    return {f"k{number:05}": "{}" for number in range(target.many(5_000 + turn % 2))}


@configmap
def deep_entries(_: Target, turn: int) -> Document:
    """Nest deeply in JSON and in YAML."""
    shapes = ("[" * 400_000, '{"a":' * 80_000, "- " * 30_000, "a: &a [x]\n" + "b: [*a, *a]\n" * 9)
    return {f"deep-{number}": text for number, text in enumerate(shapes)} | {"turn": str(turn)}


@configmap
def list_entries(target: Target, turn: int) -> Document:
    """List thousands of pods on some nodes."""
    items = [
        {"pod": f"w-{number}", "namespace": APP, "cpu": 1, "mem": 1, "expire": 4_000_000_000 + turn}
        for number in range(target.many(500))
    ]
    return {target.node(turn + number): json.dumps(items) for number in range(15)}
