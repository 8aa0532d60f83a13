"""The API server of the tests of moves, in memory."""

import itertools
import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from reserver.errors import ApiError
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.objects.objects import encode
from reserver.k8s.objects.times import show_moment
from reserver.k8s.watch.back_in_time import EtcdCheck
from reserver.moves import podmove
from reserver.stores.object import codec as reservation
from tests.unit.k8s.crashes import Writes

NOW = 1_900_000_000.0
PODS = "/api/v1/namespaces/shop/pods"
CLAIMS = "/api/v1/namespaces/shop/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
MOVES = podmove.collection("shop")
SEATS = reservation.collection("shop")
SETS = "/apis/apps/v1/namespaces/shop/replicasets"
Document = dict[str, Any]


class Api(ApiClient):
    """An API server in memory.

    Attributes:
        objects: the stored objects, by path.
        events: the events that no watch has shown yet: collection, type and object.
        written: the writes, and the write at which Reserver is killed.
        no_pods: the error that answers the creation of a copy; None creates the copy.
        refusals: the errors of the next evictions, in turn; later evictions are carried out.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Document] = {}
        self.events: list[tuple[str, str, Document]] = []
        self.written = Writes()
        self.refusals: list[ApiError] = []
        self.no_pods: ApiError | None = None
        self._revisions = itertools.count(1)
        self.now = NOW

    @property
    def writes(self) -> list[str]:
        """The paths of the writes, in order."""
        return self.written.paths

    def put(self, collection: str, document: Document, kind: str = "MODIFIED") -> Document:
        """Store an object, and queue its event for the watches."""
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(next(self._revisions))
        path = f"{collection}/{metadata['name']}"
        self.objects[path] = document
        self.events.append((collection, kind, deepcopy(document)))
        return document

    def add(self, collection: str, document: Document) -> Document:
        metadata = document["metadata"]
        metadata.setdefault("uid", f"uid-{next(self._revisions)}-{metadata['name']}")
        metadata |= {"creationTimestamp": show_moment(self.now), "generation": 1}
        return self.put(collection, document, "ADDED")

    def remove(self, path: str) -> None:
        document = self.objects.pop(path)
        document["metadata"]["resourceVersion"] = str(next(self._revisions))
        self.events.append((path.rpartition("/")[0], "DELETED", document))

    def of(self, collection: str) -> list[Document]:
        return [
            each for path, each in self.objects.items() if path.rpartition("/")[0] == collection
        ]

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        assert params is None
        return encode(self._there(path))

    async def create(self, path: str, body: object) -> bytes:
        if path.endswith("/events"):
            return b"{}"
        document: Document = json.loads(encode(body))
        if path.endswith("/eviction"):
            return self._write(path, lambda: self._evict(path.removesuffix("/eviction"), document))
        if f"{path}/{document['metadata']['name']}" in self.objects:
            raise ApiError(409, "AlreadyExists", "it is there")
        if path == PODS and self.no_pods is not None:
            raise self.no_pods
        return self._write(path, lambda: self.add(path, document | {"status": {}}))

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        assert content_type == MERGE_PATCH
        patch: Document = json.loads(encode(body))
        path = path.removesuffix("/status")
        if path.startswith(PODS):
            return self._patch_pod(path, patch["metadata"])
        there = deepcopy(self._there(path))
        if patch["metadata"]["resourceVersion"] != there["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "it was written meanwhile")
        merged = {**there.get("status", {}), **patch["status"]}
        there["status"] = {name: value for name, value in merged.items() if value is not None}
        return self._write(path, lambda: self.put(path.rpartition("/")[0], there))

    def _patch_pod(self, path: str, patch: Document) -> bytes:
        there = deepcopy(self._there(path))
        metadata = there["metadata"]
        if patch.pop("resourceVersion") != metadata["resourceVersion"]:
            raise ApiError(409, "Conflict", "it was written meanwhile")
        for name, value in patch.items():
            merged = {**metadata.get(name, {}), **value} if isinstance(value, dict) else value
            if isinstance(merged, dict):
                merged = {key: each for key, each in merged.items() if each is not None}
            metadata[name] = merged
        return self._write(path, lambda: self.put(PODS, there))

    async def delete(self, path: str, options: object) -> bytes:
        assert options["preconditions"]["uid"] == self._there(path)["metadata"]["uid"]  # type: ignore[index]
        return self._write(path, lambda: self.remove(path))

    def _there(self, path: str) -> Document:
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        return self.objects[path]

    def _write(self, path: str, carry_out: Any) -> bytes:
        return encode(self.written.carry_out(path, carry_out) or {})

    def _evict(self, path: str, eviction: Document) -> None:
        pod = self._there(path)
        assert eviction["deleteOptions"]["preconditions"]["uid"] == pod["metadata"]["uid"]
        if self.refusals:
            raise self.refusals.pop(0)
        held = [
            part["node"]
            for seat in self.of(SEATS)
            for part in seat["status"].get("placements", ())
            if seat["spec"]["owners"][0]["replaces"]["uid"] == pod["metadata"]["uid"]
            and seat["status"]["phase"] == "Active"
        ]
        assert held, "evicted without a seat"
        assert pod["spec"]["nodeName"] not in held
        self.remove(path)


class SteadyEtcd(EtcdCheck):
    """An etcd that is never replaced.

    A real check needs a watch to show deletions, and watches wait for the next round.
    """

    async def agrees(self, *_: object) -> bool:
        return True
