"""Deployments whose pods crowd on few nodes, and what rebalances them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import AppsV1Api, PolicyV1Api

from hack.reserver_process import wait_for
from tests.e2e.apart.yard import Cordoned, is_ready, keep, wait_begun
from tests.e2e.cluster import GROUP, Corner, on_node


class Shop:
    """Nodes, and Deployments whose pods land there.

    Attributes:
        corner: of the cluster.
        nodes: their names.
    """

    def __init__(self, corner: Corner, kubeconfig: Path, folder: Path) -> None:
        self.corner = corner
        self.nodes = corner.add_nodes(3, cpu="4")
        self._kubeconfig = kubeconfig
        self._policy = folder / "policy.yaml"
        self._apps: Any = AppsV1Api(corner.api.api_client)
        self._budgets: Any = PolicyV1Api(corner.api.api_client)

    def deploy(self, name: str, replicas: int, **spec: Any) -> None:
        """Create a Deployment, and return once its pods are bound."""
        labels = {"app": name}
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "500m"}}}
        template = {
            "metadata": {"labels": labels},
            "spec": {
                "schedulerName": self.corner.scheduler,
                "nodeSelector": {GROUP: self.corner.name},
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
                **spec,
            },
        }
        body = {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": template,
            },
        }
        self._apps.create_namespaced_deployment(self.corner.name, body)
        self.wait_ready(name, replicas)

    def wait_ready(self, name: str, replicas: int) -> None:
        def is_ready() -> bool:
            found = self._apps.read_namespaced_deployment_status(name, self.corner.name).status
            return bool(found.ready_replicas == replicas == found.replicas == self.ready(name))

        wait_for(is_ready, f"{replicas} pods of {name} are ready")

    def ready(self, name: str) -> int:
        """Return how many pods are ready; a Deployment's status shows an eviction later."""
        selector = f"app={name}"
        listed = self.corner.api.list_namespaced_pod(self.corner.name, label_selector=selector)
        return sum(map(is_ready, listed.items))

    def keep(self, name: str, available: int) -> None:
        """Create a PodDisruptionBudget, and return once its status is computed."""
        keep(self._budgets, self.corner.name, name, available)

    def pods(self) -> dict[str, tuple[str, str]]:
        """Return node and application of each pod, by UID."""
        return {
            pod.metadata.uid: (pod.spec.node_name, (pod.metadata.labels or {}).get("app", ""))
            for pod in self.corner.api.list_namespaced_pod(self.corner.name).items
            if pod.metadata.deletion_timestamp is None
        }

    def count(self, name: str) -> Counter[str]:
        """Return how many pods of an application each node has."""
        return Counter(node for node, app in self.pods().values() if app == name)

    def write(self, policy_file: Path, **plugins: Any) -> None:
        """Write a policy of these plugins, for this corner alone."""
        selector = f"{GROUP}={self.corner.name}"
        balance = {"RemoveDuplicates", "LowNodeLoad"} & plugins.keys()
        profile = {
            "name": "e2e",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {"nodeSelector": selector}},
                *({"name": name, "args": args} for name, args in plugins.items()),
            ],
            "plugins": {
                "balance": {"enabled": sorted(balance)},
                "deschedule": {"enabled": sorted(plugins.keys() - balance)},
            },
        }
        policy = {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "nodeSelector": selector,
            "profiles": [profile],
        }
        policy_file.write_text(yaml.safe_dump(policy))

    def command(self, policy_file: Path) -> list[str]:
        """Return the command that runs a round by a policy."""
        command = [sys.executable, "-m", "reserver", "rebalance", "run", "--without-holds"]
        command += ["--kubeconfig", str(self._kubeconfig)]
        return [*command, "--policy-config-file", str(policy_file)]

    def run(self, *flags: str, **plugins: Any) -> str:
        """Run a round by a policy of these plugins; return its output."""
        self.write(self._policy, **plugins)
        command = [*self.command(self._policy), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout + done.stderr

    def plan(self, *flags: str, **plugins: Any) -> tuple[int, dict[str, Any]]:
        """Plan by a policy of these plugins; return the exit status and the plan."""
        self.write(self._policy, **plugins)
        command = self.command(self._policy)
        command[command.index("run")] = "plan"
        command += ["-o", "json", "--detailed-exitcode", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.stdout, done.stderr[-4000:]
        return done.returncode, json.loads(done.stdout)


def crowd(shop: Shop) -> None:
    """Have six pods of one Deployment on one node, and the other nodes empty and open."""
    with Cordoned(shop.corner.api, set(shop.nodes[1:])):
        shop.deploy("web", 6)
        wait_begun(shop.corner, "app=web", shop.nodes[0], 6)
        shop.wait_ready("web", 6)
    for node in shop.nodes[1:]:  # kube-scheduler reads later than its controllers what is open.
        shop.corner.create_pod(node, {"cpu": "100m"}, affinity=on_node(node))
    for node in shop.nodes[1:]:
        shop.corner.wait_bound(node)
        shop.corner.delete_pod(node)
    assert shop.count("web") == {shop.nodes[0]: 6}
