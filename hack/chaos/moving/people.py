"""A client that creates workloads and moves pods; it retries while the API server is away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, ClassVar, TypeVar

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from hack.bed.bed import Bed
from hack.chaos.moving.bed import SCHEDULER
from hack.reserver_process import wait_for

NAMESPACE = "default"
GREEDY = "greedy"
"""The Deployment whose pods take every hole."""

ENDED = frozenset({"Succeeded", "Failed", "Aborted"})
T = TypeVar("T")
_OBJECTS = ("reserver.io", "v1alpha1")


class People:
    """Creates workloads and moves their pods.

    Attributes:
        core: client of the API server's core group.
    """

    FAULTS: ClassVar = (ApiException, HTTPError, OSError)
    """Exceptions of a call while the API server is away."""

    def __init__(self, bed: Bed, namespace: str = NAMESPACE) -> None:
        self._namespace = namespace
        api = config.new_client_from_config(str(bed.kubeconfig))
        self.core: Any = client.CoreV1Api(api)
        self._apps: Any = client.AppsV1Api(api)
        self._objects: Any = client.CustomObjectsApi(api)
        self._sequence = count(1)

    def insist(self, call: Callable[[], T]) -> T:
        """Return the result of a call once the API server answers it.

        Raises:
            TimeoutError: the API server did not answer for too long.
        """
        said: list[T] = []

        def is_answered() -> bool:
            with suppress(*self.FAULTS):
                said.append(call())
            return bool(said)

        wait_for(is_answered, "the API server answers")
        return said[0]

    def settle(self) -> None:
        """Create the namespace of the workloads."""
        self.core.create_namespace({"metadata": {"name": self._namespace}})

    def add_volume(self, claim: str, *nodes: str) -> None:
        """Bind a claim to a volume that some nodes can use."""
        asked = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [asked]}]}
        both = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        size = {"storage": "1Gi"}
        volume = {
            "capacity": size,
            "local": {"path": "/none"},
            "nodeAffinity": {"required": terms},
            "claimRef": {"namespace": self._namespace, "name": claim},
        }
        body = {"metadata": {"name": f"pv-{claim}"}, "spec": {**both, **volume}}
        self.core.create_persistent_volume(body)
        wanted = {**both, "volumeName": f"pv-{claim}", "resources": {"requests": size}}
        body = {"metadata": {"name": claim}, "spec": wanted}
        self.core.create_namespaced_persistent_volume_claim(self._namespace, body)

    def deploy(self, name: str, replicas: int, claim: str = "") -> None:
        """Create a Deployment of pods of one core each, which may use a claim."""
        labels = {"app": name}
        requests = {"requests": {"cpu": "1"}}
        pod: dict[str, Any] = {
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none", "resources": requests}],
        }
        if claim:
            used = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
            pod["volumes"] = [used]
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        body = {"metadata": {"name": name}, "spec": spec}
        self._apps.create_namespaced_deployment(self._namespace, body)

    def pods(self, *apps: str) -> list[Any]:
        """Return the pods of Deployments that are bound and not being deleted, by name."""
        selector = f"app in ({','.join(apps)})" if apps else ""
        found = self.core.list_namespaced_pod(self._namespace, label_selector=selector).items
        there = [
            pod for pod in found if pod.spec.node_name and pod.metadata.deletion_timestamp is None
        ]
        return sorted(there, key=lambda pod: str(pod.metadata.name))

    def only(self, app: str) -> Any:  # noqa: ANN401 - a pod of the client's
        """Return the pod of a Deployment of one, once just one is bound."""

        def found() -> list[Any]:
            with suppress(*self.FAULTS):
                pods = self.pods(app)
                return pods if len(pods) == 1 else []
            return []

        return wait_for(found, f"a single pod of {app} is bound")[0]

    def wait_bound(self, app: str, replicas: int) -> None:
        """Return once at least `replicas` pods of a Deployment are bound."""
        wait_for(lambda: len(self.pods(app)) >= replicas, f"{replicas} pods of {app} are bound")

    def wait_ready(self, app: str) -> None:
        """Return once a pod of a Deployment is ready."""

        def is_ready() -> bool:
            conditions = [each for pod in self.pods(app) for each in pod.status.conditions or ()]
            return any(each.type == "Ready" and each.status == "True" for each in conditions)

        wait_for(is_ready, f"a pod of {app} is ready")

    def move(self, pod: str, after: str = "", name: str = "", **spec: object) -> str:
        """Create a PodMove, which may follow another one; return its name."""
        name = name or f"move-{next(self._sequence)}"
        body = {"apiVersion": "/".join(_OBJECTS), "kind": "PodMove", "metadata": {"name": name}}
        follows = {"after": after} if after else {}
        body["spec"] = {"pod": {"name": pod, **follows}, **spec}
        self._objects.create_namespaced_custom_object(*_OBJECTS, self._namespace, "podmoves", body)
        return name

    def status(self, name: str) -> Mapping[str, Any]:
        """Return the status of a PodMove; an empty one while the API server is away."""
        with suppress(*self.FAULTS):
            where = (*_OBJECTS, self._namespace, "podmoves", name)
            found = self._objects.get_namespaced_custom_object(*where)
            status: Mapping[str, Any] = found.get("status", {})
            return status
        return {}

    def moves(self) -> list[Mapping[str, Any]]:
        """Return all PodMoves."""
        return self._list("podmoves")

    def seats(self) -> list[Mapping[str, Any]]:
        """Return all Reservations."""
        return self._list("reservations")

    def have_no_seats(self) -> bool:
        """Return whether no seat is left; False while the API server is away."""
        with suppress(*self.FAULTS):
            return not self.seats()
        return False

    def moves_have_ended(self) -> bool:
        """Return whether all moves have ended; False while the API server is away."""
        with suppress(*self.FAULTS):
            return all(item.get("status", {}).get("phase") in ENDED for item in self.moves())
        return False

    def _list(self, plural: str) -> list[Mapping[str, Any]]:
        found = self._objects.list_namespaced_custom_object(*_OBJECTS, self._namespace, plural)
        items: list[Mapping[str, Any]] = found["items"]
        return items
