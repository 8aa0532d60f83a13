"""The objects and calls of the hostile tenant."""

from __future__ import annotations

import json

import pytest

from hack.hostile.catalogue import CATALOGUE
from hack.hostile.costly.entry import POD, REVIEW, TEMPLATE, WHAT_IF, Target
from hack.hostile.tenant import body
from reserver.webhook.handlers import MOST_BODY_BYTES

LARGEST = 1_500_000
"""The largest request that etcd accepts, in bytes."""

CALLS = {WHAT_IF: 3 * LARGEST, REVIEW: MOST_BODY_BYTES - 1_000}
"""The largest bodies of calls that are not stored, in bytes."""

TARGET = Target([f"w-{number}" for number in range(1_000)], "reserver-scheduler")


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("turn", [0, 7])
def test_what_is_written_is_as_large_as_a_real_api_server_takes(name: str, turn: int) -> None:
    costly = CATALOGUE[name](TARGET, turn)
    size = len(json.dumps(costly.document if costly.kind in CALLS else body(costly)))
    assert size < CALLS.get(costly.kind, LARGEST)


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_is_refused_as_too_large_can_be_smaller(name: str) -> None:
    small = Target(TARGET.nodes, TARGET.scheduler, share=0.001)
    whole, part = (len(json.dumps(CATALOGUE[name](each, 3).document)) for each in (TARGET, small))
    assert part <= whole


@pytest.mark.parametrize("name", CATALOGUE)
def test_in_a_storm_it_stays_on_nodes_of_its_own(name: str) -> None:
    target = Target(["hostile-w-1"], "chaos-scheduler", labels={"chaos": "hostile"})
    costly = CATALOGUE[name](target, 2)
    is_pod = costly.kind in {POD, TEMPLATE}
    spec = costly.document["spec"] if is_pod else costly.document
    where = [spec.get("nodeName"), spec.get("node")]
    selectors = [spec.get("nodeSelector"), spec.get("placement", {}).get("nodeSelector")]
    selectors.append(spec.get("nodes", {}).get("selector"))
    if is_pod or "owners" in spec:
        chosen = any(node in {"hostile-w-1", "no-such-node"} for node in where)
        assert chosen or any(s and s.get("chaos") == "hostile" for s in selectors)
