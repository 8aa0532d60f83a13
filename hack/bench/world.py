"""An artificial cluster as a state for decisions."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hack.bench.documents import (
    NAMESPACE,
    encode,
    node_document,
    node_name,
    running_pod,
)
from reserver.cluster.pod import Pod, PodName
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.reservations.entry import identified
from reserver.reservations.reservation import Ref, Reservation
from reserver.scheduling.state import State

REFUSED_REQUESTS = {"cpu": "21", "memory": "4Gi"}
"""Fits on every node of `state`, but not next to two of its reservations."""

NOW = 1.9e9
"""Unix seconds at which reservations are in force."""

SAMPLED, _RESERVED = 1, 2
"""Seeds for the order of names in a Filter call, and of nodes for reservations."""

_STORE = ("reserver-system", "bench")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a cluster."""

    nodes: int
    pods: int
    reservations: int = 0


def node_names(count: int, *, order: int) -> list[str]:
    """Return the names of all nodes in a shuffled order, the same for each `order`."""
    names = [node_name(index) for index in range(count)]
    random.Random(order).shuffle(names)  # noqa: S311 - not a secret
    return names


def owner_name(index: int) -> str:
    """Return the name of the pod that owns a reservation."""
    return f"owner-{index}"


def seat_of(index: int, nodes: int) -> str:
    """Return the node of a reservation."""
    return node_names(nodes, order=_RESERVED)[index % nodes]


def _reservation(index: int, node: str) -> Reservation:
    return identified(
        Reservation(
            ref=Ref(*_STORE, f"r-{index}"),
            digest="",
            node=node,
            owners=(PodName(NAMESPACE, owner_name(index)),),
            resources={"pods": 1, "cpu": 1000, "memory": 4 * 2**30},
        )
    )


def state(size: Size) -> State:
    """Return a complete state: nodes of 32 CPUs, pods and reservations spread evenly.

    A reservation is 1 CPU and 4 GiB for the pod `owner_name`.
    """
    built = State()
    for index in range(size.nodes):
        built.node_seen(decode(NodeObject, encode(node_document(index))).value())
    for pod in _pods(size):
        built.pod_seen(pod)
    reserve(built, size)
    built.is_complete = True
    return built


def reserve(built: State, size: Size) -> None:
    """Put the reservations into a state."""
    order = node_names(size.nodes, order=_RESERVED)
    for index in range(size.reservations):
        built.ledger.put(_reservation(index, order[index % size.nodes]))


def _pods(size: Size) -> Iterator[Pod]:
    like = decode(PodObject, encode(running_pod(0, size.nodes))).value()
    for index in range(size.pods):
        yield replace(
            like,
            name=PodName(NAMESPACE, f"{like.name.name}-{index}"),
            uid=f"{like.uid}-{index}",
            node=node_name(index % size.nodes),
            requests=dict(like.requests),
        )
