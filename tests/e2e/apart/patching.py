"""Webhooks on loopback, and a namespace whose pods they patch and judge."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import AdmissionregistrationV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from hack.controlplane.kubeconfig import kubectl
from hack.reserver_process import wait_for
from reserver.k8s import credentials
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.pod_annotations import MARKS_ANNOTATION
from reserver.webhook.certificate_secret import SECRET
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECTS

pytestmark = pytest.mark.controlplane

COMPONENT = Path(__file__).parents[3] / "scheduler-config/components/webhooks"
HOME = "reserver-system"
ASKED = "e2e-asks-webhooks"


UNREADABLE = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "kubernetes.io/tls",
    "metadata": {"name": SECRET, "namespace": HOME},
    "data": {"tls.crt": "", "tls.key": ""},
}
"""A Secret for Reserver to replace at its start; after a deletion it creates a new one."""


def configurations(port: int) -> Iterator[dict[str, Any]]:
    """Yield the configurations that we ship, for a server on loopback and namespaces of ours."""
    for document in yaml.safe_load_all((COMPONENT / "configurations.yaml").read_text()):
        for hook in document["webhooks"]:
            path = hook["clientConfig"].pop("service")["path"]
            hook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
            ours = {"key": ASKED, "operator": "Exists"}
            hook["namespaceSelector"]["matchExpressions"].append(ours)
            hook["timeoutSeconds"] = 30  # A busy machine may take longer than the shipped 2.
        yield document


def dump(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


def is_trusted(api: Any, port: int) -> bool:
    admission: Any = AdmissionregistrationV1Api(api.api_client)
    (hook,) = admission.read_validating_webhook_configuration("reserver").webhooks
    return bool(hook.client_config.ca_bundle) and bool(served(port))


def served(port: int) -> str:
    """Return the certificate that the webhooks are served with; empty while there is none."""
    try:
        return ssl.get_server_certificate(("127.0.0.1", port))
    except OSError:
        return ""


class Shop:
    """A namespace that the webhooks are asked about.

    Attributes:
        corner: of the cluster, with this namespace.
    """

    def __init__(self, corner: Corner) -> None:
        self.corner = corner
        self._objects: Any = CustomObjectsApi(corner.api.api_client)
        corner.api.patch_namespace(corner.name, {"metadata": {"labels": {ASKED: "yes"}}})

    @property
    def where(self) -> tuple[str, ...]:
        return (*OBJECTS, self.corner.name, "schedpatches")

    def patch(self, name: str, count: int, **spec: Any) -> None:
        """Create a SchedPatch for pods of the service `test`, and return once it patches them.

        The API server may read the namespace's label and the webhooks later than their clients.
        """
        self.write(name, count, **spec)
        wait_for(lambda: self.reason(name) == "Patching", f"{name} is active")
        wait_for(lambda: name in self.shown_tolerations(), f"{name} patches pods")

    def write(self, name: str, count: int, **spec: Any) -> None:
        labels = {"matchLabels": {"service": "test"}}
        spec = {"selector": labels, "maxCount": count, "tolerations": [{"key": name}], **spec}
        body = {"apiVersion": "/".join(OBJECTS), "kind": "SchedPatch", "metadata": {"name": name}}
        self._objects.create_namespaced_custom_object(*self.where, {**body, "spec": spec})

    def names(self) -> list[str]:
        items = self._objects.list_namespaced_custom_object(*self.where)["items"]
        return [item["metadata"]["name"] for item in items]

    def status(self, name: str) -> dict[str, Any]:
        found = self._objects.get_namespaced_custom_object(*self.where, name)
        status: dict[str, Any] = found.get("status", {})
        return status

    def reason(self, name: str, kind: str = "Active") -> str:
        conditions = self.status(name).get("conditions", ())
        return next((each["reason"] for each in conditions if each["type"] == kind), "")

    def wait_patched(self, name: str, count: int) -> None:
        wait_for(
            lambda: self.status(name).get("patchedPods") == count,
            f"{name} says that {count} pods are patched",
        )

    def marks(self) -> Counter[str]:
        """Return how many pods have each mark."""
        return Counter(
            mark
            for pod in self.corner.api.list_namespaced_pod(self.corner.name).items
            for mark in json.loads((pod.metadata.annotations or {}).get(MARKS_ANNOTATION, "[]"))
        )

    def create(self, name: str, *, dry_run: bool = False) -> Any:
        options = {"dry_run": "All"} if dry_run else {}
        return self.corner.api.create_namespaced_pod(self.corner.name, manifest(name), **options)

    def shown_tolerations(self) -> list[str]:
        """Return the keys that a dry run shows."""
        return [each.key for each in self.create("shown", dry_run=True).spec.tolerations]

    def is_refused(self, why: str) -> bool:
        """Return whether the API server would refuse a pod for this reason."""
        try:
            self.create("shown", dry_run=True)
        except ApiException as exc:
            return why in str(exc.body)
        return False


def manifest(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"service": "test"}, **metadata},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]},
    }


def is_patched(pod: Any) -> bool:
    return MARKS_ANNOTATION in (pod.metadata.annotations or {})


async def create_at_once(kubeconfig: Path, namespace: str, count: int, query: str = "") -> None:
    path = f"/api/v1/namespaces/{namespace}/pods{query}"
    async with ApiClient(await credentials.load(kubeconfig), connections=count) as client:
        await asyncio.gather(
            *(client.create(path, manifest(f"web-{number}")) for number in range(count))
        )


def play_kubelet(corner: Corner, name: str, cpu: str) -> None:
    """Report the resources of a container as a kubelet with resize does; KWOK reports none."""
    wait_for(lambda: corner.pod(name).status.container_statuses, f"{name} runs")
    path = "/status/containerStatuses/0"
    body = [
        {"op": "add", "path": f"{path}/resources", "value": {"requests": {"cpu": cpu}}},
        {"op": "add", "path": f"{path}/allocatedResources", "value": {"cpu": cpu}},
    ]
    corner.api.patch_namespaced_pod_status(name, corner.name, body)


def resize(kubeconfig: Path, corner: Corner, cpu: str) -> str:
    """Resize a pod as a user does; return what kubectl says."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    patch = json.dumps({"spec": {"containers": [container]}})
    arguments = ("-n", corner.name, "patch", "pod", "web-0", "--subresource=resize", "-p", patch)
    try:
        return kubectl(kubeconfig, *arguments)
    except subprocess.CalledProcessError as exc:
        return str(exc.stderr)
