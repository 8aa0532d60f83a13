"""The demo's scenario: steps of a manager and of users, with their expected effects."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from reserver.k8s.objects.times import show_moment
from reserver.process.assembly import Assembly
from reserver.reservations.enums import Phase
from reserver_demo.cluster import EmbeddedCluster

NAMESPACE = "reserver-system"
STORE = "reservations"
_CONFIGMAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_STORE = f"{_CONFIGMAPS}/{STORE}"
_PODS = "/api/v1/namespaces/default/pods"
_WORKERS = ("worker-1", "worker-2", "worker-3")
FILLERS = {"filler-1": "5", "filler-2": "5"}
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the scenario.

    Attributes:
        text: the action and its expected effect.
        act: does the action.
        came_true: returns whether the effect has occurred.
    """

    text: str
    act: Callable[[], Awaitable[None]]
    came_true: Callable[[], Awaitable[bool]]


class Stage:
    """The actions of the scenario, made through the API server as by users."""

    def __init__(self, cluster: EmbeddedCluster, assembly: Assembly) -> None:
        """Act on a cluster; `assembly` shows Reserver's view of it."""
        self._cluster = cluster
        self._assembly = assembly

    async def add_workers(self) -> None:
        """Add three workers with 8 CPUs each, an empty store, and the namespace of docs/."""
        for worker in _WORKERS:
            await self._cluster.create_node(worker, {"cpu": "8"})
        for name in (NAMESPACE, "shop"):
            namespace = {"metadata": {"name": name}}
            await self._cluster.client.send("POST", "/api/v1/namespaces", namespace)
        store = {"metadata": {"name": STORE, "labels": {"reserver.io/store": "true"}}}
        await self._cluster.client.send("POST", _CONFIGMAPS, store)

    async def create_pods(self, pods: Mapping[str, str], nodes: Sequence[str] = ()) -> None:
        """Create pods in the namespace default: CPUs by name, bound to `nodes` if given."""
        for (name, cpu), node in zip_longest(pods.items(), nodes):
            container = {"name": "main", "image": "demo", "resources": {"requests": {"cpu": cpu}}}
            spec = {"containers": [container]} | ({"nodeName": node} if node else {})
            body = {"metadata": {"name": name}, "spec": spec}
            await self._cluster.client.send("POST", _PODS, body)

    async def write(self, key: str, text: str) -> None:
        """Write one key of the store, as a manager does."""
        await self._cluster.client.send("PATCH", _STORE, {"data": {key: text}}, media=_MERGE)

    async def pod(self, name: str) -> dict[str, Any]:
        """Return a pod of the namespace default."""
        return json.loads(await self._cluster.client.send("GET", f"{_PODS}/{name}"))  # type: ignore[no-any-return]

    async def node_of(self, pod: str) -> str:
        """Return the node of a pod; empty while it is unbound."""
        return str((await self.pod(pod))["spec"].get("nodeName", ""))

    async def refusal_of(self, pod: str) -> str:
        """Return the scheduler's refusal of a pod; empty if it was not tried, or is bound."""
        conditions = (await self.pod(pod)).get("status", {}).get("conditions", [])
        refusals = [c.get("message", "") for c in conditions if c["status"] == "False"]
        return next(iter(refusals), "")

    async def store_keys(self) -> list[str]:
        """Return the keys of the store."""
        configmap = json.loads(await self._cluster.client.send("GET", _STORE))
        return list(configmap.get("data") or ())

    async def events(self) -> list[str]:
        """Return the messages of all events in the store's namespace."""
        path = f"/api/v1/namespaces/{NAMESPACE}/events"
        events = json.loads(await self._cluster.client.send("GET", path))
        return [event.get("message", "") for event in events["items"]]

    async def workers_are_seen(self) -> bool:
        """Return whether reserver has seen the workers."""
        return self._assembly.state.snapshot.node_count == len(_WORKERS)

    async def fillers_are_seen(self) -> bool:
        """Return whether reserver has seen the workers, and the two fillers on two of them."""
        return await self.workers_are_seen() and len(self._assembly.state.pods) == len(FILLERS)

    async def is_held(self, key: str) -> bool:
        """Return whether reserver holds capacity for a key of the store."""
        return any(r.ref.key == key and p is Phase.ACTIVE for r, p in self._assembly.ledger)

    async def are_on(self, nodes: Mapping[str, str]) -> bool:
        """Return whether pods are on nodes; `nodes` are by pod name, empty for pending."""
        return [await self.node_of(name) for name in nodes] == list(nodes.values())

    async def fillers_are_elsewhere(self) -> bool:
        """Return whether the two fillers are on the two workers without a hold."""
        nodes = {await self.node_of("filler-1"), await self.node_of("filler-2")}
        return nodes == {"worker-2", "worker-3"}

    async def is_refused_for_a_hold(self, pod: str) -> bool:
        """Return whether a pod was refused because of a reservation."""
        return "held by reservation" in await self.refusal_of(pod)

    async def is_cleaned_away(self, key: str) -> bool:
        """Return whether a key was removed from the store."""
        return key not in await self.store_keys()

    async def is_reported(self, words: str) -> bool:
        """Return whether the message of an event in the store's namespace contains words."""
        return any(words in message for message in await self.events())

    async def replace_small_pod(self, expires_at: float) -> None:
        """Delete small-pod, and hold its room for nightly-0."""
        await self._cluster.client.send("DELETE", f"{_PODS}/small-pod")
        await self.write("nightly", reservation("nightly-0", "worker-1", "4", expires_at))

    async def only_watch(self) -> None:
        """Do nothing."""


