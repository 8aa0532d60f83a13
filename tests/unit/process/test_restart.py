"""When a process ends by itself, so that another start reads its configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from reserver.errors import ApiError, ConfigurationError
from reserver.k8s.client import ApiClient
from reserver.k8s.lease import Lease
from reserver.process.reload import STANDBY_FIRST_S, Reload, Restart
from reserver.settings.serve import Settings

WANTED = Settings(pod_moves=True)


class Reloaded:
    """The text read from the file."""

    def __init__(self) -> None:
        self.settings = Settings(pod_name="reserver-a")
        self.awaited: Settings | None = WANTED
        self.awaiting_restart = ("featureGates.PodMoves",)


class Held:
    """A Lease: of this process, of another process, or of an unknown holder."""

    def __init__(self, holder: str) -> None:
        self.is_held = holder == "own"
        self.is_led_by_another = holder == "other"


class World:
    """A process whose changed file requires a restart."""

    def __init__(self, holder: str | None = None, **pods: bool) -> None:
        self.pods = {"reserver-a": True, **{f"reserver-{name}": up for name, up in pods.items()}}
        self.reloaded = Reloaded()
        self.now = 0.0
        self.fault: Exception | None = None
        self.checked: list[Settings] = []
        self.restart = Restart(
            cast("Reload", self.reloaded),
            cast("ApiClient", self),
            None if holder is None else cast("Lease", Held(holder)),
            self.check,
            lambda: self.now,
        )

    async def check(self, settings: Settings) -> None:
        self.checked.append(settings)
        if self.fault is not None:
            raise self.fault

    async def get(self, path: str, params: Mapping[str, str]) -> bytes:
        assert path == "/api/v1/namespaces/reserver-system/pods"
        assert params == {"labelSelector": "app.kubernetes.io/component=extender"}
        items: list[dict[str, Any]] = [
            {
                "metadata": {"name": name},
                "status": {"conditions": [{"type": "Ready", "status": str(is_ready)}]},
            }
            for name, is_ready in self.pods.items()
        ]
        return json.dumps({"items": items}).encode()

    async def is_due(self, at: float = 0.0) -> bool:
        self.now = at
        await self.restart.look()
        return self.restart.due.is_set()


async def test_nothing_ends_while_the_file_asks_for_nothing() -> None:
    world = World()
    world.reloaded.awaited = None
    assert not await world.is_due()
    assert not world.checked


@pytest.mark.parametrize("holder", [None, "other"])
async def test_one_that_stands_alone_and_a_standby_end_at_once(holder: str | None) -> None:
    world = World(holder)
    assert await world.is_due()
    assert world.checked == [WANTED]


async def test_one_that_knows_no_leader_waits() -> None:
    world = World("", b=True)
    assert not await world.is_due()
    assert not await world.is_due(STANDBY_FIRST_S)


async def test_a_leader_waits_for_its_standby_to_be_back() -> None:
    world = World("own", b=True)
    assert not await world.is_due()
    assert not await world.is_due(STANDBY_FIRST_S - 1)  # The standby may not have begun.
    world.pods["reserver-b"] = False
    assert not await world.is_due(STANDBY_FIRST_S)
    world.pods["reserver-b"] = True
    assert await world.is_due(STANDBY_FIRST_S + 1)


async def test_a_leader_without_any_standby_waits_for_none() -> None:
    assert await World("own").is_due() is False
    world = World("own")
    await world.is_due()
    assert await world.is_due(STANDBY_FIRST_S)


async def test_a_file_that_is_changed_back_begins_anew() -> None:
    world = World("own", b=True)
    await world.is_due()
    world.reloaded.awaited = None
    await world.is_due(10)
    world.reloaded.awaited = WANTED
    assert not await world.is_due(STANDBY_FIRST_S + 1)


@pytest.mark.parametrize(
    "fault", [ConfigurationError("the CRD is missing"), ApiError(503, "Unavailable", "later")]
)
async def test_what_could_not_start_does_not_end_and_says_so_once(fault: Exception) -> None:
    world = World()
    world.fault = fault
    with capture_logs() as lines:
        assert not await world.is_due()
        assert not await world.is_due(1)
    (line,) = lines
    assert str(fault) in line["why"]
    world.fault = None
    assert await world.is_due(2)
