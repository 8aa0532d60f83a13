"""Ctrl-C while a drain or a move runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from reserver.cli import podmoves
from reserver.cli.output import Output
from reserver.cluster.pod import PodName
from reserver.moves.manifests import SharedFields, manifest
from tests.unit.cli.moves.api import Api, drain
from tests.unit.moves.test_drain import pod


class Pressed(Api):
    """An API that sends Ctrl-C after a number of written PodMoves, or when they are listed."""

    def __init__(self, *pods: dict[str, Any], at: int) -> None:
        super().__init__(*pods, phase="Pending")
        self.at = at

    async def create(self, path: str, body: object) -> bytes:
        if len(self.moves) == self.at:
            raise asyncio.CancelledError
        return await super().create(path, body)

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        if path.endswith("/podmoves"):
            raise asyncio.CancelledError
        return await super().get(path, params)


def test_an_interrupted_drain_says_what_it_leaves_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Pressed(pod("a"), pod("b"), at=9)
    with pytest.raises(asyncio.CancelledError):
        drain(api)
    names = [each["metadata"]["name"] for each in api.moves.values()]
    stays = "worker-1 stays cordoned (kubectl uncordon worker-1)"
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"reserver: {stays}, and 2 moves go on without this command",
        "reserver: to follow: reserver moves -n shop -w",
        f"reserver: to cancel: kubectl delete podmoves -n shop {names[0]} {names[1]}",
    ]


def test_a_drain_that_is_interrupted_as_it_writes_takes_back_what_it_wrote(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Pressed(pod("a"), pod("b"), at=1)
    with pytest.raises(asyncio.CancelledError):
        drain(api)
    assert api.moves == {}
    assert "nothing is moved; worker-1 stays cordoned" in capsys.readouterr().err


def test_an_interrupted_move_says_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    api = Pressed(at=9)

    async def interrupted() -> None:
        body = manifest(PodName("shop", "a"), SharedFields())
        await podmoves.follow(api, [await podmoves.create(api, body)], Output.TABLE, wait=True)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    said = capsys.readouterr().err
    assert "the move goes on without this command" in said
    assert "kubectl delete podmoves -n shop a-0" in said
