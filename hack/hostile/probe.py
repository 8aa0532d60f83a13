"""Reserver as others see it: duration of answers, readiness, and memory."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from hack.bed.api import Api
from hack.bench.client import BadAnswerError, Client, filter_request
from hack.bench.documents import new_pod
from hack.hostile.crowd import GANG
from hack.hostile.world import TENANT, World
from hack.programs import memory
from hack.reserver_process import ReserverProcess

_SAMPLE = 420
"""Nodes of 1,000 that kube-scheduler sends in a call."""

_BODIES = 50
_FLOOR_BYTES = 4096
"""Bytes of the floor's answers: about as many as for a hundred names."""

_LOOK_S = 0.05
_TENANTS_TURN = 25
"""One in this many Filter calls is for a pod of the tenant."""

_ANEW_S = 20
"""Seconds between two look-ups of the tenant's pods."""

_AGAIN_S = 0.2
_LONGER = 3
"""Highest multiple of the planned duration, when answers are slow."""

_UNREADABLE = "400 bad request"
"""The answer for a pod that exceeds the bounds on pods."""

_HELD = '"event": "event loop held"'


class Hold(NamedTuple):
    """A block of the event loop.

    Attributes:
        by: a function of Reserver.
        task: the coroutine that called it.
        seconds: duration.
        cpu_seconds: CPU time of Reserver meanwhile; other processes had the cores for the rest.
    """

    by: str
    task: str
    seconds: float
    cpu_seconds: float

    @classmethod
    def read(cls, log: str) -> Iterator[Self]:
        """Yield the blocks in a log."""
        for line in log.splitlines():
            if _HELD in line:
                said = json.loads(line)
                yield cls(said["by"], said["task"], said["seconds"], said["cpu_seconds"])


@dataclass
class Phase:
    """The observations of one phase.

    Attributes:
        name: name of the phase.
        seconds: seconds of each Filter call for the shop's pods, from its due time.
        tenants: the same for the tenant's own pods.
        floor: the same for another server that reads as much and only answers: the machine's share
            of any answer.
        given_away: answers with a node on which all room is held for other pods.
        failures: calls with a wrong answer or none.
        looks: seconds of each call of /readyz.
        unready: calls of /readyz without status 200.
        rss: highest resident memory, in bytes.
        held: blocks of the event loop above a tenth of a second, from Reserver's log.
    """

    name: str
    seconds: list[float] = field(default_factory=list)
    tenants: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)
    given_away: int = 0
    failures: list[str] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    unready: int = 0
    rss: int = 0
    held: list[Hold] = field(default_factory=list)


class Probe:
    """Calls Reserver as kube-scheduler and the kubelet do.

    Args:
        reserver: a ready Reserver.
        world: the cluster of the calls.
        api: client for the tenant's pending pods.
        rate: Filter calls a second.
        floor: a server that only answers, in its own process.
    """

    def __init__(
        self, reserver: ReserverProcess, world: World, api: Api, rate: float, floor: Client
    ) -> None:
        self._reserver = reserver
        self._world = world
        self._api = api
        self._rate = rate
        self._floor = floor
        rng = random.Random(0)  # noqa: S311
        samples = [rng.sample(world.nodes, min(_SAMPLE, len(world.nodes))) for _ in range(_BODIES)]
        self._samples = samples
        pods = [new_pod(f"new-{number}") for number in range(_BODIES)]
        self._bodies = [
            filter_request("/filter", pod, names) for pod, names in zip(pods, samples, strict=True)
        ]
        self._asked = filter_request(f"/floor/{_FLOOR_BYTES}", pods[0], samples[0])

    def run(self, name: str, seconds: float, attend: Callable[[Phase], None]) -> Phase:
        """Call for `seconds`; `attend` is called every second."""
        phase, stop = Phase(name), threading.Event()
        before = self._reserver.log.stat().st_size
        threads = [
            threading.Thread(target=work, args=(phase, stop))
            for work in (self._look, self._look_at_memory)
        ]
        for thread in threads:
            thread.start()
        try:
            self._ask(phase, seconds, attend)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        said = self._reserver.log.read_bytes()[before:].decode(errors="replace")
        phase.held += Hold.read(said)
        return phase

    def _ask(self, phase: Phase, seconds: float, attend: Callable[[Phase], None]) -> None:
        calls, number = int(seconds * self._rate), 0
        due = began = time.monotonic()
        strangers = itertools.cycle([b""])
        client: Client | None = None
        while number < calls and time.monotonic() - began < _LONGER * seconds:
            if number % int(_ANEW_S * self._rate) == 0:
                strangers = itertools.cycle(self._tenants() or [b""])
                due = time.monotonic()  # the probe's own work delays no call
            if number % int(self._rate) == 0:
                attend(phase)
            time.sleep(max(0.0, due - time.monotonic()))
            own = next(strangers) if number % _TENANTS_TURN == 0 else b""
            try:
                client = client or Client(self._reserver.port)
                answer = json.loads(client.call(own or self._bodies[number % _BODIES]))
            except (BadAnswerError, OSError) as error:
                client = None
                if not (own and _UNREADABLE in str(error)):
                    phase.failures.append(repr(error))
                    time.sleep(_AGAIN_S)
                    attend(phase)
                    continue
                answer = {}
            (phase.tenants if own else phase.seconds).append(time.monotonic() - due)
            if answer.get("Error"):
                phase.failures.append(answer["Error"])
            elif not self._world.held.isdisjoint(answer.get("NodeNames") or ()):
                phase.given_away += 1
            self._ask_floor(phase, due + 0.5 / self._rate)
            due += 1 / self._rate
            number += 1

    def _ask_floor(self, phase: Phase, due: float) -> None:
        """Call the floor between two calls, as late as these if answers are late."""
        if time.monotonic() < due:
            time.sleep(due - time.monotonic())
        began = time.monotonic()
        self._floor.call(self._asked)
        phase.floor.append(time.monotonic() - min(due, began))

    def _tenants(self) -> Sequence[bytes]:
        """Return calls for the tenant's pending pods, in kube-scheduler's form."""
        pods = [
            pod
            for namespace in (TENANT, GANG)
            for pod in self._api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        ]
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        return [
            filter_request("/filter", pod, self._samples[number % _BODIES])
            for number, pod in enumerate(waiting)
        ]

    def _look(self, phase: Phase, stop: threading.Event) -> None:
        """Check whether Reserver is ready, and the duration of its answer."""
        while not stop.wait(_LOOK_S):
            began = time.monotonic()
            try:
                with Client(self._reserver.port) as client:
                    client.call(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            except (BadAnswerError, OSError):
                phase.unready += 1
            phase.looks.append(time.monotonic() - began)

    def _look_at_memory(self, phase: Phase, stop: threading.Event) -> None:
        while not stop.wait(_LOOK_S):
            phase.rss = max(phase.rss, memory(self._reserver.process.pid, "VmRSS"))
