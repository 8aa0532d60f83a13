"""Reserver's own rights: those that it needs, and no others.

The control plane of the tests writes down what Reserver's service account asks for and which rule
allows it. The two tests that compare this with the manifests come last (tests/e2e/conftest.py).
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import pytest

from hack.controlplane.cluster import ControlPlane
from hack.reserver_process import ReserverProcess, wait_for
from reserver.cluster.pod import PodName
from reserver.kube import credentials
from reserver.kube.apply import Apply
from reserver.kube.client import ApiClient
from reserver.scheduling.effects import Retry
from tests.e2e.cluster import SPEC, Corner
from tests.e2e.rights import asked, granted
from tests.e2e.test_claims import TIDYING

pytestmark = pytest.mark.controlplane


async def test_a_refused_pod_is_tried_again_without_the_right_to_patch_pods(
    corner: Corner, reserver: ReserverProcess, reserver_kubeconfig: Path, kubeconfig: Path
) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    corner.reserve(SPEC, node, "owner", cpu="4")
    corner.wait_held(node)
    corner.create_pod("stranger", {"cpu": "2"})
    corner.wait_refused("stranger", "held by reservation")
    calls = 'reserver_extender_calls_total{outcome="refused",verb="filter"}'

    def is_called_since(before: float) -> bool:
        return reserver.metric(calls) > before

    async with ApiClient(await credentials.load(kubeconfig)) as administrator:
        pod = await Apply(administrator, time.time).read_pod(PodName(corner.name, "stranger"))
    async with ApiClient(await credentials.load(reserver_kubeconfig)) as client:
        for times in (1, 2):
            before = reserver.metric(calls)
            await Apply(client, time.time).carry_out(Retry(pod, attempts=1))
            wait_for(partial(is_called_since, before), f"it is tried again ({times})")


def test_a_pod_that_reserver_has_not_seen_is_read(reserver: ReserverProcess) -> None:
    call = {"PodName": "gone", "PodNamespace": "default", "PodUID": "uid", "Node": "none"}
    status, answer = reserver.post("/bind", json.dumps(call).encode())
    assert (status, 'pods "gone" not found' in answer["Error"]) == (200, True), answer


def test_reserver_asks_for_what_the_manifests_grant(control_plane: ControlPlane) -> None:
    """But for what test_claims.py takes from it for a while."""
    more = asked(control_plane.audit_log) - granted()
    assert not [right for right in more if right.role or TIDYING.get(right.resource) != right.verb]


def test_what_the_manifests_grant_is_used(control_plane: ControlPlane) -> None:
    assert not granted() - asked(control_plane.audit_log)
