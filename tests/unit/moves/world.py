"""A cluster in memory in which moves run, without clocks."""

import asyncio
import itertools
import json
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar

from msgspec import Raw

from reserver.base.pacer import Pacer, outcome
from reserver.cluster.pod import Pod
from reserver.k8s.objects.objects import encode
from reserver.k8s.objects.pod_annotations import CLAIMS_ANNOTATION
from reserver.k8s.watch.reflector import Reflector
from reserver.moves import podmove
from reserver.moves.phases import ENDED
from reserver.process.assembly import Assembly
from reserver.process.readiness import Pulse
from reserver.scheduling.fit import allowed
from reserver.settings.serve import Settings
from reserver.stores.object import codec as reservation
from tests.unit.k8s.crashes import Crash, Writes
from tests.unit.moves.api_server import (
    CLAIMS,
    CSI_NODES,
    MOVES,
    PODS,
    SEATS,
    SETS,
    VOLUMES,
    Api,
    Document,
    SteadyEtcd,
)


class World:
    """Some nodes, ReplicaSets with a pod each, and Reserver.

    Attributes:
        api: the stored objects.
        reserver: the running process.
        replicas: the desired pods of the ReplicaSet web.
        others: the other ReplicaSets, each with one desired pod.
        cpu: the request of each pod.
        claims: the PersistentVolumeClaims that each pod uses.
        schedules: whether pods are bound.
        is_strict: whether pods are bound only to their seats, on open nodes.
        tasks: the tasks that write Reservations.
    """

    collections: ClassVar = {
        "/apis/storage.k8s.io/v1/csinodes": CSI_NODES,
        "/api/v1/pods": PODS,
        podmove.COLLECTION: MOVES,
        reservation.COLLECTION: SEATS,
        "/api/v1/nodes": "/api/v1/nodes",
        "/api/v1/persistentvolumeclaims": CLAIMS,
        "/api/v1/persistentvolumes": VOLUMES,
    }

    def __init__(self, nodes: int = 2, cpu: str = "2") -> None:
        self.api = Api()
        self.replicas = 1
        self.others: tuple[str, ...] = ()
        self.cpu = cpu
        self.claims: tuple[str, ...] = ()
        self.schedules, self.is_strict = True, False
        self.quota = "none"
        self.tasks = asyncio.TaskGroup()
        self._numbers = itertools.count()
        for number in range(1, nodes + 1):
            name = f"worker-{number}"
            node: Document = {"metadata": {"name": name, "labels": {"host": name}}, "status": {}}
            node["status"] = {"allocatable": {"cpu": "4", "pods": "110"}}
            self.api.add("/api/v1/nodes", node)
        self.make_pod("worker-1")

    def cordon(self, node: str) -> None:
        self.change_node(node, {"unschedulable": True})

    def change_node(self, node: str, spec: Document) -> None:
        """Replace the spec of a node; an empty spec is the first one."""
        document = self.api.objects[f"/api/v1/nodes/{node}"]
        self.api.put("/api/v1/nodes", document | {"spec": spec})

    def add_volume(self, claim: str, *nodes: str, mode: str = "ReadWriteOnce") -> None:
        """Bind a claim to a volume that only some nodes can use."""
        name = f"pv-{claim}"
        terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": list(nodes)}]}]
        affinity = {"required": {"nodeSelectorTerms": terms}}
        owner = {"namespace": "shop", "name": claim, "uid": f"uid-{claim}"}
        csi = {"driver": "disks", "volumeHandle": claim}
        self.api.add(
            VOLUMES,
            {
                "metadata": {"name": name},
                "spec": {"nodeAffinity": affinity, "claimRef": owner, "csi": csi},
                "status": {"phase": "Bound"},
            },
        )
        bound = {"pv.kubernetes.io/bind-completed": "yes"}
        metadata = {"name": claim, "namespace": "shop", "annotations": bound}
        spec = {"volumeName": name, "accessModes": [mode]}
        self.api.add(
            CLAIMS,
            {
                "metadata": metadata | {"uid": f"uid-{claim}"},
                "spec": spec,
                "status": {"phase": "Bound"},
            },
        )

    def limit_volumes(self, node: str, most: int) -> None:
        """Let a node attach at most so many volumes."""
        driver = {"name": "disks", "nodeID": node, "allocatable": {"count": most}}
        document: Document = {"metadata": {"name": node}, "spec": {"drivers": [driver]}}
        self.api.add(CSI_NODES, document)

    def make_pod(self, node: str = "", of: str = "web") -> Document:
        owner = {"kind": "ReplicaSet", "name": of, "uid": f"rs-{of}", "controller": True}
        container = {"name": "main", "resources": {"requests": {"cpu": self.cpu}}}
        name = f"{of}-{next(self._numbers)}"
        volumes = [
            {"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in self.claims
        ]
        return self.api.add(
            PODS,
            {
                "metadata": {"name": name, "namespace": "shop", "ownerReferences": [owner]},
                "spec": {"containers": [container], "volumes": volumes}
                | ({"nodeName": node} if node else {}),
            },
        )

    def move(self, pod: str | Document = "web-0", name: str = "move", **spec: Any) -> None:
        metadata = {"name": name, "namespace": "shop"}
        which = {"name": pod} if isinstance(pod, str) else pod
        self.api.add(MOVES, {"metadata": metadata, "spec": {"pod": which, **spec}})

    def edit(self, **spec: Any) -> None:
        """Change the spec of the move."""
        document = self.api.objects[f"{MOVES}/move"]
        metadata = document["metadata"]
        changed = {"metadata": metadata | {"generation": metadata["generation"] + 1}}
        self.api.put(MOVES, document | changed | {"spec": document["spec"] | spec})

    @property
    def evictions(self) -> list[str]:
        """The names of the pods whose eviction was requested, in order."""
        return [path.split("/")[-2] for path in self.api.writes if path.endswith("/eviction")]

    @property
    def written(self) -> Writes:
        return self.api.written

    def status_of(self, name: str) -> Document:
        found: Document = self.api.objects.get(f"{MOVES}/{name}", {}).get("status", {})
        return found

    @property
    def status(self) -> Document:
        return self.status_of("move")

    @property
    def has_ended(self) -> bool:
        """Whether the move has, or all have where none is called so."""
        moves = self.api.of(MOVES)
        those = [each for each in moves if each["metadata"]["name"] == "move"] or moves
        return all(each.get("status", {}).get("phase") in ENDED for each in those)

    def pods(self, of: str = "web") -> list[Document]:
        return [each for each in self.api.of(PODS) if each["metadata"]["name"].startswith(of)]

    def nodes_of(self, workload: str) -> list[str]:
        return [each["spec"].get("nodeName", "") for each in self.pods(workload)]

    def settings(self) -> Settings:
        """Return the settings of Reserver."""
        return Settings(pod_moves=True, default_quota=self.quota)

    async def start(self) -> None:
        """Start Reserver, which lists all objects."""
        settings, tasks = self.settings(), self.tasks
        self.reserver = Assembly(settings, self.api, lambda: self.api.now, tasks)  # type: ignore[arg-type]
        self.api.events.clear()
        for reflector in self._reflectors():
            reflector.view.list_began()
            collection = self.collections.get(reflector.path, "")
            for document in self.api.of(collection) if collection else ():
                outcome(reflector.view.listed(Raw(encode(document))))
            outcome(reflector.view.list_ended(0))
            reflector.synced.set()
            reflector.current.set()
        # Tests may stand still.
        pulse = Pulse(lambda: 0.0)
        self.reserver.readiness = replace(self.reserver.readiness, pulse=pulse, etcd=SteadyEtcd())
        self.reserver.state.is_complete = True
        await Pacer().run(self.reserver.state.ledger.open())

    def break_watch(self, path: str) -> None:
        """Report to Reserver that its watch of a collection lags."""
        self._reflector(path).distrust(10.0)

    def mend_watch(self, path: str) -> None:
        """Show Reserver the missed changes, and end the lag."""
        self.watch()
        self._reflector(path)._lag.end()

    def _reflector(self, path: str) -> Reflector:
        return next(each for each in self._reflectors() if each.path == path)

    def _reflectors(self) -> tuple[Reflector, ...]:
        return (*self.reserver.reflectors, *self.reserver.features.unawaited)

    def watch(self) -> None:
        """Show Reserver the events since the last watch."""
        views = {each.path: each.view for each in self._reflectors()}
        paths = {collection: path for path, collection in self.collections.items()}
        events, self.api.events = self.api.events, []
        for collection, kind, document in events:
            view = views[paths[collection]]
            take = view.deleted if kind == "DELETED" else view.changed
            outcome(take(Raw(encode(document))))

    async def round(self) -> None:
        """Give the watches, Reserver, the controller and the scheduler one turn."""
        self.watch()
        await self._reserver()
        for name, replicas in {"web": self.replicas, **dict.fromkeys(self.others, 1)}.items():
            made_by = {"metadata": {"name": name}, "spec": {"replicas": replicas}}
            self.api.objects[f"{SETS}/{name}"] = made_by
            pods = self.pods(name)
            if len(pods) < replicas:
                self.make_pod(of=name)
            elif len(pods) > replicas:
                self.api.remove(f"{PODS}/{pods[-1]['metadata']['name']}")
        self.watch()
        if self.schedules:
            self._schedule()

    async def _reserver(self) -> None:
        assembly = self.reserver
        assert assembly.features.mover is not None
        try:
            await assembly.placer.look(assembly.state, Pacer())
            for store in assembly.stores:
                await store.statuses.write(assembly.state)
            self.watch()
            await assembly.features.mover.arbitration.look(Pacer())
            for name in assembly.features.mover.moves.names():
                await assembly.features.mover.step(name)
        except BaseExceptionGroup as group:
            raise Crash from group

    def _schedule(self) -> None:
        """Bind pods to the seats that Reserver offers."""
        state = self.reserver.state
        for pod in tuple(state.pods.values()):
            if pod.node or f"{PODS}/{pod.name.name}" not in self.api.objects:
                continue
            seats = state.ledger.seats(pod)
            if self.is_strict and not self._may_land(pod, seats[0].node if seats else ""):
                continue
            document = deepcopy(self.api.objects[f"{PODS}/{pod.name.name}"])
            document["spec"]["nodeName"] = seats[0].node if seats else "worker-1"
            claims = [seat.identity for seat in seats[:1]]
            noted = document["metadata"].get("annotations", {})
            document["metadata"]["annotations"] = noted | {CLAIMS_ANNOTATION: json.dumps(claims)}
            self.api.put(PODS, document)

    def _may_land(self, pod: Pod, node: str) -> bool:
        snapshot = self.reserver.state.snapshot
        row = snapshot.row(node)
        return row is not None and bool(snapshot.exists[row] and allowed(pod, snapshot)[row])

    async def rounds(self, count: int, seconds: float = 0.0) -> None:
        """Give all components so many turns, with so many seconds after each."""
        for _ in range(count):
            await self.round()
            self.api.now += seconds

    async def settle(self, rounds: int = 30) -> Document:
        """Run until the moves have ended and no seat is left; return the status of `move`."""
        for _ in range(rounds):
            await self.round()
            if self.has_ended and not self.api.of(SEATS):
                return self.status
            self.api.now += 1.0
        raise AssertionError(f"still {self.api.of(MOVES)}, seats {self.api.of(SEATS)}")