def reservation(pod: str, node: str, cpu: str, expires_at: float) -> str:
    """Return a reservation in YAML for the store; `expires_at` in unix seconds."""
    return (
        f"owners: [{{pod: {{name: {pod}, namespace: default}}}}]\n"
        f"node: {node}\n"
        f"resources: {{cpu: {cpu}}}\n"
        f"expiresAt: {show_moment(expires_at)}\n"
    )


def steps(stage: Stage, now: Callable[[], float]) -> tuple[Step, ...]:
    """Return the scenario; `now` returns unix seconds. A step fits on a line of 78 columns."""
    return (*_first_seat(stage, now), *_ends_and_waits(stage, now))


def _first_seat(stage: Stage, now: Callable[[], float]) -> tuple[Step, ...]:
    """Return the steps up to the owner on its seat, and a stranger on the rest of its node."""
    return (
        Step(
            text="Three workers with 8 CPUs each, and an empty store of reservations",
            act=stage.add_workers,
            came_true=stage.workers_are_seen,
        ),
        Step(
            text="4 CPUs of worker-1 are reserved for reserved-pod, which does not exist yet",
            act=lambda: stage.write(
                "seat", reservation("reserved-pod", "worker-1", "4", now() + 600)
            ),
            came_true=lambda: stage.is_held("seat"),
        ),
        Step(
            text="Two pods of 5 CPUs arrive: they land on worker-2 and worker-3",
            act=lambda: stage.create_pods(FILLERS),
            came_true=stage.fillers_are_elsewhere,
        ),
        Step(
            text="normal-pod wants 5 CPUs: worker-1 has them, but not for normal-pod",
            act=lambda: stage.create_pods({"normal-pod": "5"}),
            came_true=lambda: stage.is_refused_for_a_hold("normal-pod"),
        ),
        Step(
            text="reserved-pod arrives with 4 CPUs: it lands on its seat",
            act=lambda: stage.create_pods({"reserved-pod": "4"}),
            came_true=lambda: stage.are_on({"reserved-pod": "worker-1"}),
        ),
        Step(
            text="small-pod wants 4 CPUs: the rest of worker-1 is anybody's, and it lands there",
            act=lambda: stage.create_pods({"small-pod": "4"}),
            came_true=lambda: stage.are_on({"small-pod": "worker-1", "normal-pod": ""}),
        ),
    )


def _ends_and_waits(stage: Stage, now: Callable[[], float]) -> tuple[Step, ...]:
    """Return the steps of an expiry, a broken entry, and a pod that waits."""
    return (
        Step(
            text="Half a CPU of worker-2 is reserved for three seconds",
            act=lambda: stage.write("brief", reservation("nobody", "worker-2", "500m", now() + 3)),
            came_true=lambda: stage.is_held("brief"),
        ),
        Step(
            text="Nobody came: the hold ends exactly on time, and its entry is removed",
            act=stage.only_watch,
            came_true=lambda: stage.is_cleaned_away("brief"),
        ),
        Step(
            text="A broken entry is written: it alone is refused, and an event says why",
            act=lambda: stage.write("typo", reservation("anybody", "worker-3", "1x", now() + 600)),
            came_true=lambda: stage.is_reported("resources.cpu"),
        ),
        Step(
            text="small-pod ends, and its 4 CPUs are reserved for nightly-0, for an hour",
            act=lambda: stage.replace_small_pod(now() + 3600),
            came_true=lambda: stage.is_held("nightly"),
        ),
        Step(
            text="waiting-pod wants 4 CPUs, and waits: `reserver explain` says for what",
            act=lambda: stage.create_pods({"waiting-pod": "4"}),
            came_true=lambda: stage.is_refused_for_a_hold("waiting-pod"),
        ),
    )
