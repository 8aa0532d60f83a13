"""Pods, and whether DefaultEvictor evicts them."""

from typing import Any

from reserver.rebalance.arguments.recycling import PodLifeTime

ALL_PODS = PodLifeTime(states=frozenset({"Running", "Failed"}))


def spec(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


BARE: dict[str, Any] = {"metadata": {"ownerReferences": []}}
