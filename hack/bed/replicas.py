"""Reserver in a storm: alone, or a leader with its standby."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from hack.bed.install import LIST_STORE
from hack.bed.service import Service
from hack.promises.history import Outage
from hack.reserver_process import ReserverProcess, wait_for

_FLAGS = ("--configmap", "/".join(LIST_STORE))

_STEPPED_DOWN = "leadership lost"


class Replicas:
    """Replicas of Reserver, as a context manager. They end with the thread that entered it.

    Args:
        kubeconfig: Reserver's credentials.
        folder: the folder of the logs.
        count: the number of replicas; several elect a leader.
        flags: further flags.
        is_parted: the network between kube-scheduler and Reserver may be cut.
        prepare: Python code that runs before Reserver.

    Attributes:
        service: the Service between kube-scheduler and Reserver; None without one.
        port: the port of the ready replica for kube-scheduler, on loopback.
        ends: unix seconds at which a replica was killed or had ended.
        pauses: times without a leader, from the death of one until the next is ready.
    """

    def __init__(
        self,
        kubeconfig: Path,
        folder: Path,
        count: int = 1,
        *,
        flags: Sequence[str] = (),
        is_parted: bool = False,
        prepare: str = "",
    ) -> None:
        flags = (*_FLAGS, *flags, *(["--leader-elect"] if count > 1 else []))
        names = ["reserver", *(f"reserver-{number}" for number in range(2, count + 1))]
        self._all = [
            ReserverProcess(kubeconfig, folder / f"{name}.log", *flags, wait_ready=False)
            for name in names
        ]
        for each in self._all if prepare else ():
            each.prepare(prepare)
        self._has_service = is_parted or count > 1
        self.service: Service | None = None
        self.ends: list[float] = []
        self.pauses: list[Outage] = []
        self._pause = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start them; return once one is ready."""
        with ExitStack() as stack:
            for each in self._all:
                stack.enter_context(each)
            self.wait_ready()
            ports = tuple(each.port for each in self._all)
            if self._has_service:
                self.service = stack.enter_context(Service(ports))
            self.port = self.service.port if self.service else ports[0]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them."""
        self._stack.close()

    def wait_ready(self) -> None:
        """Return once one of them answers calls."""
        wait_for(lambda: self._find(is_ready=True), "a reserver is ready")

    def metric(self, name: str) -> float:
        """Return a metric of the one that answers calls, 0 if none does."""
        ready = self._find(is_ready=True)
        return ready.metric(name) if ready else 0.0

    def kill(self, down_s: float) -> None:
        """Kill the only one, and start it again after so many seconds."""
        (victim,) = self._all
        self.ends.append(time.time())
        victim.kill()
        self._pause.wait(down_s)
        victim.start()

    def kill_in_turn(self, down_s: float, *, is_leader: bool) -> None:
        """Kill the leader or the standby; return once there is a leader and both run again.

        The dead one comes back when another leads, and so many seconds have passed: else it might
        take up the lead again that it never gave back.
        """
        victim = wait_for(lambda: self._find(is_ready=is_leader), "there is one to kill")
        self.ends.append(time.time())
        victim.kill()
        self.wait_ready()
        if is_leader:
            self.pauses.append(Outage(self.ends[-1], time.time()))
        self._pause.wait(down_s)
        victim.start()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the only one."""
        (victim,) = self._all
        victim.process.send_signal(number)

    @contextmanager
    def leader_stopped(self) -> Iterator[None]:
        """Have the leader stand still until the block ends."""
        victim = wait_for(lambda: self._find(is_ready=True), "there is a leader")
        victim.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.ends.append(time.time())  # Another one has begun to lead.
            victim.process.send_signal(signal.SIGCONT)

    @property
    def grpc_address(self) -> str:
        """The gRPC address of the first replica; empty without gRPC."""
        return self._all[0].grpc_address

    def revive(self) -> bool:
        """Restart ended replicas, as a kubelet would; return whether any had ended.

        Raises:
            RuntimeError: a replica ended that was not a leader without its lease.
        """
        ended = [each for each in self._all if each.process.poll() is not None]
        for each in ended:
            if len(self._all) == 1 or _STEPPED_DOWN not in each.log.read_text():
                raise RuntimeError(f"reserver ended by itself: {each.log}")
            self.ends.append(time.time())
            each.start()
        return bool(ended)

    def _find(self, *, is_ready: bool) -> ReserverProcess | None:
        return next((each for each in self._all if each.is_ready() == is_ready), None)
