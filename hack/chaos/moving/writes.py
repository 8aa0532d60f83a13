"""`python -m hack.chaos.moving.writes` strikes at each write of a move in turn.

Reserver is killed before a write is carried out, and afterwards; kube-apiserver, kube-scheduler and
kube-controller-manager are restarted at the write; the target node is cordoned for a moment. The
pod has a volume that both nodes can use. A second move follows the first one, and takes the pod
back. Then the next two moves are struck at another kind of write, until no kind is left. Each move
must land on its seat, unless its node closes, and the log of all writes is checked
(`hack.promises`). The exit status is 1 if a move did not land, or a promise was broken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event, Timer
from typing import NamedTuple

from hack.bed.bed import Bed
from hack.chaos.moving.bed import SCHEDULER, opened
from hack.chaos.moving.deadly import Deadly
from hack.chaos.moving.people import ENDED, People
from hack.promises.check import Rules, judge, read_history
from hack.promises.record import Recorder
from hack.reserver_process import wait_for
from reserver.moves.phases import MoveMode

MOST = 30
"""More than the number of kinds of writes of a move."""

_LAND_S = 120.0
_CLOSED_S = 3.0

Act = Callable[[], object]


class Strike(NamedTuple):
    """A strike at a component.

    Attributes:
        carry_out: strikes, and returns once the component is back.
        prepare: called before each move.
        ends: allowed reasons of ended moves.
    """

    carry_out: Act
    prepare: Act = lambda: None
    ends: frozenset[str] = frozenset({"Landed"})


class Striking:
    """Moves a pod to and fro, and strikes once each time.

    Attributes:
        there: target node of the first move.
        moves: number of moves.
        strikes: number of strikes.
    """

    def __init__(
        self,
        bed: Bed,
        mishaps: Deadly,
        people: People,
        mode: MoveMode = MoveMode.RESERVE_FIRST,
    ) -> None:
        self._mode = mode
        self._bed = bed
        self._mishaps = mishaps
        self._people = people
        self._before = self.there = ""
        self._struck, self._over = Event(), Event()
        self.moves = self.strikes = 0

    def at_each_write(self, strike: Strike, *, is_done: bool) -> Iterator[str]:
        """Strike at each kind of write, one in each pair of moves; yield the kinds."""
        struck: list[str] = []
        while write := self._once(strike, struck, is_done=is_done):
            yield write
            struck.append(write)
            if len(struck) > MOST:
                raise AssertionError(f"a move has more than {MOST} kinds of writes: {struck}")

    def _once(self, strike: Strike, struck: list[str], *, is_done: bool) -> str:
        """Strike at one write of a move; return its kind, empty if no new kind is left."""
        strike.prepare()
        (pod,) = self._people.pods("web")
        here, there = sorted(self._bed.nodes, key=lambda node: node != pod.spec.node_name)
        self.there = there
        self._struck.clear()
        self._over.clear()
        self._mishaps.arm(self._stand_still, is_done=is_done, apart=struck, but=self._before)
        pod, terms = pod.metadata.name, {"timeout": "5m", "mode": self._mode}
        away = self._people.move(pod, to={"node": there}, **terms)
        home = self._people.move(pod, away, to={"node": here}, **terms)
        self._before = f"({away}|{home})"
        self.moves += 2
        wait_for(lambda: self._struck.is_set() or self._is_over(home), "it strikes", _LAND_S)
        write = self._mishaps.struck
        if write:  # In this thread: a process that it starts ends with the thread.
            self.strikes += 1
            strike.carry_out()
            self._over.set()
        self._mishaps.disarm()
        for name in (away, home):
            wait_for(partial(self._is_over, name), f"{name} ends", _LAND_S)
            status = self._people.status(name)
            if status["reason"] not in strike.ends:
                raise AssertionError(f"struck at {write}: {status}")
        wait_for(self._people.have_no_seats, "no seat is left", _LAND_S)
        return write

    def _stand_still(self) -> None:
        self._struck.set()
        self._over.wait(_LAND_S)

    def _is_over(self, name: str) -> bool:
        return bool(self._people.status(name).get("phase") in ENDED)


class Closing:
    """Closes a pod's target node for a moment."""

    def __init__(self, people: People, striking: Striking) -> None:
        self._people = people
        self._striking = striking
        self._opening = Timer(0.0, lambda: None)

    def close(self) -> None:
        """Cordon the node; it is uncordoned a moment later."""
        change = partial(self._people.core.patch_node, self._striking.there)
        self._people.insist(partial(change, {"spec": {"unschedulable": True}}))
        is_open = partial(change, {"spec": {"unschedulable": False}})
        self._opening = Timer(_CLOSED_S, partial(self._people.insist, is_open))
        self._opening.start()

    def open(self) -> None:
        """Return once the node is uncordoned."""
        if self._opening.is_alive():
            self._opening.join()


def _strikes(bed: Bed, people: People, striking: Striking) -> dict[str, Strike]:
    closing = Closing(people, striking)
    plane = bed.plane

    def restart_apiserver() -> None:
        """Restart it, and the clients whose reflectors may wait for minutes after several restarts.

        From the fifth time on they wait for up to a minute (client-go's tools/cache/reflector.go),
        and a ReplicaSet's controller creates no pod while its cache lacks one of its own writes.
        """
        plane.restart_apiserver()
        bed.restart_scheduler()
        plane.restart_controllers()

    return {
        "reserver": Strike(partial(bed.reserver.kill, 0.0)),
        "kube-apiserver": Strike(restart_apiserver),
        "kube-scheduler": Strike(bed.restart_scheduler),
        "kube-controller-manager": Strike(plane.restart_controllers),
        # The following move has no pod to take back if the first one ends elsewhere.
        "the target": Strike(
            closing.close,
            closing.open,
            frozenset({"Landed", "LandedElsewhere", "NothingToFollow"}),
        ),
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.chaos.moving.writes", description=__doc__)
    parser.add_argument("--only", help="what is struck (default: all of them)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep history and logs there")
    options = parser.parse_args()
    mishaps = Deadly()
    with opened(2, mishaps, options.keep) as bed:
        people = People(bed)
        people.add_volume("data", *bed.nodes)
        people.deploy("web", 1, claim="data")
        people.wait_bound("web", 1)
        with Recorder(bed.kubeconfig, bed.folder, objects=True, moves=True):
            striking = Striking(bed, mishaps, people)
            for what, strike in _strikes(bed, people, striking).items():
                if options.only in {None, what}:
                    _report(what, striking, strike)
        report = judge(read_history(bed.folder), _rules(bed))
    print(report)
    sys.exit(bool(report.violations))


def _report(what: str, striking: Striking, strike: Strike) -> None:
    for is_done in (False, True):
        when = "after" if is_done else "before"
        writes = striking.at_each_write(strike, is_done=is_done)
        for number, write in enumerate(writes, 1):
            print(f"{what} {when} write {number}, {write}", flush=True)


def _rules(bed: Bed) -> Rules:
    return Rules(schedulers=frozenset({SCHEDULER}), ends=tuple(bed.reserver.ends))


if __name__ == "__main__":
    main()
