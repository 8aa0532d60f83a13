"""Reviews of resizes, as an API server sends them or a stranger forges them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from reserver.cluster.pod import Pod
from reserver.scheduling.in_flight import PendingResize
from tests.builders import amounts

WORKERS, NAMESPACES, NAMES = ("worker-1", "worker-2"), ("shop", "bank"), ("web-0", "web-1")
RESOURCES = ("cpu", "memory")
OFFERED = 8
workers, namespaces, names = map(st.sampled_from, (WORKERS, NAMESPACES, NAMES))
sizes = st.fixed_dictionaries({name: st.integers(0, OFFERED) for name in RESOURCES})
huge = st.fixed_dictionaries({name: st.sampled_from((0, 1, 9, 10**9)) for name in RESOURCES})
forged = st.fixed_dictionaries(
    {},
    optional={
        "uid": st.sampled_from(("shop-web-0", "bank-web-1", "x")),
        "name": st.sampled_from((*NAMES, "x")),
        "namespace": st.sampled_from((*NAMESPACES, "x")),
        "node": st.sampled_from((*WORKERS, "no-such-node", "")),
        "resourceVersion": st.sampled_from(("", "0", "1", "999999999999")),
    },
)
"""Metadata of a review that may differ from the pod's."""


def outcome(judging: Coroutine[Any, Any, str | None]) -> str | None:
    """Return the answer to a review; the machine ends pending resizes itself."""
    with asyncio.Runner() as runner:
        return runner.run(judging)


def written(shown: Pod, requests: Mapping[str, int], **metadata: str) -> dict[str, Any]:
    own = {
        "name": shown.name.name,
        "namespace": shown.name.namespace,
        "uid": shown.uid,
        "resourceVersion": str(shown.revision),
    }
    named = {name: str(amount) for name, amount in requests.items()}
    spec = {
        "nodeName": metadata.pop("node", shown.node),
        "containers": [{"name": "main", "resources": {"requests": named}}],
    }
    return {"metadata": own | metadata, "spec": spec}


def review(
    shown: Pod, requests: Mapping[str, int], *, dry_run: bool = False, **metadata: str
) -> dict[str, Any]:
    before, after = (written(shown, each, **metadata) for each in ({}, requests))
    own = after["metadata"]
    return {
        "uid": "u",
        "namespace": own["namespace"],
        "name": own["name"],
        "dryRun": dry_run,
        "object": after,
        "oldObject": before,
    }


def quantities(size: Mapping[str, int]) -> dict[str, int]:
    return {"pods": 1} | amounts({name: str(amount) for name, amount in size.items()})


@dataclass
class Passed:
    """A resize that passed and is not yet written or refused."""

    pod: Pod
    requests: dict[str, int]
    growth: PendingResize | None
