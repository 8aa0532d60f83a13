"""What others notice of Reserver: how long its answers take, whether it is ready, what it needs."""

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
"""How many of 1,000 nodes kube-scheduler asks about."""

_BODIES = 50
_FLOOR_BYTES = 4096
"""How long the floor's answers are: about as long as a hundred names."""

_LOOK_S = 0.05
_TENANTS_TURN = 25
"""One Filter call of so many is for a pod of the tenant."""

_ANEW_S = 20
"""After so many seconds the tenant's pods are looked up anew."""

_AGAIN_S = 0.2
_LONGER = 3
"""So many times as long as planned it may take at most, when answers are slow."""

_UNREADABLE = "400 bad request"
"""What is answered for a pod that says more than is read of one."""

_HELD = '"event": "event loop held"'


class Hold(NamedTuple):
    """What held the event loop.

    Attributes:
        by: a function of Reserver's.
        task: what it was called for.
        seconds: for how long.
        cpu_seconds: what it computed meanwhile; the rest other processes had the cores.
    """

    by: str
    task: str
    seconds: float
    cpu_seconds: float

    @classmethod
    def read(cls, log: str) -> Iterator[Self]:
        """Yield what a log tells of."""
        for line in log.splitlines():
            if _HELD in line:
                said = json.loads(line)
                yield cls(said["by"], said["task"], said["seconds"], said["cpu_seconds"])


@dataclass
class Phase:
    """What was noticed in one phase.

    Attributes:
        name: of the phase.
        seconds: how long each Filter call for the shop's pods took, from when it was due.
        tenants: the same for the tenant's own pods.
        floor: the same for a server beside that reads as much and only answers: what the machine
            adds to any answer.
        given_away: answers that offered a node where all is held for others.
        failures: calls that were not answered as they must be.
        looks: at /readyz: how long each took, in seconds.
        unready: how often /readyz was not 200.
        rss: the most memory that was resident, in bytes.
        held: what held the event loop for longer than a tenth of a second, by Reserver's own log.
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
    """Asks Reserver as kube-scheduler and the kubelet do.

    Args:
        reserver: ready.
        world: what it is asked about.
        api: where the tenant's waiting pods are found.
        rate: Filter calls a second.
        floor: a server that only answers, in a process of its own.
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
        """Asks for so long; `attend` is called every second."""
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
                due = time.monotonic()  # what the probe does itself makes nobody late
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
        """Asks the floor between two calls, as late as these if answers are late."""
        if time.monotonic() < due:
            time.sleep(due - time.monotonic())
        began = time.monotonic()
        self._floor.call(self._asked)
        phase.floor.append(time.monotonic() - min(due, began))

    def _tenants(self) -> Sequence[bytes]:
        """Calls for the tenant's pods that wait, as kube-scheduler would make them."""
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
        """Notices whether Reserver is ready, and how long it takes to say so."""
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
