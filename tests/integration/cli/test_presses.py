"""Ctrl-C ends each command at a random moment; `python -m hack.presses` presses by the hundred."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from hack.presses import press
from hack.presses.invocations import Invocation, commands, each_command, live
from hack.presses.press import pressed
from hack.presses.stage import Stage, staged

SEED = 27
AT_ONCE = 3
SOME = 12


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


def problems(among: Sequence[Invocation]) -> list[str]:
    outcomes = pressed(among, SEED, range(len(among)), AT_ONCE)
    return [
        f"{number}: {each.invocation}, {each.press}: {each.problem}"
        for number, each in outcomes.items()
        if each.problem
    ]


def test_a_press_ends_each_command_before_an_api_server_that_does_not_answer(stage: Stage) -> None:
    among = each_command(stage)
    assert len(among) == len(list(commands())) > 20
    assert problems(among) == []


def test_a_press_ends_commands_beside_a_reserver_direct_and_tunnelled(stage: Stage) -> None:
    assert problems(Random(SEED).sample(live(stage), SOME)) == []


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("time.sleep(600)", "it has not ended after 1 s"),
        ("sys.exit(5)", "it ended with 5"),
        ("sys.exit('Traceback')", "it said ['Traceback']"),
        ("open(os.environ['TMPDIR'] + '/left', 'w'); os._exit(status)", "it left ['left']"),
        ("subprocess.Popen(['sleep', '600']); os._exit(status)", "it left processes"),
        ("os._exit(status)", ""),
    ],
)
def test_who_ends_otherwise_is_told_and_nothing_of_it_is_left(
    program: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"""
import os, signal, subprocess, sys, threading, time
heard = threading.Event()
def hear(number, _):
    global status
    status = 128 + number
    heard.set()
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, hear)
print("there", flush=True)
heard.wait()
{program}
"""
    monkeypatch.setattr(press, "_PROGRAM", code)
    if "not ended" in said:
        monkeypatch.setattr(press, "LIMIT_S", 1.0)
    of_session, seen = press._session, set[int]()

    def look(number: int) -> list[int]:
        seen.add(number)
        return of_session(number)

    monkeypatch.setattr(press, "_session", look)
    (outcome,) = pressed([Invocation((), {}, lasts=True)], 6, [0], 1).values()
    assert outcome.took_s is not None
    assert outcome.problem.startswith(said) if said else outcome.problem == ""
    assert len(seen) == 1
    assert of_session(*seen) == []
