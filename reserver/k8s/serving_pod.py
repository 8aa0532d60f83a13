"""Finds the pod in which Reserver is ready."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

import msgspec

from reserver.errors import ApiError, NotReady
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import Metadata, WireStruct, decode

LABEL = "app.kubernetes.io/name=reserver"
"""Label of the pods of the manifests."""

STATIC_NAMESPACE = "kube-system"
"""Namespace of the static pods of the control plane."""

SERVING = "reserver.io/serving"
"""Label of the leader's pod, next to standbys (`reserver.process.leadership`)."""

COMPONENT = "app.kubernetes.io/component=extender"
"""Label of the pods of which one leads."""

GRPC_PORT = 9443
"""gRPC port in the manifests; a container port named ``grpc`` takes precedence."""

_PORT_NAME = "grpc"


class ServingPod(NamedTuple):
    """A pod that serves.

    Attributes:
        name: ``NAMESPACE/NAME``.
        port: port of its gRPC API.
    """

    name: str
    port: int


class _Port(WireStruct, frozen=True):
    name: str = ""
    container_port: int = 0


class _Container(WireStruct, frozen=True):
    ports: list[_Port] | None = None


class _Spec(WireStruct, frozen=True):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _Condition(WireStruct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(WireStruct, frozen=True):
    conditions: list[_Condition] | None = None


class _Metadata(Metadata, frozen=True):
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class _Pod(WireStruct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_ready(self) -> bool:
        conditions = self.status.conditions or ()
        ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
        return ready and self.metadata.deletion_timestamp is None

    @property
    def is_labelled(self) -> bool:
        return SERVING in (self.metadata.labels or {})

    @property
    def grpc_port(self) -> int:
        containers = [*(self.spec.init_containers or ()), *(self.spec.containers or ())]
        ports = [port for each in containers for port in each.ports or ()]
        return next((p.container_port for p in ports if p.name == _PORT_NAME), GRPC_PORT)


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Pod] = []


async def serving_pod(client: ApiClient, namespace: str) -> ServingPod:
    """Return a pod of a namespace in which Reserver is ready; of several, the first by name.

    In a Deployment with a standby only the leader has the label `SERVING`. If the namespace has no
    Reserver pod, the static pods of kube-scheduler are searched.

    Raises:
        NotReady: no pod is ready.
        ApiError: the API server did not list the pods.
    """
    pods = await _pods(client, namespace)
    if not pods and (static := await _static_pods(client)):
        namespace, pods = STATIC_NAMESPACE, static
    answering = [pod for pod in pods if pod.is_labelled] or pods
    ready = sorted(
        ServingPod(f"{namespace}/{pod.metadata.name}", pod.grpc_port)
        for pod in answering
        if pod.is_ready
    )
    if ready:
        return ready[0]
    found = f"none of {len(pods)} is ready" if pods else "no such pod"
    raise NotReady(f"no ready Reserver pod found in namespace {namespace}: {found} ({LABEL})")


async def others_are_ready(client: ApiClient, namespace: str, own: str) -> bool:
    """Return whether another replica is ready to lead, or no other replica exists.

    Raises:
        ApiError: the API server did not list the pods.
    """
    path = f"/api/v1/namespaces/{namespace}/pods"
    found = decode(_Pods, await client.get(path, {"labelSelector": COMPONENT})).items
    others = [pod for pod in found if pod.metadata.name != own]
    return not others or any(pod.is_ready for pod in others)


async def _pods(client: ApiClient, namespace: str) -> list[_Pod]:
    path = f"/api/v1/namespaces/{namespace}/pods"
    return decode(_Pods, await client.get(path, {"labelSelector": LABEL})).items


async def _static_pods(client: ApiClient) -> list[_Pod]:
    """Return the pods in `STATIC_NAMESPACE`; none for callers without rights, which are most."""
    try:
        return await _pods(client, STATIC_NAMESPACE)
    except ApiError as exc:
        if exc.status != HTTPStatus.FORBIDDEN:
            raise
        return []
