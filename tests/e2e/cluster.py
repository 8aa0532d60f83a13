"""A corner of a cluster for one test: nodes, a namespace and reservations of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml
from kubernetes.client.exceptions import ApiException

from hack.controlplane.kubeconfig import kubectl
from hack.controlplane.nodes import is_schedulable, manifest
from hack.reserver_process import wait_for
from tests.e2e.forms import CONFIG_MAP_FORMS, OBJECTS, SPEC, STORE, Form
from tests.e2e.reservations import WrittenReservations

GROUP = "reserver.io/e2e"

SYSTEM = "kube-system"


HELD = ("held by reservation ", "held by a reservation of another namespace")
"""Parts of the messages that refuse a node because of a hold."""

CLOSED = {"key": "e2e", "value": "closed", "effect": "NoSchedule"}
"""A taint that no pod tolerates."""


@dataclass
class Corner(WrittenReservations):
    """A corner of a cluster for one test.

    Attributes:
        name: of the namespace, and the label value of its nodes.
    """

    kubeconfig: Path
    scheduler: str
    api: Any  # kubernetes.client.CoreV1Api; its types do not know that bodies may be dicts
    name: str = field(default_factory=lambda: f"e2e-{uuid4().hex[:8]}")
    nodes: list[str] = field(default_factory=list)
    _queued: dict[str, str | None] = field(default_factory=dict)

    def open(self) -> None:
        self.api.create_namespace({"metadata": {"name": self.name}})
        wait_for(self._pods_are_welcome, "the namespace takes pods")

    def close(self) -> None:
        """Delete the objects of the test; holds before their nodes.

        A hold whose node is gone is an event, and a store has 25 in ten minutes, for all tests.
        """
        self.api.delete_collection_namespaced_pod(self.name, grace_period_seconds=0)
        self.api.delete_namespace(self.name)
        # No controller empties the namespace; what waits there would take the next test's place.
        where = (*OBJECTS, self.name, "reservations")
        self._objects.delete_collection_namespaced_custom_object(*where)
        self._delete_objects(STORE[0])
        for store in {form.store for form in CONFIG_MAP_FORMS}:
            keys = self.keys(store)
            mine = [key for key in keys if self.name in key or self.name in keys[key]]
            if mine:
                self.patch_store(store, dict.fromkeys(mine))
        for node in self.nodes:
            self.api.delete_node(node)

    def add_nodes(self, count: int, cpu: str = "4", *, prefix: str = "", **room: Any) -> list[str]:
        """Create nodes with so much room and return their names once pods can land there."""
        prefix = prefix or f"{self.name}-w{len(self.nodes)}"
        added = [f"{prefix}-{number}" for number in range(1, count + 1)]
        has = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        has |= {resource: str(amount) for resource, amount in room.items()}
        for name in added:
            self.api.create_node(manifest(name, has, {GROUP: self.name}))
        self.nodes += added
        wait_for(lambda: self._open_nodes() >= set(added), "pods can land on the nodes")
        return added

    def _open_nodes(self) -> set[str]:
        mine = {"label_selector": f"{GROUP}={self.name}", "resource_version": "0"}
        nodes = json.loads(self.api.list_node(**mine, _preload_content=False).data)["items"]
        return {node["metadata"]["name"] for node in nodes if is_schedulable(node)}

    def taint(self, node: str, *others: str, taint: Mapping[str, str] = CLOSED) -> dict[str, str]:
        """Taint a node; return a selector of nodes whose taints kube-scheduler has read.

        One write has label and taint, and the other nodes get their label after it.
        """
        offered = {"metadata": {"labels": {"offered": "yes"}}}
        self.api.patch_node(node, {**offered, "spec": {"taints": [taint]}})
        for other in others:
            self.api.patch_node(other, offered)
        return {GROUP: self.name, "offered": "yes"}

    # Pods

    def run_agent(self, cpu: str) -> str:
        """Have a pod of the system bound, in kube-system; return its node."""
        priority = "system-node-critical"
        self.create_pod(self.name, {"cpu": cpu}, namespace=SYSTEM, priorityClassName=priority)

        def bound() -> str | None:
            node: str | None = self.api.read_namespaced_pod(self.name, SYSTEM).spec.node_name
            return node

        node: str = wait_for(bound, "the agent is bound")
        return node

    def stop_agent(self) -> None:
        """Delete the pod of `run_agent`."""
        self.api.delete_namespaced_pod(self.name, SYSTEM, grace_period_seconds=0)

    def create_pod(
        self,
        name: str,
        requests: Mapping[str, str],
        namespace: Any = "",
        labels: Any = None,
        **spec: Any,
    ) -> None:
        # Extended resources are requested by their limit.
        limits = {key: value for key, value in requests.items() if "/" in key}
        resources = {"requests": dict(requests), "limits": limits}
        container = {"name": "main", "image": "none", "resources": resources}
        body = {
            "metadata": {"name": name, "labels": dict(labels or {})},
            "spec": {
                "schedulerName": self.scheduler,
                "nodeSelector": {GROUP: self.name},
                "containers": [container],
                **spec,
            },
        }
        self.api.create_namespaced_pod(namespace or self.name, body)

    def delete_pod(self, name: str) -> None:
        """Delete a pod and return once it is gone."""
        self.api.delete_namespaced_pod(name, self.name, grace_period_seconds=0)
        wait_for(lambda: name not in self.pod_names(), f"{name} is gone")

    def pod_names(self) -> list[str]:
        return [pod.metadata.name for pod in self.api.list_namespaced_pod(self.name).items]

    def pod(self, name: str) -> Any:
        return self.api.read_namespaced_pod(name, self.name)

    def node_of(self, name: str) -> str | None:
        node: str | None = self.pod(name).spec.node_name
        return node

    def wait_bound(self, name: str, seconds: float = 90) -> str:
        node: str = wait_for(lambda: self.node_of(name), f"{name} is bound", seconds)
        return node

    def wait_refused(self, name: str, words: str = "") -> str:
        """Return kube-scheduler's message for a pod that it could not place."""

        def message() -> str | None:
            for condition in self.pod(name).status.conditions or ():
                is_refusal = condition.type == "PodScheduled" and condition.status == "False"
                if is_refusal and words in condition.message:
                    return str(condition.message)
            return None

        text: str = wait_for(message, f"{name} is refused with {words!r}")
        return text

    def events(self, reason: str, namespace: str | None = None) -> list[str]:
        selector = f"reason={reason}"
        events = self.api.list_namespaced_event(namespace or self.name, field_selector=selector)
        return [event.message for event in events.items]

    # Reservations

    def reserve(
        self,
        form: Form,
        node: str,
        pod: str,
        *,
        expires_in: float = 600,
        namespace: str | None = None,
        more: str = "",
        **resources: Any,
    ) -> str:
        """Write a pod's reservation as a manager does; return its data key, or its object's name.

        `more` is further YAML of the spec.
        """
        if form.is_list:
            resources.setdefault("memory", "0")
        arguments = (node, pod, namespace or self.name, time.time() + expires_in)
        text = form.write(*arguments, **resources) + more
        if form.is_object:
            return self.write_object(f"{node}.{pod}", yaml.safe_load(text), namespace)
        if not form.is_list:
            key = f"{node}.{pod}"
            self.patch_store(form.store, {key: text})
            return key
        while True:  # As a careful manager: read, add, write if nobody wrote in between.
            configmap = self.api.read_namespaced_config_map(form.store[1], form.store[0])
            items = json.loads((configmap.data or {}).get(node) or "[]")
            others = [item for item in items if pod not in item.values()]
            data = {node: json.dumps([*others, json.loads(text)])}
            version = configmap.metadata.resource_version
            with suppress(ApiException):
                self.patch_store(form.store, data, version)
                return node

    def wait_held(self, node: str, cpu: str = "") -> None:
        """Return once Reserver refuses a node to a pod of `cpu`, or of all its CPUs."""
        cpu = cpu or self.api.read_node(node).status.allocatable["cpu"]
        wait_for(partial(self._is_held, node, cpu), f"a hold keeps a pod from {node}", 180)

    def _is_held(self, node: str, cpu: str) -> bool:
        """Create a probe pod; before the hold is in force it is bound, and then deleted.

        After an API server restart, kube-scheduler may not yet see the node.
        """
        name = f"probe-{uuid4().hex[:8]}"  # Of its own each time: KWOK ends pods by name.
        self.create_pod(name, {"cpu": cpu}, affinity=on_node(node))
        verdict = wait_for(partial(self._judgement, name), f"{name} is judged")
        self.delete_pod(name)
        return any(words in verdict for words in HELD)

    def _judgement(self, pod: str) -> str | None:
        """Return where a pod was bound or why it was refused, None until either."""
        judged = self.pod(pod)
        refusals = [c.message for c in judged.status.conditions or () if c.status == "False"]
        return judged.spec.node_name or next(iter(refusals), None)

    def queue_reservation(self, node: str, pod: str, **resources: str) -> None:
        """Prepare a reservation in the spec form, to be written with others in one edit."""
        arguments = (node, pod, self.name, time.time() + 600)
        self._queued[f"{node}.{pod}"] = SPEC.write(*arguments, **resources)

    def write_queued(self) -> None:
        self.patch_store(SPEC.store, self._queued)
        self._queued.clear()

    def _pods_are_welcome(self) -> bool:
        return takes_pods(self.api, self.name)


def takes_pods(api: Any, namespace: str) -> bool:
    """Return whether a namespace has the service account that pods get."""
    with suppress(ApiException):
        api.read_namespaced_service_account("default", namespace)
        return True
    return False


@contextmanager
def shop(api: Any, kubeconfig: Path, labels: Mapping[str, str]) -> Iterator[None]:
    """Create the namespace of the pages.

    It is emptied at the end, and not deleted: no controller would end that.
    """
    with suppress(ApiException):
        api.create_namespace({"metadata": {"name": "shop"}})
    api.patch_namespace("shop", {"metadata": {"labels": dict(labels)}})
    wait_for(partial(takes_pods, api, "shop"), "the namespace takes pods")
    yield
    api.patch_namespace("shop", {"metadata": {"labels": dict.fromkeys(labels)}})
    kinds = "deployments,jobs,pods,reservations,reservationquotas,podmoves"
    kubectl(kubeconfig, "delete", kinds, "--all", "--namespace=shop", "--wait=false", "--force")


def on_node(node: str) -> dict[str, Any]:
    """Return the affinity of a pod that may land on one node only, as DaemonSets have it."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
