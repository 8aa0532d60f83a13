"""ProvisioningRequests and their pods on the embedded cluster."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp

from reserver import app
from reserver.settings.serve import Settings
from reserver_demo.apiserver import resources
from reserver_demo.apiserver.resource import Resource
from reserver_demo.cluster import EmbeddedCluster
from tests.waiting import until, until_answered

REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/shop/provisioningrequests"
RESERVATIONS = "/apis/reserver.io/v1alpha1/namespaces/shop/reservations"
TEMPLATES = "/api/v1/namespaces/shop/podtemplates"


def pod_templates() -> Resource:
    """Return PodTemplates, as far as they are read."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"template": anything}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "PodTemplate", "plural": "podtemplates"}
    spec = {"group": "", "scope": "Namespaced", "names": names, "versions": [version]}
    return resources._custom({"spec": spec})


class Shop:
    """A namespace with requests, in a cluster of two nodes of four cores."""

    def __init__(self, cluster: EmbeddedCluster, kubeconfig: Path) -> None:
        self.cluster = cluster
        self.kubeconfig = kubeconfig

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(await self.cluster.client.send(method, path, body))

    async def template(self, name: str = "worker", cpu: str = "1", **spec: Any) -> None:
        asks = {"requests": {"cpu": cpu}}
        template = {"spec": {"containers": [{"name": "main", "resources": asks}], **spec}}
        body = {"metadata": {"name": name}, "template": template}
        await self.send("POST", TEMPLATES, body)

    async def request(
        self, name: str = "job", *, worker: int = 3, of_class: str = "hold.reserver.io", **more: Any
    ) -> None:
        counts = {"worker": worker, **more.pop("others", {})}
        pod_sets = [
            {"podTemplateRef": {"name": template}, "count": count}
            for template, count in counts.items()
        ]
        spec = {"provisioningClassName": of_class, "podSets": pod_sets, "parameters": more}
        await self.send("POST", REQUESTS, {"metadata": {"name": name}, "spec": spec})

    async def conditions(self, name: str = "job") -> dict[str, Any]:
        found = await self.send("GET", f"{REQUESTS}/{name}")
        return {each["type"]: each for each in found.get("status", {}).get("conditions", ())}

    async def until(self, kind: str, reason: str, name: str = "job", status: str = "True") -> Any:
        """Return a condition once it has a reason."""
        found: dict[str, Any] = {}
        try:
            async with asyncio.timeout(20):
                while True:
                    found = await self.conditions(name)
                    here = found.get(kind, {})
                    if (here.get("status"), here.get("reason")) == (status, reason):
                        return here
                    await asyncio.sleep(0)
        except TimeoutError as exc:
            raise AssertionError(found) from exc

    async def reservations(self) -> dict[str, Any]:
        items = (await self.send("GET", RESERVATIONS))["items"]
        return {item["metadata"]["name"]: item for item in items}

    async def until_reservations(self, is_right: Callable[[dict[str, Any]], bool]) -> None:
        async def is_so() -> bool:
            return is_right(await self.reservations())

        await until_answered(is_so)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[app.Running]:
        settings = Settings(
            kubeconfig=self.kubeconfig,
            http_port=0,
            provisioning_requests=True,
            tenant_ceiling_cluster="none",
        )
        async with app.running(settings) as running:
            await until(lambda: running.assembly.is_ready)
            yield running


def pod(name: str, cpu: str = "1", **annotations: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "shop", "uid": name, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [container]}, "status": {}}


async def may_go(running: app.Running, asking: dict[str, Any]) -> set[str]:
    """Return the nodes that Filter leaves a pod."""
    call = {"Pod": asking, "NodeNames": ["worker-1", "worker-2"]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{running.url}/filter", json=call) as answer,
    ):
        return set((await answer.json(content_type=None))["NodeNames"])
