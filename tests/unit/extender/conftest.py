import asyncio
from collections.abc import AsyncIterator

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod
from reserver.extender.handlers import Extender
from reserver.extender.requeue import Requeue
from reserver.reservations.reservation import Reservation
from reserver.scheduling.pod_events import PodEvent
from reserver.scheduling.state import State
from tests.builders import NOW, node, state_of
from tests.unit.extender.fakes import FakeCluster, FakeReadiness


class Served:
    """An extender with its parts.

    Attributes:
        readiness: the obstacles to a decision, and whether a watch is broken.
        now: Unix seconds of its clock.
        told: the events for the owners of pods.
    """

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.state: State = state_of(node("worker-1", cpu="4"), node("worker-2", cpu="4"))
        self.cluster = FakeCluster()
        self.readiness = FakeReadiness()
        self.now = NOW
        self.told: list[PodEvent] = []
        self.requeue = Requeue(self.cluster, lambda: self.state.pods, lambda: self.now)
        self.extender = Extender(
            self.state,
            self.cluster,
            self.requeue,
            lambda: self.now,
            self.readiness,
            tasks,
            on_event=self.told.append,
        )
        self.bindings = self.extender.bindings

    def show(self, *things: Node | Pod | Reservation) -> None:
        """Let the watches show something."""
        for thing in things:
            if isinstance(thing, Node):
                self.state.node_seen(thing)
            elif isinstance(thing, Pod):
                self.state.pod_seen(thing)
                self.cluster.pods[thing.name] = thing
            else:
                self.state.ledger.put(thing)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with asyncio.TaskGroup() as tasks:
        served = Served(tasks)
        sending = tasks.create_task(served.requeue.run())
        yield served
        served.cluster.gate.set()
        await served.bindings.drain()
        sending.cancel()
