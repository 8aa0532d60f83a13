"""What is done to reserver and to all that it depends on, at random instants."""

from __future__ import annotations

import base64
import json
import random
import statistics
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from hack.bed.bed import Bed
from hack.chaos.scale import Scale
from hack.chaos.standstill import Standstill
from hack.promises.history import Outage

_CALM_END = 0.95  # the part of the storm, as a share of its time, in which faults strike
_DOWN = 1.0  # seconds that reserver stays dead at most
_REST = (
    2.0  # seconds between two faults that there may be in any case: reserver has to do some work
)
_AWAITED = 0.75  # share of its starts after which it is ready before the next fault
_RECORDED = 1.0
"""After how many seconds the claims are in the store that reserver knows of when it is ready."""
WATCH_FAULTS = ("cut", "expire", "silence", "refuse")
LONGEST_SILENCE = 5.0
"""How long watches may say nothing, or be refused, in seconds."""
SEEN = 1.0
"""How long reserver may take to see a write while nothing holds it up, in seconds; so long it has
between two silences, or they would be one that is longer."""


def kind_of(fault: str) -> str:
    """Return the kind of a fault: `cut-watch` of `cut-watch:silence`, which is one way of it."""
    return fault.partition(":")[0]


def ways_of(kind: str, faults: Iterable[str]) -> frozenset[str]:
    """Return in which ways only a kind of fault is to strike; empty if in all."""
    return frozenset(
        way for each, _, way in (f.partition(":") for f in faults) if each == kind and way
    )


