"""An API server in memory with nodes, pods and PodMoves, for `move`, `drain` and `moves`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from reserver.cli.drain import drained
from reserver.cli.output import Output
from reserver.errors import ApiError
from reserver.k8s.objects.objects import ResourceMetadata
from reserver.moves.drain import DrainOptions
from reserver.moves.manifests import SharedFields
from reserver.moves.phases import MoveMode
from reserver.moves.podmove import MoveObject, read_object
from reserver.patches.codec import PatchObject
from reserver.patches.codec import read_object as read_patch
from reserver.patches.model import SchedPatch

META: dict[str, Any] = {
    "name": "a",
    "namespace": "shop",
    "creation_timestamp": "2026-01-01T00:00:00Z",
}
MOVES = "/apis/reserver.io/v1alpha1/namespaces/shop/podmoves"
GROUPS = "/apis/reserver.io/v1alpha1/podmovegroups"
PATCHES = "/apis/reserver.io/v1alpha1/namespaces/shop/schedpatches"


class Api:
    """Nodes, pods and PodMoves; each PodMove ends at once."""

    def __init__(
        self,
        *pods: dict[str, Any],
        most: int = 99,
        phase: str = "Succeeded",
        landed: str = "worker-2",
        reason: str = "",
    ) -> None:
        self.pods = pods
        self.nodes: dict[str, Any] = {"/api/v1/nodes/worker-1": {}}
        self.moves: dict[str, dict[str, Any]] = {}
        self.others: dict[str, Any] = {}
        self.groups: list[Any] = []
        self.no_group: ApiError | None = None
        self.active = "True"
        self.patches: bool | ApiError = True
        self.patch_read: SchedPatch
        self.gone: list[str] = []
        self.most, self.phase, self.landed, self.reason = most, phase, landed, reason

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        if path == "/api/v1/pods":
            assert params == {"fieldSelector": "spec.nodeName=worker-1"}
            return json.dumps({"kind": "PodList", "items": self.pods}).encode()
        if path.endswith("/podmoves"):
            items = [each for name, each in self.moves.items() if name.startswith(f"{path}/")]
            return json.dumps({"items": items}).encode()
        if path in self.moves or path in self.others:
            return json.dumps(self.moves.get(path) or self.others[path]).encode()
        return json.dumps(self._node(path)).encode()

    async def create(self, path: str, body: object) -> bytes:
        assert isinstance(body, dict)
        if path == PATCHES:
            return self._patch(json.loads(json.dumps(body)))
        if path == "/api/v1/namespaces/shop/pods?dryRun=All":
            return self._try(body)
        if path == GROUPS:
            if self.no_group:
                raise self.no_group
            assert not self.moves, "it is written before its members"
            self.groups.append(json.loads(json.dumps(body)))
            return b"{}"
        namespace = body["metadata"]["namespace"]
        assert path == MOVES.replace("shop", namespace)
        number = len(self.moves)
        if number >= self.most:
            raise ApiError(403, "Forbidden", "exceeded quota")
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{number}"
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{number}"}
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
        made = body | {"metadata": metadata}
        made = json.loads(json.dumps(made))
        raw = msgspec.Raw(msgspec.json.encode(made["spec"]))
        # Refuses an invalid spec.
        read_object(MoveObject(metadata=ResourceMetadata(**META), spec=raw))
        status: dict[str, Any] = {"phase": self.phase, "message": "said", "to": "worker-2"}
        status["reason"] = self.reason
        status["replacement"] = {"node": self.landed}
        self.moves[f"{path}/{name}"] = made | {"status": status}
        return json.dumps(made).encode()

    async def patch(self, path: str, body: object) -> bytes:
        assert isinstance(body, dict)
        if body["spec"] == {"paused": False}:
            assert self.others.keys() & {f"{PATCHES}/web-0-0"}, "it goes on without its patch"
        there = self.moves[path] if path in self.moves else self._node(path)
        there.setdefault("spec", {}).update(body["spec"])
        return json.dumps(there).encode()

    async def delete(self, path: str, options: object) -> bytes:
        self.gone.append(path)
        if path in self.others:
            del self.others[path]
            return b"{}"
        assert options == {"preconditions": {"uid": self.moves[path]["metadata"]["uid"]}}
        del self.moves[path]
        return b"{}"

    def _patch(self, body: dict[str, Any]) -> bytes:
        metadata = ResourceMetadata(namespace="shop", creation_timestamp=META["creation_timestamp"])
        raw = msgspec.Raw(msgspec.json.encode(body["spec"]))
        self.patch_read = read_patch(PatchObject(metadata=metadata, spec=raw))
        active = {"type": "Active", "status": self.active, "reason": "Said", "message": "so"}
        path = f"{PATCHES}/{body['metadata']['name']}"
        self.others[path] = body | {"status": {"conditions": [active]}}
        return b"{}"

    def _try(self, pod: dict[str, Any]) -> bytes:
        """Return a pod as webhooks change it, or refuse the pod."""
        assert set(pod["metadata"]) == {"labels", "generateName"}
        assert set(pod["spec"]) == {"containers"}
        if isinstance(self.patches, ApiError):
            raise self.patches
        affinity = {"affinity": self.patch_read.injected.affinity} if self.patches else {}
        return json.dumps(pod | {"spec": pod["spec"] | affinity}).encode()

    def _node(self, path: str) -> dict[str, Any]:
        if path not in self.nodes:
            raise ApiError(404, "NotFound", f'"{path.rpartition("/")[2]}" not found')
        found: dict[str, Any] = self.nodes[path]
        return found


def drain(api: Api, allowed: DrainOptions = DrainOptions(), **flags: Any) -> None:  # noqa: B008 - frozen
    given = {"wait": True, "dry_run": False} | flags
    form = given.pop("form", Output.TABLE)
    terms = SharedFields(timeout="5m", mode=given.pop("mode", MoveMode.RESERVE_FIRST))
    asyncio.run(drained(api, "worker-1", allowed, terms, form, **given))


def specs(api: Api) -> list[dict[str, Any]]:
    return [each["spec"] for each in api.moves.values()]
