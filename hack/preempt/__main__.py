"""`python -m hack.preempt` storms kube-scheduler, with and without Reserver's Preempt verb."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from hack.chaos.world import SCHEDULER_CONFIG, install
from hack.controlplane.cluster import ControlPlane, StartError, render_scheduler_config
from hack.preempt.storm import Outcome, Storm
from hack.reserver_process import ReserverProcess

SCHEDULER, BLIND = "storm-scheduler", "blind-scheduler"
PREEMPTIONS = 'reserver_extender_calls_total{outcome="refused",verb="preempt"}'
_ROUNDS = 3
_COLUMNS = ("trials", "landed", "evicted: useful", "useless", "elsewhere", "owners", "seconds")


def blind(config: str) -> str:
    """Returns a KubeSchedulerConfiguration without the Preempt verb of its extenders."""
    parsed = yaml.safe_load(config)
    for extender in parsed["extenders"]:
        del extender["preemptVerb"]
    return yaml.safe_dump(parsed)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hack.preempt", description=__doc__)
    parser.add_argument("--trials", type=int, default=500, help="in each of the two storms")
    options = parser.parse_args()
    try:
        outcomes = _storms(options.trials)
    except StartError as error:
        sys.exit(str(error))
    Console(width=120).print(_table(outcomes))
    sys.exit(bool(outcomes[SCHEDULER].useless))


def _storms(count: int) -> dict[str, Outcome]:
    outcomes = {}
    with tempfile.TemporaryDirectory() as name, ControlPlane() as plane:
        folder = Path(name)
        account = install(plane.kubeconfig, folder)
        with ReserverProcess(account, folder / "reserver.log") as reserver:
            for scheduler in (SCHEDULER, BLIND):
                config = render_scheduler_config(
                    SCHEDULER_CONFIG,
                    kubeconfig=plane.kubeconfig,
                    port=reserver.port,
                    scheduler_name=scheduler,
                )
                path = folder / f"{scheduler}.yaml"
                path.write_text(blind(config) if scheduler == BLIND else config)
                plane.start_scheduler(path)
                is_blind = scheduler == BLIND
                with Storm(plane.kubeconfig, scheduler, count, blind=is_blind) as storm:
                    storm.rage()
                    if not is_blind:
                        for _ in range(_ROUNDS):
                            storm.try_again(lambda: reserver.metric(PREEMPTIONS))
                        storm.seat_owners()
                    outcomes[scheduler] = storm.outcome()
                plane.stop_scheduler()
    return outcomes


def _table(outcomes: dict[str, Outcome]) -> Table:
    table = Table()
    for title in ("preemptVerb", *_COLUMNS):
        table.add_column(title, no_wrap=True, justify="right" if title in _COLUMNS else "left")
    for scheduler, outcome in outcomes.items():
        cells = (
            outcome.trials,
            outcome.landed,
            outcome.useful,
            len(outcome.useless),
            len(outcome.elsewhere),
            outcome.owners,
            round(outcome.seconds, 1),
        )
        table.add_row("with" if scheduler == SCHEDULER else "without", *map(str, cells))
    return table


if __name__ == "__main__":
    main()
