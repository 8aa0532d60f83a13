"""The tape of a pod on worker-1, and of its move."""

from __future__ import annotations

from typing import Any

from tests.unit.promises.tape import NOW, Tape, rfc3339

WITHOUT, OUTLIVED = "evicted without a seat", "seat outlived its move"


class Moved(Tape):
    """A pod on worker-1, and a move of it."""

    def __init__(self) -> None:
        super().__init__()
        self.node("worker-1")
        self.node("worker-2")
        self.land("web-0", "worker-1", maker="web")
        self.uid = self._objects["pods", "shop/web-0"]["metadata"]["uid"]
        self.spec: dict[str, Any] = {"pod": {"name": "web-0"}}
        self.status: dict[str, Any] = {}

    def move(self, phase: str, *, seat: str = "seat", **spec: Any) -> None:
        self.spec |= spec
        self.status |= {"phase": phase, "podUID": self.uid, "reservation": seat}
        metadata = {"name": "move", "namespace": "shop", "uid": "uid-move"}
        body = {"metadata": metadata, "spec": self.spec, "status": self.status}
        self._write("podmoves", "shop/move", body)

    def member(self, phase: str, namespace: str = "shop") -> None:
        """Write another move of the same group."""
        metadata = {"name": "other", "namespace": namespace, "uid": f"uid-other-{namespace}"}
        spec = {"pod": {"name": "db-0"}, "group": self.spec["group"]}
        status = {"phase": phase, "podUID": "uid-db", "reservation": "seat-2"}
        body = {"metadata": metadata, "spec": spec, "status": status}
        self._write("podmoves", f"{namespace}/other", body)

    def hold(self, *, node: str = "worker-2", backed: str = "", uid: str = "uid-move") -> None:
        made_by = [{"kind": "PodMove", "name": "move", "uid": uid}]
        metadata = {"name": "seat", "namespace": "shop", "uid": "uid-seat"}
        owner = {"controller": {"kind": "ReplicaSet", "name": "web"}}
        spec = {
            "owners": [owner | {"replaces": {"uid": self.uid, "existing": ["uid-waits"]}}],
            "resources": {"cpu": "1"},
            "node": node,
            "policy": "Require",
            "expiresAt": rfc3339(NOW + 600),
        }
        status = {"phase": "Active", "conditions": [{"type": "Backed", "status": backed}]}
        body = {"metadata": metadata | {"ownerReferences": made_by}, "spec": spec}
        self._write("reservations", "shop/seat", body | ({"status": status} if backed else {}))

    def evict(self) -> None:
        body = self._objects["pods", "shop/web-0"]
        body["status"]["conditions"] = [
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        ]
        body["metadata"]["deletionTimestamp"] = rfc3339(self.now)
        self._write("pods", "shop/web-0", body)
        self.delete("web-0")

    def volume(self, *hosts: str) -> None:
        """Let the pod use a claim whose volume only some nodes can use."""
        terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(hosts)}]
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
        body = {"metadata": {"name": "pv", "uid": "uid-pv"}, "spec": {"nodeAffinity": affinity}}
        self._write("persistentvolumes", "/pv", body)
        claim = {"name": "data", "namespace": "shop", "uid": "uid-data"}
        body = {"metadata": claim, "spec": {"volumeName": "pv"}}
        self._write("persistentvolumeclaims", "shop/data", body)
        pod = self._objects["pods", "shop/web-0"]
        pod["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        self._write("pods", "shop/web-0", pod)

    def found(self, *kinds: str) -> list[str]:
        return [kind for kind in self.kinds() if kind in (kinds or {WITHOUT, OUTLIVED})]
