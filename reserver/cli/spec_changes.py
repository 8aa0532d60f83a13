"""A spec with the fields that flags change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_DROPPED: Mapping[str, Sequence[str]] = {
    "node": ["placement", "nodes"],
    "nodes": ["resources", "slots", "node"],
    "resources": ["nodes"],
    "placement": ["node"],
    "ttl": ["expiresAt", "schedule"],
    "expiresAt": ["ttl", "schedule"],
    "schedule": ["ttl", "expiresAt"],
}
"""Fields that another field of a spec excludes."""


def merged(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with changes and without the fields that they exclude; resources are merged."""
    dropped = {name for name in changes for name in _DROPPED.get(name, ())}
    new = {name: value for name, value in document.items() if name not in dropped} | dict(changes)
    for name in ("resources", "nodes", "placement", "schedule"):
        if name in changes:
            new[name] = {**(document.get(name) or {}), **changes[name]}
    return new
