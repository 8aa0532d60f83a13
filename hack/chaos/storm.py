"""One run: a storm in its own world, then the check of all writes in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hack.bed.api import Api
from hack.bed.bed import Bed, Setup, serving
from hack.bed.install import LIST_STORE
from hack.bed.mishaps import LATEST_REQUEST, LONGEST_DELAY, Mishaps
from hack.bed.wall_clock import WallClock
from hack.chaos.audit import Landings, Remains
from hack.chaos.book import Book
from hack.chaos.churn import Churn
from hack.chaos.crew import Crew
from hack.chaos.eye import Eye
from hack.chaos.faults import LONGEST_SILENCE, SEEN, Faults, kind_of, ways_of
from hack.chaos.forger import Forger
from hack.chaos.groups import Groups
from hack.chaos.landlord import Landlord
from hack.chaos.manager import Writer
from hack.chaos.namesakes import Namesakes, Strangers
from hack.chaos.scale import Scale
from hack.chaos.standing import follow
from hack.chaos.steward import Steward
from hack.chaos.store import Journal, StoreHand
from hack.chaos.tenant import TENANT, Tenant
from hack.chaos.view import Outcome
from hack.chaos.world import SCHEDULER, World
from hack.controlplane.cluster import ControlPlane
from hack.promises.check import Rules, judge, read_history
from hack.promises.history import with_outages
from hack.promises.record import Recorder

_TICK = 0.2  # seconds
_PLACED_S = 30.0
"""Seconds in which Reserver must hold empty nodes."""
_TIDY_S = 15.0
"""Seconds in which Reserver must remove ended entries, and see new ones."""
_LEADERLESS_S = 20.0
"""Seconds without a leader after its end: the lease, and the lists of the next leader."""
_PROXIED = frozenset({"cut-watch", "bind-faults", "freeze"})


class _Did(NamedTuple):
    """The actions of a storm, and the objects left after it."""

    faults: Faults
    remains: Remains
    created: int
    forged: int
    namesakes: int


@dataclass(frozen=True, kw_only=True)
class Storm:
    """One run.

    Attributes:
        run: its name.
        faults: names of its faults, `KIND` or `KIND:WAY`.
        scale: its size.
        seed: seed of all random numbers; threads add further randomness.
        plane: the control plane, without a scheduler of our name.
        reserver_kubeconfig: kubeconfig of Reserver's account.
        folder: new folder for history and logs.
        show: shows the progress; called several times a second.
    """

    run: str
    faults: frozenset[str]
    scale: Scale
    seed: int
    plane: ControlPlane
    reserver_kubeconfig: Path
    folder: Path
    show: Callable[[str], object]

    @property
    def _kinds(self) -> frozenset[str]:
        return frozenset(map(kind_of, self.faults))

    def rage(self) -> Outcome:
        """Run the storm, wait until it has settled, and check it."""
        began = time.monotonic()
        self.folder.mkdir(parents=True)
        stop = threading.Event()
        self.show("filling the nodes")
        with (
            closing(Api(self.plane.kubeconfig)) as api,
            World(self.plane.kubeconfig, api, self.scale, self.seed, stop) as world,
        ):
            groups = Groups()
            book = Book(world.nodes, self._grace(), groups)
            with Recorder(
                self.plane.kubeconfig,
                self.folder,
                configmaps=[LIST_STORE],
                objects=True,
                not_in=TENANT,
            ):
                did = self._storm(api, world, book, groups, stop)
            self.show("judging")
            history = with_outages(read_history(self.folder), did.faults.outages)
            report = judge(history, self._rules(did.faults))
            (self.folder / "report.txt").write_text(str(report))
            landings = Landings.of(book)
        return Outcome(
            run=self.run,
            pods=did.created,
            pods_bound=book.bound,
            reservations=len(book.written) + len(list(groups)),
            slots=sum(len(group.pods) for group in groups),
            owners=landings.lived,
            missed=landings.missed,
            forged=did.forged,
            namesakes=did.namesakes,
            faults=did.faults.count,
            kinds=str(did.faults),
            violations=(*map(str, report.violations), *did.remains.violations()),
            seconds=time.monotonic() - began,
            folder=self.folder,
        )

    def _rules(self, faults: Faults) -> Rules:
        away = _LEADERLESS_S if "standby" in self._kinds else 0.0
        rules = Rules(
            schedulers=frozenset({SCHEDULER}),
            grace_s=self._grace(),
            ends=faults.ends,
            pauses=faults.pauses,
        )
        return replace(rules, patience_s=rules.patience_s + away, past_s=rules.past_s + away)

    def _grace(self) -> float:
        """Return the seconds in which a write must be seen or carried out."""
        late = LATEST_REQUEST if "bind-faults" in self._kinds else 0
        return SEEN + late + (LONGEST_SILENCE if "cut-watch" in self._kinds else 0)

    def _storm(
        self, api: Api, world: World, book: Book, groups: Groups, stop: threading.Event
    ) -> _Did:
        with ExitStack() as stack:
            journal = Journal(self.folder / "manager.jsonl")
            stack.callback(journal.close)
            bed = stack.enter_context(self._bed())
            faults = Faults(self.seed, self.scale, self.faults, bed, self.folder / "faults.jsonl")
            eye = Eye(api, world.name, book)
            store = StoreHand(api, journal, stop)
            churn = Churn(self.seed, self.scale, book, world.pods)
            writers = [
                Writer(name, self.seed + number, self.scale, book, store, world.pods)
                for number, name in enumerate(("anna", "bert"), 1)
            ]
            steward = Steward(self.seed + 3, self.scale, book, groups, store, world.pods)
            landlord = Landlord(self.seed + 5, self.scale, book, groups, store, world.pods)
            forger = Forger(self.seed + 4, book, groups, world.pods, world.nodes)
            namesakes = Namesakes(self.seed + 6, book, groups, world.strangers)
            other_eye = Eye(api, world.strangers.namespace, Strangers(book))
            crew = stack.enter_context(Crew(stop, self._attend(book, faults)))
            crew.add(eye.follow, stop)
            crew.add(other_eye.follow, stop)
            crew.add(partial(follow, api, groups), stop)
            crew.until(eye.looked.is_set, "looking", seconds=30)
            book.bound = 0  # the storm's pods only
            landlord.begin()
            if not crew.until(lambda: landlord.is_placed, "whole nodes", seconds=_PLACED_S):
                raise TimeoutError("whole nodes are not held")
            managers = (each.write for each in writers)
            others = (forger.forge, namesakes.come)
            tasks = (churn.blow, steward.write, landlord.write, *others, *managers)
            works = [crew.add(task, crew.calm) for task in tasks]
            with self._tenant(api, bed):
                self._strike(crew, faults, churn)
            look = partial(Remains.of, api, book, groups, world.name, bed.reserver)
            remains = self._settle(crew, works, book, bed.mishaps, look)
        return _Did(faults, remains, churn.created, forger.created, namesakes.created)

    def _tenant(self, api: Api, bed: Bed) -> AbstractContextManager[None]:
        if "hostile" not in self._kinds:
            return nullcontext()
        tenant = Tenant(bed.reserver.grpc_address, self.seed, ways_of("hostile", self.faults))
        return tenant.at_work(self.plane.kubeconfig, api, self.folder)

    def _strike(self, crew: Crew, faults: Faults, churn: Churn) -> None:
        """Continue until the time is up, all faults have struck and all pods were created."""
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < self.scale.longest_seconds:
            if elapsed > self.scale.seconds and faults.are_over and churn.is_over:
                break
            fault = faults.next_due(elapsed)
            crew.look(fault or "storm")
            if fault:
                faults.strike(elapsed)
            else:
                crew.stop.wait(_TICK)
        faults.cease()

    def _settle(
        self,
        crew: Crew,
        works: list[Future[None]],
        book: Book,
        mishaps: Mishaps,
        look: Callable[[], Remains],
    ) -> Remains:
        """Wait for the landing of owners; return the state of the stores afterwards."""
        crew.calm.set()
        crew.until(lambda: all(work.done() for work in works), "last writes", seconds=60)
        seconds = self.scale.settle_seconds
        crew.until(lambda: not Landings.of(book).waiting, "owners land", seconds=seconds)
        crew.until(lambda: not mishaps.undecided, "last answers", seconds=LONGEST_DELAY)
        remains = look()

        def is_tidy() -> bool:
            nonlocal remains
            remains = look()
            return not any(remains.violations())

        # A look at unfinished work may see half of it, so one tidy look suffices.
        crew.until(is_tidy, "reserver tidies up", seconds=_TIDY_S)
        return remains

    def _bed(self) -> AbstractContextManager[Bed]:
        """Return Reserver and kube-scheduler, with a proxy if a fault needs one."""
        setup = Setup(
            scheduler=SCHEDULER,
            mishaps=Mishaps(self.seed),
            is_proxied=bool(self._kinds & _PROXIED),
            clock=WallClock(self.folder / "clock") if "wrong-clock" in self._kinds else None,
            count=2 if "standby" in self._kinds else 1,
            flags=("--grpc-address", "127.0.0.1:0") if "hostile" in self._kinds else (),
            is_parted="partition" in self._kinds,
        )
        return serving(self.plane, self.reserver_kubeconfig, self.folder, setup)

    def _attend(self, book: Book, faults: Faults) -> Callable[[str], None]:
        def attend(phase: str) -> None:
            faults.mend()
            waiting = sum(not pod.node for pod in book.pods())
            self.show(
                f"{phase:<18} {book.bound} pods bound, {waiting} wait, {len(book.live())} "
                f"reservations live of {len(book.written)}, {faults.count} faults"
            )

        return attend
