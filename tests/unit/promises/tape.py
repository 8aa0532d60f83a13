"""A recorded history, made by hand: each call is a write, 0.01 s after the one before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from hack.promises.check import Report, Rules, judge
from hack.promises.history import History, history_of

NOW = 1_900_000_000.0
STORE = "reserver-system/holds"
LIST_STORE = "unicore/reservation"
SCHEDULER = "reserver-scheduler"
_STEP_S = 0.01


def claiming(*refs: str) -> dict[str, str]:
    """Return the annotation of a pod that claims the reservations at some refs."""
    return {"reserver.io/claims": json.dumps([f"{ref}@0123456789abcdef" for ref in refs])}


def rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Tape:
    """Writes that a recorder has seen, and the manager's log of its own writes."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.manager: list[dict[str, Any]] = []
        self.now = NOW
        self.revision = 100
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}

    # Time

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def report(self, *, account: bool = True, **rules: Any) -> Report:
        return judge(self.history(account=account), self.rules(**rules))

    @staticmethod
    def rules(**rules: Any) -> Rules:
        return Rules(schedulers=frozenset({SCHEDULER}), **rules)

    def history(self, *, account: bool = True) -> History:
        end = {"at": self.now, "collection": "", "type": "END", "object": {}}
        return history_of([*self.records, end], self.manager if account else None)

    def kinds(self, **rules: Any) -> list[str]:
        return [str(violation.kind) for violation in self.report(**rules).violations]

    # Nodes and pods

    def node(self, name: str, cpu: str = "4", **allocatable: str) -> None:
        offered = {"cpu": cpu, "memory": "8Gi", "pods": "110", **allocatable}
        body = {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": offered}}
        self._write("nodes", f"/{name}", body)

    def pod(  # noqa: PLR0913 - the fields of a pod
        self,
        name: str,
        cpu: str = "1",
        *,
        maker: str = "",
        kind: str = "ReplicaSet",
        version: str = "apps/v1",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """Write a pod; `maker` is the name of its controller, of a kind."""
        requests = {"requests": {"cpu": cpu}}
        metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
        metadata["uid"] = f"{name}-{self.revision}"
        metadata["creationTimestamp"] = rfc3339(self.now)
        if maker:
            other = {"kind": "ReplicaSet", "name": "other"}
            reference = {"apiVersion": version, "kind": kind, "name": maker, "controller": True}
            metadata["ownerReferences"] = [other, reference]
        body = {
            "metadata": {
                **metadata,
                "labels": dict(labels or {}),
                "annotations": dict(annotations or {}),
            },
            "spec": {
                "schedulerName": SCHEDULER,
                "containers": [{"name": "main", "resources": requests}],
                **spec,
            },
            "status": {"phase": "Pending"},
        }
        self._write("pods", f"shop/{name}", body)

    def bind(self, name: str, node: str, *claims: str) -> None:
        body = self._objects["pods", f"shop/{name}"]
        if claims:
            body["metadata"]["annotations"] |= claiming(*claims)
        body["spec"]["nodeName"] = node
        body["status"] = {"phase": "Running"}
        self._write("pods", f"shop/{name}", body)

    def land(self, name: str, node: str, *claims: str, **pod: Any) -> None:
        self.pod(name, **pod)
        self.bind(name, node, *claims)

    def label(self, name: str, **labels: str) -> None:
        body = self._objects["pods", f"shop/{name}"]
        body["metadata"]["labels"] = labels
        self._write("pods", f"shop/{name}", body)

    def refuse(self, name: str, *refs: str) -> None:
        held = [f"1 held by reservation {ref}" for ref in refs]
        message = f"0/3 nodes are available: {', '.join([*held, '1 Insufficient cpu'])}."
        condition = {"type": "PodScheduled", "status": "False", "message": message}
        body = self._objects["pods", f"shop/{name}"]
        body["status"] = {**body["status"], "conditions": [condition]}
        self._write("pods", f"shop/{name}", body)

    def finish(self, name: str) -> None:
        body = self._objects["pods", f"shop/{name}"]
        body["status"] = {"phase": "Succeeded"}
        self._write("pods", f"shop/{name}", body)

    def recall(self, name: str) -> None:
        body = self._objects["pods", f"shop/{name}"]
        body["metadata"]["deletionTimestamp"] = rfc3339(self.now)
        self._write("pods", f"shop/{name}", body)

    def delete(self, name: str) -> None:
        self._delete("pods", f"shop/{name}")

    # The store

    def entry(
        self, *owners: str, node: str = "n", cpu: str = "2", lives_s: float = 3600, **more: Any
    ) -> str:
        names = [{"pod": {"name": owner, "namespace": "shop"}} for owner in owners]
        spec = {"owners": names, "node": node, "resources": {"cpu": cpu}}
        return json.dumps({**spec, "expiresAt": rfc3339(self.now + lives_s), **more})

    def reserve(self, owner: str, key: str = "", **entry: Any) -> str:
        """Write a reservation, let time pass, and return its ref."""
        key = key or f"hold-{owner}"
        self.put(key, self.entry(owner, **entry))
        self.wait(5)
        return f"{STORE}/{key}"

    def put(self, key: str, value: str, configmap: str = STORE) -> None:
        """Write a data key as the manager does."""
        self.edit({key: value}, configmap)
        self._account("put", configmap, key, value)

    def remove(self, key: str, configmap: str = STORE) -> None:
        """Remove a data key as the manager does."""
        self.edit({key: None}, configmap)
        self._account("remove", configmap, key)

    def edit(self, data: Mapping[str, str | None], configmap: str = STORE) -> None:
        """Write data keys as another client than the manager."""
        namespace, name = configmap.split("/")
        empty = {"metadata": {"namespace": namespace, "name": name}, "data": {}}
        body = self._objects.get(("configmaps", configmap), empty)
        merged = {**body["data"], **data}
        body["data"] = {key: text for key, text in merged.items() if text is not None}
        self._write("configmaps", configmap, body)

    def drop_store(self, configmap: str = STORE) -> None:
        self._delete("configmaps", configmap)

    # Gaps of the recorder

    def outage(self, seconds: float) -> None:
        since = self.now
        self.wait(seconds)
        self._record("", "OUTAGE", {"since": since})

    def miss(self, collection: str, since_revision: int, gone: Iterable[str] = ()) -> None:
        """Remove the records of a collection after a revision, and list the collection anew."""
        missed = [
            record
            for record in self.records
            if record["collection"] == collection
            and int(record["object"]["metadata"]["resourceVersion"]) > since_revision
        ]
        self.records = [record for record in self.records if record not in missed]
        gap = {"since": str(since_revision), "gone": list(gone)}
        self._record(
            collection, "GAP", {"metadata": {"resourceVersion": str(self.revision)}, **gap}
        )
        latest = {r["object"]["metadata"]["name"]: r for r in missed if r["type"] != "DELETED"}
        for record in latest.values():
            self._record(collection, "LISTED", record["object"])

    def _write(self, collection: str, name: str, body: dict[str, Any]) -> None:
        kind = "MODIFIED" if (collection, name) in self._objects else "ADDED"
        self._objects[collection, name] = body
        self._record(collection, kind, self._revised(body))

    def _delete(self, collection: str, name: str) -> None:
        body = self._objects.pop((collection, name))
        self._record(collection, "DELETED", self._revised(body))

    def _revised(self, body: dict[str, Any]) -> dict[str, Any]:
        self.revision += 1
        self.now += _STEP_S
        body["metadata"]["resourceVersion"] = str(self.revision)
        return deepcopy(body)

    def _record(self, collection: str, kind: str, item: dict[str, Any]) -> None:
        line = {"at": self.now, "collection": collection, "type": kind, "object": item}
        self.records.append(line)

    def _account(self, op: str, configmap: str, key: str, value: str = "") -> None:
        line = {"at": self.now, "op": op, "configmap": configmap, "key": key}
        self.manager.append({**line, "value": value} if value else line)
