"""Reserver in a storm: alone, or a leader with its standby."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from hack.chaos.forms import LIST_STORE
from hack.chaos.service import Service
from hack.reserver_process import ReserverProcess, wait_for

_FLAGS = ("--configmap", "/".join(LIST_STORE))

_STEPPED_DOWN = "leadership lost"


class Replicas:
    """Reserver, as a context manager. What it starts ends with the thread that entered it.

    Args:
        kubeconfig: what it reaches the API server with.
        folder: for its logs.
        count: how many replicas; more than one elect a leader.

    Attributes:
        port: where kube-scheduler reaches whichever answers, on loopback.
        ends: when one was killed, or had ended by itself; unix seconds.
    """

    def __init__(self, kubeconfig: Path, folder: Path, count: int) -> None:
        flags = (*_FLAGS, *(["--leader-elect"] if count > 1 else []))
        names = ["reserver", *(f"reserver-{number}" for number in range(2, count + 1))]
        self._all = [
            ReserverProcess(kubeconfig, folder / f"{name}.log", *flags, wait_ready=False)
            for name in names
        ]
        self.ends: list[float] = []
        self._pause = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start them; return once one is ready."""
        with ExitStack() as stack:
            for each in self._all:
                stack.enter_context(each)
            self.wait_ready()
            ports = tuple(each.port for each in self._all)
            is_alone = len(ports) == 1
            self.port = ports[0] if is_alone else stack.enter_context(Service(ports)).port
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
        self._pause.wait(down_s)
        victim.start()

    def revive(self) -> bool:
        """Start again what has ended by itself, as a kubelet would; return whether anything had.

        Raises:
            RuntimeError: it had no reason to: only a leader that cannot renew its lease has one.
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
