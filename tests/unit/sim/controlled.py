"""A store with the controllers of the embedded cluster."""

from __future__ import annotations

from typing import Any

from reserver_demo.apiserver.deletion import DeleteOptions, delete
from reserver_demo.apiserver.eviction import evict
from reserver_demo.apiserver.registry import Registry
from reserver_demo.apiserver.resources import NAMESPACE_RESOURCE, RESOURCES
from reserver_demo.apiserver.store import Key, Store
from reserver_demo.clock import rfc3339
from reserver_demo.controllers.loop import Controllers
from reserver_demo.kubelet import PodEnding, ended_status, running_status
from tests.unit.sim.clocks import ManualClock

BY_PLURAL = {resource.plural: resource for resource in RESOURCES}
LABELS = {"app": "web"}


class Cluster:
    """A store with controllers, in which a test plays scheduler and kubelet."""

    def __init__(self, history: int = 1000) -> None:
        self.clock = ManualClock()
        self.registry = Registry(Store(history), self.clock)
        self.controllers = Controllers(self.registry)
        self.registry.create(NAMESPACE_RESOURCE, "", {"metadata": {"name": "shop"}})

    def create(self, plural: str, name: str, **spec: Any) -> None:
        body = {"metadata": {"name": name}, "spec": spec}
        resource = BY_PLURAL[plural]
        self.registry.create(resource, "shop", resource.decode(body).value)
        self.controllers.settle()

    def get(self, plural: str, name: str) -> dict[str, Any]:
        return self.registry.get(BY_PLURAL[plural], Key("shop", name)).copy()

    def all(self, plural: str) -> list[dict[str, Any]]:
        return [each.copy() for each in self.registry.store.collection(plural).items()]

    def change(self, plural: str, name: str, **fields: Any) -> None:
        self.registry.update(BY_PLURAL[plural], Key("shop", name), lambda old: old | fields)
        self.controllers.settle()

    def remove(self, plural: str, name: str) -> None:
        delete(self.registry, BY_PLURAL[plural], Key("shop", name), DeleteOptions(grace=0))
        self.controllers.settle()

    def run(self, most: int = 100) -> None:
        """Bind and run so many waiting pods."""
        waiting = [pod for pod in self.all("pods") if pod["status"]["phase"] == "Pending"]
        for pod in waiting[:most]:
            pod["spec"]["nodeName"] = "worker-1"
            pod["status"] |= running_status(pod, rfc3339(self.clock.now()))
            self.registry.write(BY_PLURAL["pods"], pod, dry_run=False)
        self.controllers.settle()

    def finish(self, exit_status: int = 0, most: int = 100) -> None:
        """End so many running pods."""
        running = [pod for pod in self.all("pods") if pod["status"]["phase"] == "Running"]
        for pod in running[:most]:
            end = PodEnding(0.0, exit_status)
            pod["status"] |= ended_status(pod, end, rfc3339(self.clock.now()))
            self.registry.write(BY_PLURAL["pods"], pod, dry_run=False)
        self.controllers.settle()

    def phases(self) -> list[str]:
        """Return the phases of the pods that are not being deleted."""
        return sorted(pod["status"]["phase"] for pod in self.staying())

    def staying(self) -> list[dict[str, Any]]:
        return [pod for pod in self.all("pods") if "deletionTimestamp" not in pod["metadata"]]

    def evict(self, name: str) -> None:
        eviction = {"metadata": {"name": name}}
        evict(self.registry, Key("shop", name), eviction, DeleteOptions(grace=0))


def template(image: str = "web:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container], **spec}}


def conditions(found: dict[str, Any]) -> set[str]:
    return {each["type"] for each in found["status"].get("conditions", ())}
