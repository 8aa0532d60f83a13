"""The calls about capacity of the synchronous client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from reserver.client import messages
from reserver.client.capacity import (
    HoldAccount,
    NamespaceQuota,
    NodeCapacity,
    Verdict,
    list_accounts,
    read_accounts,
    read_explanation,
    read_verdict,
    what_if,
)
from reserver.client.connection import SyncConnection
from reserver.client.values import Spec
from reserver.v1 import capacity_pb2 as pb
from reserver.v1.capacity_pb2_grpc import CapacityServiceStub


class SyncCapacity:
    """The calls about capacity, which change nothing; as `Capacity`, blocking."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection
        self._stub: Any = CapacityServiceStub(connection.channel)

    def nodes(
        self, names: Sequence[str] = (), slot: Mapping[str, str] | None = None
    ) -> Iterator[NodeCapacity]:
        """Yield the capacity of nodes, ordered by name; as `Capacity.nodes`.

        Raises:
            CallFailed: it cannot be read.
        """
        request = pb.ListNodesRequest(node_names=names, slot=slot or {})
        for page in self._connection.pages(self._stub.ListNodes, request):
            for node in page.nodes:
                yield messages.read(node, NodeCapacity)

    def quotas(self, namespace: str = "") -> Iterator[NamespaceQuota]:
        """Yield what a namespace, or each, may hold and holds, ordered by namespace and name.

        Raises:
            CallFailed: it cannot be read.
        """
        request = pb.ListQuotasRequest(namespace=namespace)
        for page in self._connection.pages(self._stub.ListQuotas, request):
            for each in page.quotas:
                yield messages.read(each, NamespaceQuota)

    def accounts(
        self, namespace: str = "", *, since: datetime | None = None
    ) -> Iterator[HoldAccount]:
        """Yield what was held, ordered by week, namespace, owner and resource.

        Raises:
            CallFailed: it cannot be read.
        """
        request = list_accounts(namespace, since)
        for page in self._connection.pages(self._stub.ListAccounts, request):
            yield from read_accounts(page)

    def what_if(self, specs: Sequence[Spec], namespace: str = "") -> Verdict:
        """Return whether `create_set` would create a set at this instant, in a namespace.

        Raises:
            CallFailed: it cannot be said, or a spec is not acceptable.
        """
        return read_verdict(self._connection.call(self._stub.WhatIf, what_if(specs, namespace)))

    def dump(self) -> bytes:
        """Return how the process is that answers, as JSON for a bug report, without secrets.

        Raises:
            CallFailed: it cannot be read.
        """
        answer: pb.DumpResponse = self._connection.call(self._stub.Dump, pb.DumpRequest())
        return answer.document

    def explain(self, namespace: str, pod: str) -> dict[str, Any]:
        """Return why a pod is pending, or where it may go, as ``GET /explain`` answers.

        Raises:
            CallFailed: ``NOT_FOUND`` if there is no such pod.
        """
        request = pb.ExplainRequest(pod_namespace=namespace, pod_name=pod)
        return read_explanation(self._connection.call(self._stub.Explain, request))
