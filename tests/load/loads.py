"""A cluster where one node is hot, and a round of rebalancing by what some source says of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from hack.controlplane.cluster import ControlPlane
from hack.controlplane.nodes import create_nodes
from hack.reserver_process import wait_for

CORES = {"worker-1": 7.2, "worker-2": 0.4}
"""The usage of the nodes, which have eight cores."""

PODS = {"web-0": 1.0, "web-1": 0.5}
"""The usage of the pods on worker-1."""


def fill(plane: ControlPlane) -> Any:
    """Create the nodes and the pods; return a client of the API server."""
    create_nodes(plane.kubeconfig, 2, cpu="8")
    api: Any = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
    for name in PODS:
        spec = {"nodeName": "worker-1", "containers": [{"name": "main", "image": "none"}]}
        evictable = {"descheduler.alpha.kubernetes.io/evict": "true"}
        metadata = {"name": name, "annotations": evictable}
        api.create_namespaced_pod("default", {"metadata": metadata, "spec": spec})
    return api


def relieve(plane: ControlPlane, api: Any, file: Path, provider: dict[str, Any]) -> None:
    """Run a round by a source of load; check that the pod leaves that relieves the hot node.

    Args:
        plane: the control plane.
        api: its client.
        file: where the policy is written.
        provider: an entry of `metricsProviders`.
    """
    args = {
        "lowThresholds": {"cpu": 40},
        "highThresholds": {"cpu": 80},
        "anomalyCondition": {"consecutiveAbnormalities": 1},
        "metricsUtilization": {"source": provider["source"]},
    }
    policy = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [provider],
        "profiles": [
            {
                "name": "load",
                "pluginConfig": [{"name": "LowNodeLoad", "args": args}],
                "plugins": {"balance": {"enabled": ["LowNodeLoad"]}},
            }
        ],
    }
    file.write_text(yaml.safe_dump(policy))
    command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
    command += ["--kubeconfig", str(plane.kubeconfig), "--policy-config-file", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 pods evicted, 0 could not be"), done.stdout + done.stderr
    wait_for(lambda: _there(api) == {"web-1"}, "the pod that relieves the node is gone")


def _there(api: Any) -> set[str]:
    pods = api.list_namespaced_pod("default").items
    return {pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is None}
