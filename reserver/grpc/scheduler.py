"""SchedulerService: the extender's decisions for schedulers with a gRPC client."""

from __future__ import annotations

from typing import Any

import grpc

from reserver.errors import InvalidInput, under
from reserver.extender.handlers import Extender
from reserver.extender.protocol import ExtenderBindingArgs
from reserver.grpc.status_errors import CallError
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.v1 import scheduler_pb2 as pb
from reserver.v1.scheduler_pb2_grpc import SchedulerServiceServicer

Aio = grpc.aio.ServicerContext[Any, Any]


class SchedulerServicer(SchedulerServiceServicer):
    """SchedulerService on an extender."""

    def __init__(self, extender: Extender) -> None:
        self._extender = extender

    async def Filter(self, request: pb.FilterRequest, context: Aio) -> pb.FilterResponse:  # noqa: ARG002, N802
        """Return the nodes on which a pod fits."""
        await self._extender.advanced()
        verdict = self._extender.filter(_pod(request.pod).value(), list(request.node_names))
        return pb.FilterResponse(node_names=verdict.nodes, refused=verdict.refused)

    async def Reserve(self, request: pb.ReserveRequest, context: Aio) -> pb.ReserveResponse:  # noqa: ARG002, N802
        """Assume a pod on a node, and return the reservations that it claims."""
        verdict = await self._extender.bindings.reserve(_args(request))
        if verdict.refusal is not None:
            raise _refused(verdict.refusal)
        return pb.ReserveResponse(claims=verdict.claims)

    async def Unreserve(self, request: pb.UnreserveRequest, context: Aio) -> pb.UnreserveResponse:  # noqa: ARG002, N802
        """Undo a Reserve."""
        self._extender.bindings.unreserve(request.pod_uid)
        return pb.UnreserveResponse()

    async def Preempt(self, request: pb.PreemptRequest, context: Aio) -> pb.PreemptResponse:  # noqa: ARG002, N802
        """Return the nodes on which the pod fits after the evictions."""
        victims = {node: tuple(each.pod_uids) for node, each in request.victims.items()}
        verdict = await self._extender.preempt(_pod(request.pod).value(), victims)
        return pb.PreemptResponse(node_names=verdict.nodes)

    async def Bind(self, request: pb.BindRequest, context: Aio) -> pb.BindResponse:  # noqa: ARG002, N802
        """Bind a pod."""
        verdict = await self._extender.bindings.bind(_args(request))
        if verdict.refusal is not None:
            raise _refused(verdict.refusal)
        return pb.BindResponse()


def _pod(sent: bytes) -> PodObject:
    with under("pod"):
        pod = decode(PodObject, sent)
    if not (pod.metadata.name and pod.metadata.namespace):
        raise InvalidInput("pod.metadata", "lacks name or namespace", "send the whole pod")
    return pod


def _args(request: pb.ReserveRequest | pb.BindRequest) -> ExtenderBindingArgs:
    values = {
        "podNamespace": request.pod_namespace,
        "podName": request.pod_name,
        "podUid": request.pod_uid,
        "node": request.node,
    }
    for name, value in values.items():
        if not value:
            raise InvalidInput(name, "is empty", "name the pod and its node")
    return ExtenderBindingArgs(
        request.pod_name, request.pod_namespace, request.pod_uid, request.node
    )


def _refused(why: str) -> CallError:
    return CallError(grpc.StatusCode.FAILED_PRECONDITION, "NOT_BOUND", why)
