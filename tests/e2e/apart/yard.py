"""Workloads whose pods move, with controllers that make them again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes.client import (
    AdmissionregistrationV1Api,
    AppsV1Api,
    BatchV1Api,
    PolicyV1Api,
)
from kubernetes.client.exceptions import ApiException

from hack.reserver_process import ReserverProcess, wait_for
from tests.e2e.apart.moving import Moving
from tests.e2e.cluster import GROUP, Corner


class Yard(Moving):
    """Nodes of four cores, workloads on them, and moves."""

    def __init__(self, corner: Corner, asked: ReserverProcess) -> None:
        """Have the nodes; `asked` is the Reserver that the corner's kube-scheduler asks."""
        super().__init__(corner)
        self._asked = asked
        self.nodes = corner.add_nodes(2, cpu="4")
        self.group = {"name": corner.name, "size": 2}
        self._side = corner.add_nodes(2, cpu="500m")
        client = corner.api.api_client
        self.apps: Any = AppsV1Api(client)
        self.jobs: Any = BatchV1Api(client)
        self._budgets: Any = PolicyV1Api(client)
        self._admission: Any = AdmissionregistrationV1Api(client)

    # Workloads

    def template(self, name: str, cpu: str = "2", **spec: Any) -> dict[str, Any]:
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
        return {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "schedulerName": self.corner.scheduler,
                "nodeSelector": {GROUP: self.corner.name},
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
                **spec,
            },
        }

    def workload(self, name: str, replicas: int = 1, cpu: str = "2") -> dict[str, Any]:
        return {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": self.template(name, cpu),
            },
        }

    def deploy(
        self,
        name: str,
        node: str,
        replicas: int = 1,
        cpu: str = "2",
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> str:
        """Create a Deployment whose pods land on a node; return the name of one of them."""
        with self.only(node):
            body = self.workload(name, replicas, cpu)
            body["spec"]["template"]["spec"] |= spec
            body["spec"]["template"]["metadata"]["annotations"] = annotations
            self.apps.create_namespaced_deployment(self.corner.name, body)
            self.wait_begun(name, node, replicas)
        return str(self.pods(name)[0].metadata.name)

    def deploy_stateful(self, name: str, node: str) -> None:
        """Create a StatefulSet whose pod lands on a node."""
        with self.only(node):
            body = self.workload(name)
            body["spec"]["serviceName"] = name
            self.apps.create_namespaced_stateful_set(self.corner.name, body)
            self.wait_begun(name, node)

    def wait_begun(self, name: str, node: str, replicas: int = 1) -> None:
        """Wait for the pods of a workload on the only node that is open.

        Until Reserver has read that they are there, a move is that of a pod that waits.
        """
        wait_begun(self.corner, f"app={name}", node, replicas)
        for pod in self.pods(name):
            wait_for(partial(self._is_read, pod.metadata.name), f"Reserver has read of {name}")

    def _is_read(self, pod: str) -> bool:
        status, told = self._asked.get(f"/explain/{self.corner.name}/{pod}")
        return status == HTTPStatus.OK and bool(json.loads(told)["node"])

    def only(self, node: str) -> Any:
        """Let pods land on one node alone, until the block ends."""
        return Cordoned(self.corner.api, {*self.nodes, *self._side} - {node})

    def scale(self, name: str, replicas: int) -> None:
        body = {"spec": {"replicas": replicas}}
        self.apps.patch_namespaced_deployment_scale(name, self.corner.name, body)

    def roll_out(self, name: str) -> None:
        template = {"metadata": {"annotations": {"e2e": "rolled out"}}}
        body = {"spec": {"template": template}}
        self.apps.patch_namespaced_deployment(name, self.corner.name, body)

    def pods(self, name: str) -> list[Any]:
        """Return the pods of a workload that are not leaving."""
        found = self.corner.api.list_namespaced_pod(
            self.corner.name, label_selector=f"app={name}"
        ).items
        return [pod for pod in found if pod.metadata.deletion_timestamp is None]

    def nodes_of(self, name: str) -> list[str]:
        """Return the nodes of the pods of a workload that have one."""
        return [pod.spec.node_name for pod in self.pods(name) if pod.spec.node_name]

    def wait_on(self, name: str, node: str, replicas: int = 1, seconds: float = 60) -> None:
        def is_there() -> bool:
            nodes = [pod.spec.node_name for pod in self.pods(name)]
            return nodes == [node] * replicas

        wait_for(is_there, f"{name} is on {node}", seconds)

    def keep(self, name: str) -> None:
        """Create a PodDisruptionBudget that allows no eviction, and wait until it is counted."""
        keep(self._budgets, self.corner.name, name, available=1)

    def keep_no_more(self, name: str) -> None:
        self._budgets.delete_namespaced_pod_disruption_budget(name, self.corner.name)

    @contextmanager
    def refusing_pods(self, why: str) -> Iterator[None]:
        """Have the API server refuse each new pod, until the block ends."""
        name = self.corner.name
        here = {"matchLabels": {"kubernetes.io/metadata.name": name}}
        pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        match = {"resourceRules": [pods | {"operations": ["CREATE"]}], "namespaceSelector": here}
        spec = {
            "matchConstraints": match,
            "validations": [{"expression": "false", "message": why}],
        }
        binding = {"policyName": name, "validationActions": ["Deny"]}
        metadata = {"name": name}
        api = self._admission
        api.create_validating_admission_policy({"metadata": metadata, "spec": spec})
        api.create_validating_admission_policy_binding({"metadata": metadata, "spec": binding})
        try:
            wait_for(partial(self._refuses, why), "pods are refused")
            yield
        finally:
            api.delete_validating_admission_policy_binding(name)
            api.delete_validating_admission_policy(name)

    def _refuses(self, why: str) -> bool:
        body = {"metadata": {"name": "probe"}, "spec": self.template("probe")["spec"]}
        try:
            self.corner.api.create_namespaced_pod(self.corner.name, body, dry_run="All")
        except ApiException as exc:
            return why in exc.body
        return False

    def wait_seated(self, name: str, pod: str, **spec: Any) -> None:
        """Move a pod, and return once it has its seat: it waits for one of its group."""
        here, _ = self._side
        late = self.deploy("late", here, cpu="100m")
        self.move(name, pod, group=self.group, **spec)
        # Until then Reserver has seen where the late pod is.
        self.wait_phase(name, "Pending", says="not written yet")
        self.move("late", late, to={"nodeSelector": {"e2e": self.corner.name}}, group=self.group)
        self.wait_phase(name, "Evicting", reason="WaitsForGroup")

    def let_go(self) -> None:
        """Let the one that it waits for have its seat as well."""
        _, there = self._side
        self.corner.api.patch_node(there, {"metadata": {"labels": {"e2e": self.corner.name}}})


def wait_begun(corner: Corner, labels: str, node: str, replicas: int) -> None:
    """Wait for pods on a node; kube-scheduler may bind one before it reads of a cordon."""

    def is_there() -> bool:
        found = corner.api.list_namespaced_pod(corner.name, label_selector=labels).items
        bound = [pod for pod in found if pod.spec.node_name and not pod.metadata.deletion_timestamp]
        for pod in bound:
            if pod.spec.node_name != node:
                corner.api.delete_namespaced_pod(pod.metadata.name, corner.name)
        return [pod.spec.node_name for pod in bound] == [node] * replicas

    wait_for(is_there, f"pods of {labels} are on {node}")


class Cordoned:
    """Nodes that take no pods, until the block ends."""

    def __init__(self, api: Any, nodes: set[str]) -> None:
        self._api = api
        self._nodes = nodes

    def __enter__(self) -> None:
        cordon(self._api, self._nodes, is_cordoned=True)

    def __exit__(self, *_: object) -> None:
        cordon(self._api, self._nodes, is_cordoned=False)


def cordon(api: Any, nodes: set[str], *, is_cordoned: bool) -> None:
    """Cordon nodes, or uncordon them; return once a controller has set or removed their taints."""
    for node in nodes:
        api.patch_node(node, {"spec": {"unschedulable": is_cordoned}})

    def is_tainted(node: str) -> bool:
        taints = api.read_node(node).spec.taints or ()
        return any(taint.key == "node.kubernetes.io/unschedulable" for taint in taints)

    wait_for(lambda: all(is_tainted(node) is is_cordoned for node in nodes), "the taints follow")


def is_ready(pod: Any) -> bool:
    """Return whether a pod is ready, and not about to go."""
    conditions = pod.status.conditions or ()
    has_condition = any(each.type == "Ready" and each.status == "True" for each in conditions)
    return has_condition and pod.metadata.deletion_timestamp is None


def keep(policy: Any, namespace: str, name: str, available: int) -> None:
    """Create a PodDisruptionBudget of a workload, and return once it is counted."""
    spec = {"minAvailable": available, "selector": {"matchLabels": {"app": name}}}
    budget = {"metadata": {"name": name}, "spec": spec}
    policy.create_namespaced_pod_disruption_budget(namespace, budget)

    def is_counted() -> bool:
        found = policy.read_namespaced_pod_disruption_budget_status(name, namespace)
        return bool(found.status and found.status.expected_pods)

    wait_for(is_counted, "the budget knows its pods")


@contextmanager
def opened(kubeconfig: Path, scheduler: str, api: Any, asked: ReserverProcess) -> Iterator[Yard]:
    """A corner of the cluster with workloads; all of it is gone afterwards."""
    corner = Corner(kubeconfig, scheduler, api)
    corner.open()
    made = Yard(corner, asked)
    try:
        yield made
    finally:
        for kind in ("deployment", "stateful_set", "daemon_set"):
            getattr(made.apps, f"delete_collection_namespaced_{kind}")(corner.name)
        made.jobs.delete_collection_namespaced_job(corner.name, propagation_policy="Background")
        corner.close()
