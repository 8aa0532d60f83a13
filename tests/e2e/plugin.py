"""The calls of a scheduler-framework plugin, over gRPC."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.curl import Curl, Refused

pytestmark = pytest.mark.controlplane

NOBODY = "nobody"
"""A scheduler that does not run: its pods are for these tests to place."""


class Plugin:
    """The calls of a scheduler-framework plugin for a real pod."""

    def __init__(self, corner: Corner, curl: Curl, name: str, cpu: str, **spec: Any) -> None:
        corner.create_pod(name, {"cpu": cpu}, schedulerName=NOBODY, **spec)
        api = corner.api.api_client
        self._curl = curl
        self.pod = api.sanitize_for_serialization(corner.pod(name))
        self.uid = self.pod["metadata"]["uid"]
        asked = {"pod_namespace": corner.name, "pod_name": name}
        wait_for(lambda: _explained(curl, asked), f"reserver sees {name}")

    def place(self, node: str) -> dict[str, str]:
        metadata = self.pod["metadata"]
        name = {"pod_namespace": metadata["namespace"], "pod_name": metadata["name"]}
        return {**name, "pod_uid": self.uid, "node": node}

    @property
    def sent(self) -> str:
        """The pod, as JSON has bytes."""
        return base64.b64encode(json.dumps(self.pod).encode()).decode()

    def filter(self, nodes: list[str]) -> Any:
        return self._curl.call("SchedulerService/Filter", pod=self.sent, node_names=nodes)

    def reserve(self, node: str) -> Any:
        return self._curl.call("SchedulerService/Reserve", **self.place(node))

    def unreserve(self) -> Any:
        return self._curl.call("SchedulerService/Unreserve", pod_uid=self.uid)

    def bind(self, node: str) -> Any:
        return self._curl.call("SchedulerService/Bind", **self.place(node))

    def preempt(self, victims: dict[str, list[str]]) -> list[str]:
        """Return on which nodes it is of use to evict these, by UID."""
        by_node = {node: {"pod_uids": uids} for node, uids in victims.items()}
        answer = self._curl.call("SchedulerService/Preempt", pod=self.sent, victims=by_node)
        return list(answer.get("node_names", ()))


def _explained(curl: Curl, asked: dict[str, str]) -> bool:
    try:
        curl.call("CapacityService/Explain", **asked)
    except Refused:
        return False
    return True
