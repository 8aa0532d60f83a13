"""Faults of Reserver and of its dependencies, at random instants."""

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

_CALM_END = 0.95  # share of the storm's time in which faults strike
_DOWN = 1.0  # most seconds for which Reserver stays dead
_REST = 2.0  # seconds that may always pass between two faults, as Reserver needs time for work
_AWAITED = 0.75  # share of its starts after which it is ready before the next fault
_RECORDED = 1.0
"""Seconds after readiness in which Reserver has stored all claims that it has read."""
WATCH_FAULTS = ("cut", "expire", "silence", "refuse")
LONGEST_SILENCE = 5.0
"""Most seconds for which watches are silent, or refused."""
SEEN = 1.0
"""Seconds in which an undisturbed Reserver must see a write; also the pause between two silences,
which would otherwise be a single longer one."""


def kind_of(fault: str) -> str:
    """Return the kind of a fault: `cut-watch` for `cut-watch:silence`."""
    return fault.partition(":")[0]


def ways_of(kind: str, faults: Iterable[str]) -> frozenset[str]:
    """Return the ways in which a kind of fault may strike; empty for all ways."""
    return frozenset(
        way for each, _, way in (f.partition(":") for f in faults) if each == kind and way
    )


class Faults:
    """Strikes at its due times, one fault after the other.

    Use it in one thread, which lives as long as the control plane: its processes end with it.
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
        """Number of faults, including failed bindings."""
        return self._struck.total() + self._bed.mishaps.seen.total()

    @property
    def ends(self) -> tuple[float, ...]:
        """Ends of Reserver processes, unix seconds."""
        return tuple(self._bed.reserver.ends)

    @property
    def outages(self) -> tuple[Outage, ...]:
        """Times in which Reserver, or a dependency, stood still."""
        return tuple(self._still.outages)

    @property
    def pauses(self) -> tuple[Outage, ...]:
        """Times in which no client could call Reserver."""
        return tuple(self._still.pauses)

    @property
    def are_over(self) -> bool:
        """Whether all faults at instants have struck."""
        return not self._coming

    def __str__(self) -> str:
        """Return the number of faults of each kind."""
        kinds = self._struck + self._bed.mishaps.seen
        return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"

    def next_due(self, elapsed: float) -> str | None:
        """Return the fault that is due, `elapsed` seconds into the storm; None for none."""
        return self._coming[-1] if self._coming and self._next_at <= elapsed else None

    def strike(self, elapsed: float) -> None:
        """Let the next fault strike; return when the program that it ended runs again."""
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
        """Restart programs that ended by themselves, as a kubelet would.

        Raises:
            RuntimeError: Reserver has ended by itself without a reason.
        """
        bed = self._bed
        began = time.time()
        if bed.reserver.revive():
            self._note(began, "leader stepped down")
        if not bed.plane.is_alive(bed.scheduler):
            self._restart_scheduler()
            self._note(began, "scheduler ended by itself")

    def _plan(self, elapsed: float) -> None:
        """Spread the remaining faults over the remaining time, less the time that they take."""
        if self._coming:
            mean = (_CALM_END * self._seconds - elapsed) / len(self._coming)
            mean -= statistics.fmean(self._striking_s or [0.0])
            self._next_at = elapsed + self._rng.uniform(0.2, max(_REST, 2 * mean))

    def _note(self, began: float, what: str) -> None:
        self._struck[what] += 1
        with self._log.open("a") as log:
            log.write(json.dumps({"at": began, "until": time.time(), "what": what}) + "\n")

    def cease(self) -> None:
        """End the failures of bindings."""
        self._bed.mishaps.every = 0

    def _kill_reserver(self, way: str) -> str:
        """Kill Reserver; mostly the next fault waits for its readiness, except with `at-once`."""
        self._bed.reserver.kill(self._rng.uniform(0, _DOWN))
        if way != "at-once" and self._rng.random() < _AWAITED:
            self._bed.reserver.wait_ready()
        return "reserver killed"

    def _kill_replica(self, way: str) -> str:
        """Kill the leader, kill the standby, or freeze the leader, in turn.

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
        began = time.time()
        self._bed.restart_scheduler()
        # One that ended by itself was away for longer; waits are judged from the end of a pause.
        self._still.pauses.append(Outage(began, time.time()))
        return "scheduler restarted"

    def _restart_apiserver(self, _: str) -> str:
        """Restart the API server; if Reserver may be killed, it restarts in between.

        Not before Reserver has read and stored the events of its absence: claims that neither
        process has seen are the only ones that may be forgotten, see docs/operations.md.
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
        """Compact etcd to one second ago, as the API server does with five minutes.

        A compaction to the latest revision would break the API server's own pending reads, and with
        these the watches of the checkers.
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
"""Seconds in which the API server must start on busy cores."""
