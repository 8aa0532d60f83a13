"""`python -m hack.chaos` storms the real control plane and reports broken promises."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from hack.bed.install import install
from hack.chaos.bugs import BUGS
from hack.chaos.scale import FAULTS, RUNS, Scale
from hack.chaos.storm import Storm
from hack.chaos.view import Progress, details, table
from hack.controlplane.cluster import ControlPlane
from hack.controlplane.process import StartError

_STRIKES = {
    "kill-reserver": 20,
    "restart-scheduler": 5,
    "restart-apiserver": 3,
    "restart-controllers": 5,
    "cut-watch": 12,
    "standby": 9,
    "freeze": 6,
    "partition": 6,
    "wrong-clock": 6,
}
_BIND_FAULT_EVERY = 10
_LONGER = 6  # highest multiple of the planned time of a storm
_STRIKES_OF_ALL = {
    "kill-reserver": 8,
    "restart-scheduler": 3,
    "restart-apiserver": 2,
    "restart-controllers": 2,
    "cut-watch": 6,
    "freeze": 4,
    "partition": 2,
    "wrong-clock": 3,
}


def main() -> None:
    """The command line."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Else started programs would stay.
    console = Console()
    if options.list_bugs:
        for name, bug in BUGS.items():
            console.print(f"[bold]{name}[/bold]  {bug.broke}", highlight=False)
        return
    console.print(f"seed {options.seed}", highlight=False)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="reserver-chaos-"))
    outcomes = []
    console.print("starting the control plane")
    try:
        with ControlPlane() as plane:
            reserver_kubeconfig = install(plane.kubeconfig, plane.folder)
            for run in _runs(options):
                with Progress(console, run) as show:
                    storm = _storm(run, options, plane, reserver_kubeconfig, folder / run, show)
                    outcomes.append(storm.rage())
                console.print(details(outcomes[-1]), highlight=False, soft_wrap=True)
    except StartError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(f"interrupted; histories and logs: {folder}")
    console.print(table(outcomes))
    if all(outcome.is_good for outcome in outcomes):
        if not options.keep:
            shutil.rmtree(folder)
        return
    sys.exit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hack.chaos", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100, help="of 8 CPUs each")
    parser.add_argument("--pods", type=int, default=2000, help="created during a storm")
    parser.add_argument("--reservations", type=int, default=300, help="written during a storm")
    parser.add_argument("--groups", type=int, default=60, help="of pods, reserved for as well")
    parser.add_argument("--minutes", type=float, default=0.7, help="least duration of each storm")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))  # noqa: S311
    parser.add_argument("--faults", default=",".join(RUNS), help="the runs (default: all of them)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep histories and logs there")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--bug", default="", help="storm with a past bug, or all of them")
    what.add_argument("--list-bugs", action="store_true", help="list the past bugs and exit")
    options = parser.parse_args()
    options.bug = ",".join(BUGS) if options.bug == "all" else options.bug
    if unknown := set(filter(None, options.bug.split(","))) - set(BUGS):
        parser.error(f"no such bugs: {', '.join(sorted(unknown))}; there are {', '.join(BUGS)}")
    if unknown := set(options.faults.split(",")) - set(RUNS):
        parser.error(f"no such runs: {', '.join(sorted(unknown))}; there are {', '.join(RUNS)}")
    kept = [run for run in _runs(options) if options.keep and (options.keep / run).exists()]
    if kept:
        parser.error(f"--keep {options.keep}: has {', '.join(kept)} already; name another folder")
    return options


def _runs(options: argparse.Namespace) -> list[str]:
    runs: str = options.bug or options.faults
    return runs.split(",")


def _storm(
    run: str,
    options: argparse.Namespace,
    plane: ControlPlane,
    reserver_kubeconfig: Path,
    folder: Path,
    show: Callable[[str], object],
) -> Storm:
    strikes: Mapping[str, int] = _STRIKES_OF_ALL if run == "all" else _STRIKES
    names = {"none": frozenset[str](), "all": frozenset(FAULTS)}.get(run, frozenset({run}))
    every = _BIND_FAULT_EVERY
    if options.bug:
        bug = BUGS[run]
        names, strikes, every = bug.faults, bug.strikes, bug.every
    scale = Scale(
        nodes=options.nodes,
        pods=options.pods,
        reservations=options.reservations,
        groups=options.groups,
        seconds=options.minutes * 60,
        longest_seconds=_LONGER * options.minutes * 60,
        strikes=strikes,
        bind_fault_every=every,
    )
    return Storm(
        run=run,
        faults=names,
        scale=scale,
        seed=options.seed,
        plane=plane,
        reserver_kubeconfig=reserver_kubeconfig,
        folder=folder,
        show=show,
    )


if __name__ == "__main__":
    main()
