"""Rounds that empty nodes, with the rights that we ship: no pod lands there meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import CoreV1Api
from kubernetes.client.exceptions import ApiException
from kubernetes.config import new_client_from_config

from hack.chaos.moving.deadly import Deadly
from hack.reserver_process import wait_for
from reserver.k8s.objects.nodes import EMPTIED_ANNOTATION, EMPTYING_ANNOTATION
from tests.e2e.apart.yard import Yard
from tests.e2e.cluster import GROUP
from tests.e2e.conftest import ROOT, grant

pytestmark = pytest.mark.controlplane

EMPTYING = ROOT / "scheduler-config/components/emptying"


@pytest.fixture(scope="module")
def rights(api: Any) -> None:
    """The rights to cordon, and the policy that bounds them."""
    for file in ("rbac.yaml", "policy.yaml"):
        grant(api, *yaml.safe_load_all((EMPTYING / file).read_text()))


@pytest.fixture
def emptier(rebalance_kubeconfig: Path, yard: Yard, rights: None) -> Path:  # noqa: ARG001
    """The account of rounds, which may do no more than that."""
    rounds: Any = CoreV1Api(new_client_from_config(str(rebalance_kubeconfig)))

    def is_bounded() -> bool:
        try:
            rounds.patch_node(yard.nodes[0], {"metadata": {"labels": {"e2e": "x"}}}, dry_run="All")
        except ApiException as exc:
            return "may not change the labels" in exc.body
        return False

    wait_for(is_bounded, "rounds may change no label of a node")
    return rebalance_kubeconfig


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param([], id="opened"),
        pytest.param(["--hand-over"], id="handed over", marks=pytest.mark.release),
    ],
)
def test_a_node_is_closed_then_emptied_for_good(
    yard: Yard, mishaps: Deadly, emptier: Path, tmp_path: Path, flags: list[str]
) -> None:
    d, e = yard.nodes
    yard.deploy("a", d)
    yard.deploy("b", e)
    policy = tmp_path / "policy.yaml"
    head = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
    policy.write_text(f"{head}nodeSelector: {GROUP}={yard.corner.name}\n")
    command = [sys.executable, "-m", "reserver", "rebalance", "run", "--defragment", *flags]
    command += ["--mode=reserve-first", "--without-holds", f"--policy-config-file={policy}"]
    command += ["--kubeconfig", str(emptier)]
    mishaps.may_evict.clear()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            wait_for(lambda: any(closed(yard, node) for node in (d, e)), "a node is closed")
            emptied, kept = (d, e) if closed(yard, d) else (e, d)
            assert not closed(yard, kept)
            assert yard.nodes_of("a") + yard.nodes_of("b") == [d, e]
        finally:
            mishaps.may_evict.set()
        said, log = run.communicate(timeout=120)
    assert run.returncode == 0, log
    end = ", left cordoned for an autoscaler" if flags else ""
    assert f"1 node emptied for good{end}: {emptied}" in said, log
    assert yard.nodes_of("a") == yard.nodes_of("b") == [kept]
    node = yard.corner.api.read_node(emptied)
    annotations = node.metadata.annotations or {}
    assert (EMPTIED_ANNOTATION in annotations, EMPTYING_ANNOTATION in annotations) == (
        bool(flags),
        False,
    )
    assert bool(node.spec.unschedulable) is bool(flags)


def closed(yard: Yard, name: str) -> bool:
    """Return whether a round has closed a node."""
    node = yard.corner.api.read_node(name)
    marked = EMPTYING_ANNOTATION in (node.metadata.annotations or {})
    return marked and bool(node.spec.unschedulable)
