"""One binding under way, and the API server's part in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from reserver.cluster.pod import Pod, PodName
from reserver.scheduling.bind import BindVerdict

LEFT_S = 2.0
"""How long a binding without an answer is repeated after the last Bind call for it has gone, in
seconds. The kube-scheduler that wanted it may have ended; another one, with a Reserver of its own,
needs about as long to take the lead (docs/adr/0013)."""


class Pods(Protocol):
    """What bindings need of the API server (`PodWrites`)."""

    async def read_pod(self, name: PodName) -> Pod:
        """Return a pod as it is now."""

    async def bind(
        self, pod: Pod, node: str, claims: tuple[str, ...], is_wanted: Callable[[], Awaitable[bool]]
    ) -> None:
        """Bind a pod that has not changed; return only when it is known to have happened."""


@dataclass(slots=True)
class PendingBinding:
    """A node that a pod takes, and that the watch has not shown yet.

    Attributes:
        pod: the pod as it was when that was decided, and as which it is bound.
        verdict: what it claims; or why it does not get the node after all, once it has changed.
        expiry: takes it back when no binding comes; None where one was asked for at once.
        task: writes the binding; None before that is asked for.
        callers: how many Bind calls wait for it.
        left_at: when the last of them went, by the event loop's clock.
    """

    pod: Pod
    node: str
    verdict: BindVerdict
    expiry: asyncio.TimerHandle | None = None
    task: asyncio.Task[BindVerdict] | None = None
    callers: int = 0
    left_at: float = 0.0

    def is_wanted(self) -> bool:
        """Return whether a kube-scheduler waits for it, or did until a moment ago."""
        return self.callers > 0 or asyncio.get_running_loop().time() - self.left_at < LEFT_S
