"""A cluster whose answers a test sets."""

import asyncio
from collections.abc import Awaitable, Callable

from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError
from reserver.extender.protocol import ExtenderBindingArgs
from reserver.scheduling.verdicts import Effect
from tests.builders import NAMESPACE


class FakeCluster:
    """A cluster whose answers a test sets.

    Attributes:
        pods: the pods that can be read.
        bound: the requested bindings: pod, node, claims.
        effects: the effects that were carried out.
        gate: bindings and effects wait for it.
        failure: the error of each binding.
        on_bind: runs as soon as a binding is requested.
        is_wanted: whether the last binding is still wanted.
    """

    def __init__(self) -> None:
        self.pods: dict[PodName, Pod] = {}
        self.reads = 0
        self.bound: list[tuple[str, str, tuple[str, ...]]] = []
        self.effects: list[Effect] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None
        self.on_bind: Callable[[], None] = lambda: None
        self.is_wanted: Callable[[], Awaitable[bool]]

    async def read_pod(self, name: PodName) -> Pod:
        self.reads += 1
        if name not in self.pods:
            raise ApiError(404, "NotFound", f"pods {name.name} not found")
        return self.pods[name]

    async def bind(
        self, pod: Pod, node: str, claims: tuple[str, ...], is_wanted: Callable[[], Awaitable[bool]]
    ) -> None:
        self.is_wanted = is_wanted
        self.bound.append((pod.name.name, node, claims))
        self.on_bind()
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def carry_out(self, effect: Effect) -> None:
        await self.gate.wait()
        self.effects.append(effect)


def call(pod_name: str, node: str = "worker-1", uid: str = "") -> ExtenderBindingArgs:
    """Return a Bind call."""
    return ExtenderBindingArgs(pod_name, NAMESPACE, uid or f"uid-{pod_name}", node)


class FakeReadiness:
    """Watches that a test can break.

    Attributes:
        said: what keeps the extender from deciding.
        current: set while no watch is broken.
        agreed: what etcd says of the state.
    """

    def __init__(self) -> None:
        self.said: tuple[str, ...] = ()
        self.current = asyncio.Event()
        self.current.set()
        self.agreed = True

    def obstacles(self) -> tuple[str, ...]:
        return self.said

    async def caught_up(self) -> None:
        await self.current.wait()

    async def agrees(self) -> bool:
        return self.agreed
