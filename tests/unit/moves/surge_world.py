"""The world of a move whose pod surges: a Deployment, a kubelet and a count of ready pods."""

from copy import deepcopy
from typing import Any

from reserver.k8s.objects.pod_annotations import COST_ANNOTATION
from reserver.k8s.objects.times import show_moment
from reserver.settings.serve import Settings
from tests.unit.moves.api_server import PODS, SETS, Document
from tests.unit.moves.world import World

DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web"
HASH = {"app": "web", "pod-template-hash": "5d8f"}


class SurgeWorld(World):
    """A Deployment of one pod, which a Service selects by its label.

    Attributes:
        becomes_ready: whether a pod that is bound becomes ready.
        deletes: whether the ReplicaSet removes pods that are too many.
        has_set: whether the ReplicaSet is there; without it nobody makes or removes pods.
        least: the fewest ready pods that the Service has had since it had one.
        set_spec: of the ReplicaSet.
        is_deleted: whether the ReplicaSet is being deleted, and waits for its pods to go.
    """

    def __init__(self, **spec: Any) -> None:
        self.becomes_ready, self.deletes, self.has_set = True, True, True
        self.least = 1
        self.set_spec: Document = spec
        self.is_deleted = False
        super().__init__()
        self.api.objects[DEPLOYMENT] = deployment()
        for pod in self.api.of(PODS):
            self._ready(pod)
        self._count()

    def settings(self) -> Settings:
        return Settings(pod_moves=True, surge_moves=True, default_quota=self.quota)

    def make_pod(self, node: str = "", of: str = "web") -> Document:
        made = super().make_pod(node, of)
        made["metadata"]["labels"] = dict(HASH)
        return self.api.put(PODS, made)

    def service(self) -> list[Document]:
        """Return the ready pods that the Service selects."""
        return [pod for pod in self.api.of(PODS) if _is_ready(pod) and _label(pod) == "web"]

    def copies(self) -> list[Document]:
        return [pod for pod in self.api.of(PODS) if not _controller(pod)]

    def marks(self) -> list[Document]:
        noted = "metadata", "annotations"
        return [pod for pod in self.api.of(PODS) if COST_ANNOTATION in _at(pod, *noted)]

    async def round(self) -> None:
        self.watch()
        await self._reserver()
        self._replica_set()
        self.watch()
        if self.schedules:
            self._schedule()
        for pod in self.api.of(PODS):
            if self.becomes_ready and pod["spec"].get("nodeName") and not _is_ready(pod):
                self._ready(pod)
        self._count()

    async def _reserver(self) -> None:
        self._write_set()
        await super()._reserver()
        assert self.reserver.features.mover is not None
        self.watch()
        remains = self.reserver.features.mover.remains
        await remains.work(remains.queue.take_all())
        self._count()

    def _write_set(self) -> None:
        if not self.has_set:
            self.api.objects.pop(f"{SETS}/web", None)
            return
        pods = self.pods()
        maker = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True}
        spec = {
            "replicas": self.replicas,
            "selector": {"matchLabels": HASH},
            "template": {"metadata": {"labels": HASH}, "spec": template(self.cpu)},
            **self.set_spec,
        }
        metadata: Document = {"name": "web", "uid": "rs-web", "ownerReferences": [maker]}
        if self.is_deleted:
            metadata["deletionTimestamp"] = show_moment(self.api.now)
        status = {"readyReplicas": sum(map(_is_ready, pods))}
        self.api.objects[f"{SETS}/web"] = {"metadata": metadata, "spec": spec, "status": status}

    def pods(self, of: str = "web") -> list[Document]:
        """Return the pods of the ReplicaSet."""
        return [each for each in self.api.of(PODS) if _controller(each) == f"rs-{of}"]

    def _replica_set(self) -> None:
        """Create missing pods, and remove excess pods in the order of the real ReplicaSet."""
        pods, makes = self.pods(), self.has_set and not self.is_deleted
        for _ in range(self.replicas - len(pods) if makes else 0):
            self.make_pod()
        if self.deletes and self.has_set:
            for pod in sorted(pods, key=_rank)[: max(len(pods) - self.replicas, 0)]:
                self.api.remove(f"{PODS}/{pod['metadata']['name']}")
        self._write_set()

    def _ready(self, pod: Document) -> None:
        changed = deepcopy(pod)
        since = "2030-03-17T17:46:00Z"
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
        changed["status"] = {"conditions": [ready]}
        self.api.put(PODS, changed)

    def _count(self) -> None:
        self.least = min(self.least, len(self.service()))


def deployment(**spec: Any) -> Document:
    status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}
    metadata = {"name": "web", "uid": "d", "generation": 1}
    return {"metadata": metadata, "spec": spec, "status": status}


def template(cpu: str) -> Document:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}


def _label(pod: Document) -> str:
    return str(_at(pod, "metadata", "labels").get("app", ""))


def _at(document: Document, *path: str) -> Document:
    for step in path:
        document = document.get(step) or {}
    return document


def _controller(pod: Document) -> str:
    owners = pod["metadata"].get("ownerReferences", ())
    return next((each["uid"] for each in owners if each.get("controller")), "")


def _is_ready(pod: Document) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _rank(pod: Document) -> tuple[bool, bool, int, int]:
    """Return the keys of ActivePodsWithRanks: without node, unready, cost, newer first."""
    cost = int(_at(pod, "metadata", "annotations").get(COST_ANNOTATION, 0))
    created = int(pod["metadata"]["uid"].split("-")[1])
    return bool(pod["spec"].get("nodeName")), _is_ready(pod), cost, -created
