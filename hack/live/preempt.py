"""The same storm of priorities twice, with Reserver's Preempt verb and without it."""

from __future__ import annotations

import argparse

import yaml
from rich.console import Console
from rich.table import Table

from hack.live.scene import SCHEDULER, Scene, scene
from hack.live.storm import Outcome, Storm
from hack.reserver_process import ReserverProcess

BLIND = "blind-scheduler"
PREEMPTIONS = 'reserver_extender_calls_total{outcome="refused",verb="preempt"}'
_ROUNDS = 3
_COLUMNS = ("trials", "landed", "evicted: useful", "useless", "elsewhere", "owners", "seconds")


def blind(config: str) -> str:
    """Return a KubeSchedulerConfiguration without the Preempt verb of its extenders."""
    parsed = yaml.safe_load(config)
    for extender in parsed["extenders"]:
        del extender["preemptVerb"]
    return yaml.safe_dump(parsed)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--trials", type=int, default=500, help="in each of the two storms")


def measure(options: argparse.Namespace) -> bool:
    """Print what became of both; return whether nobody was evicted for nothing with the verb."""
    with (
        scene(controllers=True) as stage,
        ReserverProcess(stage.account, stage.folder / "reserver.log") as reserver,
    ):
        seeing = _storm(stage, reserver, options.trials)
        unseeing = _blind_storm(stage, reserver, options.trials)
    table = Table()
    for title in ("preemptVerb", *_COLUMNS):
        table.add_column(title, no_wrap=True, justify="right" if title in _COLUMNS else "left")
    for verb, outcome in (("with", seeing), ("without", unseeing)):
        cells = (
            outcome.trials,
            outcome.landed,
            outcome.useful,
            len(outcome.useless),
            len(outcome.elsewhere),
            outcome.owners,
            round(outcome.seconds, 1),
        )
        table.add_row(verb, *map(str, cells))
    Console(width=120).print(table)
    return not seeing.useless


def _storm(stage: Scene, reserver: ReserverProcess, count: int) -> Outcome:
    with (
        stage.scheduler(reserver),
        Storm(stage.plane.kubeconfig, SCHEDULER, count) as storm,
    ):
        storm.rage()
        for _ in range(_ROUNDS):
            storm.try_again(lambda: reserver.metric(PREEMPTIONS))
        storm.seat_owners()
        return storm.outcome()


def _blind_storm(stage: Scene, reserver: ReserverProcess, count: int) -> Outcome:
    with (
        stage.scheduler(reserver, BLIND, blind),
        Storm(stage.plane.kubeconfig, BLIND, count, blind=True) as storm,
    ):
        storm.rage()
        return storm.outcome()
