"""Faults by name, and what stands still."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from hack.bed.mishaps import Mishaps
from hack.bed.wall_clock import WallClock
from hack.chaos.bugs import BUGS
from hack.chaos.faults import WATCH_FAULTS, kind_of, ways_of
from hack.chaos.scale import FAULTS
from hack.hostile.catalogue import CATALOGUE

WAYS = {
    "cut-watch": {*WATCH_FAULTS, "twice"},
    "kill-reserver": {"at-once"},
    "bind-faults": {*Mishaps.KINDS, "steering"},
    "freeze": {"reserver", "kube-apiserver", "etcd"},
    "standby": {"freeze"},
    "partition": {"calls", "answers"},
    "hostile": set(CATALOGUE),
}


@pytest.mark.parametrize("name", BUGS)
def test_each_bug_strikes_in_ways_that_there_are(name: str) -> None:
    for fault in BUGS[name].faults:
        kind, _, way = fault.partition(":")
        assert kind in {*FAULTS, "standby"}
        assert not way or way in WAYS[kind]


def test_a_way_of_a_fault_is_that_fault() -> None:
    faults = ["cut-watch:twice", "bind-faults:lost", "bind-faults:failed"]
    assert {kind_of(fault) for fault in faults} == {"cut-watch", "bind-faults"}
    assert ways_of("bind-faults", faults) == {"lost", "failed"}
    assert not ways_of("freeze", [*faults, "freeze"])


def test_a_process_runs_on_the_clock_that_another_one_sets(tmp_path: Path) -> None:
    clock = WallClock(tmp_path / "clock")
    clock.set_wrong(-3600.0)
    code = f"{clock.code}\nimport time\nprint(time.time())"
    said = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    assert -3700 < float(said.stdout) - time.time() < -3500