class Faults:
    """Strikes when it is time, one fault after the other.

    Use it in one thread, which lives as long as the control plane: what it starts ends with that.
    """

    def __init__(self, seed: int, scale: Scale, names: Iterable[str], bed: Bed, log: Path) -> None:
        self._rng = random.Random(seed)  # noqa: S311
        self._seconds = scale.seconds
        self._bed = bed
        self._names = frozenset(names)
        self._kinds = {kind_of(name) for name in self._names}
        self._log = log
        self._struck: Counter[str] = Counter()
        self._pause = threading.Event()
        if "bind-faults" in self._kinds:
            bed.mishaps.every = scale.bind_fault_every
            bed.mishaps.only = ways_of("bind-faults", self._names)
        self._still = Standstill(self._rng, bed)
        self._coming = [name for name in self._names for _ in range(scale.strikes.get(name, 0))]
        self._rng.shuffle(self._coming)
        self._next_at = 0.0
        self._striking_s: list[float] = []
        self._plan(0.0)

    @property
    def count(self) -> int:
        """How many faults there were, bindings that went wrong included."""
        return self._struck.total() + self._bed.mishaps.seen.total()

    @property
    def ends(self) -> tuple[float, ...]:
        """When a reserver ended, unix seconds."""
        return tuple(self._bed.reserver.ends)

    @property
    def outages(self) -> tuple[Outage, ...]:
        """When Reserver, or what it depends on, stood still."""
        return tuple(self._still.outages)

    @property
    def pauses(self) -> tuple[Outage, ...]:
        """When nobody could call it."""
        return tuple(self._still.pauses)

    @property
    def are_over(self) -> bool:
        """Whether all have struck that come at instants."""
        return not self._coming

    def __str__(self) -> str:
        """Return how many of each kind there were."""
        kinds = self._struck + self._bed.mishaps.seen
        return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"

    def next_due(self, elapsed: float) -> str | None:
        """The fault that has to strike now, so many seconds into the storm."""
        return self._coming[-1] if self._coming and self._next_at <= elapsed else None

    def strike(self, elapsed: float) -> None:
        """Lets the next fault strike; returns when what it ended runs again."""
        arms: dict[str, Callable[[str], str]] = {
            "kill-reserver": self._kill_reserver,
            "standby": self._kill_replica,
            "restart-scheduler": self._restart_scheduler,
            "restart-apiserver": self._restart_apiserver,
            "restart-controllers": self._restart_controllers,
            "cut-watch": self._cut_watch,
            "freeze": self._still.freeze,
            "partition": self._still.part,
            "wrong-clock": self._still.set_clock_wrong,
        }
        began = time.time()
        kind, _, way = self._coming.pop().partition(":")
        self._note(began, arms[kind](way))
        seconds = time.time() - began
        self._striking_s.append(seconds)
        self._plan(elapsed + seconds)

    def mend(self) -> None:
        """Starts again what has ended by itself, as a kubelet would.

        Raises:
            RuntimeError: reserver has ended by itself and had no reason to.
        """
        bed = self._bed
        began = time.time()
        if bed.reserver.revive():
            self._note(began, "leader stepped down")
        if not bed.plane.is_alive(bed.scheduler):
            self._restart_scheduler()
            self._note(began, "scheduler ended by itself")

    def _plan(self, elapsed: float) -> None:
        """Spreads what is to come over the time that is left, less what striking takes."""
        if self._coming:
            mean = (_CALM_END * self._seconds - elapsed) / len(self._coming)
            mean -= statistics.fmean(self._striking_s or [0.0])
            self._next_at = elapsed + self._rng.uniform(0.2, max(_REST, 2 * mean))

    def _note(self, began: float, what: str) -> None:
        self._struck[what] += 1
        with self._log.open("a") as log:
            log.write(json.dumps({"at": began, "until": time.time(), "what": what}) + "\n")

    def cease(self) -> None:
        """No binding goes wrong any more."""
        self._bed.mishaps.every = 0

    def _kill_reserver(self, way: str) -> str:
        """Kills it; mostly the next fault comes once it is ready, but not one `at-once`."""
        self._bed.reserver.kill(self._rng.uniform(0, _DOWN))
        if way != "at-once" and self._rng.random() < _AWAITED:
            self._bed.reserver.wait_ready()
        return "reserver killed"

    def _kill_replica(self, way: str) -> str:
        """Kills the leader, or the standby, or has the leader stand still, in turn.

        One of them leads before the next fault.
        """
        turn = 2 if way == "freeze" else len(self._striking_s) % 3
        if turn == 2:  # noqa: PLR2004 (the last of them)
            what = self._still.freeze_leader()
            self._bed.reserver.wait_ready()
            return what
        is_leader = turn == 0
        down = self._rng.uniform(0, _DOWN)
        self._bed.reserver.kill_in_turn(down, is_leader=is_leader)
        return "leader killed" if is_leader else "standby killed"

    def _restart_scheduler(self, _: str = "") -> str:
        self._bed.restart_scheduler()
        return "scheduler restarted"

    def _restart_apiserver(self, _: str) -> str:
        """Ends it and starts it; where reserver is killed at all, it comes back in between.

        Not before reserver has read and written down what happened while it was away: claims that
        neither was told of are the one kind that is forgotten, as docs/operations.md says.
        """
        plane = self._bed.plane
        if "kill-reserver" in self._kinds:
            self._bed.reserver.wait_ready()
            self._pause.wait(_RECORDED)
        plane.stop_apiserver()
        if "kill-reserver" in self._kinds:
            self._bed.reserver.kill(self._rng.uniform(0, _DOWN))
        plane.start_apiserver(_START_S)
        return "API server restarted"

    def _restart_controllers(self, _: str) -> str:
        self._bed.plane.restart_controllers()
        return "controllers restarted"

    def _cut_watch(self, way: str) -> str:
        what = self._hold_up_watches(way or self._rng.choice(WATCH_FAULTS))
        self._pause.wait(SEEN)
        return what

    def _compact(self) -> None:
        """Has etcd forget what is older than a second, as the API server does with five minutes.

        With the latest of all it would break off what the API server itself has yet to read, and
        with that the watches of those who judge.
        """
        url = f"{self._bed.plane.etcd_url}/v3/kv"
        now = _post(f"{url}/range", {"key": base64.b64encode(b"/").decode()})
        self._pause.wait(SEEN)
        _post(f"{url}/compaction", {"revision": now["header"]["revision"]})

    def _hold_up_watches(self, how: str) -> str:
        proxy = self._bed.proxy
        assert proxy is not None  # noqa: S101 (for mypy)
        if how == "twice":
            proxy.cut()
            self._pause.wait(self._rng.uniform(0.05, SEEN))
        if how in {"expire", "refuse"}:
            self._compact()  # a list in pages may meet 410, too
        if how == "silence":
            proxy.hush(silent=True)
            self._pause.wait(self._rng.uniform(1, LONGEST_SILENCE))
            proxy.hush(silent=False)
            return "watches silent"
        if how == "refuse":
            proxy.refuse_watches(refuse=True)
        proxy.cut(expire=how == "expire")
        if how == "refuse":
            self._pause.wait(self._rng.uniform(1, LONGEST_SILENCE))
            proxy.refuse_watches(refuse=False)
        return {"cut": "watches cut", "expire": "watches expired"}.get(how, "watches refused")


def _post(url: str, body: dict[str, str]) -> dict[str, dict[str, str]]:
    request = urllib.request.Request(url, data=json.dumps(body).encode())  # noqa: S310 (our own URL)
    with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310
        answer: dict[str, dict[str, str]] = json.load(response)
        return answer


_START_S = 180.0
"""How long the API server may take to start on cores that the storm and others keep busy."""
