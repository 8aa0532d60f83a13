"""The settings of `reserver rebalance run` that do not go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reserver.base.schedule import Schedule
from reserver.errors import ConfigurationError
from reserver.rebalance.settings import Compat, Mode, RebalanceSettings, read_compat
from reserver.settings.flags import declared

FILE: dict[str, Any] = {"policy_config_file": Path("policy.yaml")}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "--policy-config-file: is missing; write the policy's path, or give --make-room"),
        ({"make_room": True}, "--make-room: .* give --mode reserve-first or surge-first"),
        (
            {"make_room": True, "mode": Mode.RESERVE_FIRST, "compat": Compat.UPSTREAM},
            "--make-room: .* leave out --compat upstream",
        ),
        ({"defragment": True}, "--defragment: .* give --mode reserve-first or surge-first"),
        (
            {"defragment": True, "make_room": True, "mode": Mode.RESERVE_FIRST},
            "--defragment: excludes --make-room; leave one out",
        ),
        (FILE | {"hand_over": True}, "--hand-over: goes with --defragment; give it, too"),
        (FILE | {"leader_elect": True}, "--leader-elect: needs --descheduling-interval"),
        (FILE | {"least_gain": 101.0}, "--least-gain: 101.0 is not a gain; write a number from 0"),
        (FILE | {"client_connection_burst": 0}, "--client-connection-burst: is 0; write 1 or more"),
    ],
)
def test_what_cannot_work_is_refused_with_the_flag_and_the_remedy(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        RebalanceSettings(**given)


def test_room_is_made_without_a_policy_or_with_the_evictor_of_one() -> None:
    for given in (dict[str, Any](), FILE):
        made = RebalanceSettings(make_room=True, mode=Mode.RESERVE_FIRST, **given)
        assert made.policy_config_file == given.get("policy_config_file")


def test_the_former_name_of_plan_is_read_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="--compat sound is now --compat plan"):
        assert read_compat("--compat", "sound") is Compat.PLAN


def test_the_way_of_judging_is_read() -> None:
    assert read_compat("--compat", "Upstream") is Compat.UPSTREAM
    with pytest.raises(ConfigurationError, match="none of plan and upstream"):
        read_compat("--compat", "loud")


def test_a_window_of_rounds_is_read_or_refused_with_the_flag() -> None:
    flag = next(each for each in declared(RebalanceSettings) if each.name == "--move-window")
    assert flag.read(["0 22 * * * 6h UTC"]) == (Schedule("0 22 * * *", 21_600.0, "UTC"),)
    with pytest.raises(ConfigurationError, match="--move-window: 'at night' is no window; write"):
        flag.read(["at night"])
