"""PodMoves that are paused and resumed."""

from __future__ import annotations

import asyncio
import json

import pytest

from reserver.cli import moves, podmoves
from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.output import Output
from reserver.errors import ApiError
from tests.unit.cli.moves.api import Api, drain, specs
from tests.unit.moves.test_drain import pod


def test_a_move_is_paused_and_resumed() -> None:
    api = Api(pod("a"))
    drain(api)
    asyncio.run(podmoves.pause(api, "shop", "a-0", paused=True))
    assert specs(api)[0]["paused"] is True


def test_of_moves_that_are_paused_a_program_gets_the_objects_and_one_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(pod("a"), pod("b"))
    drain(api)
    capsys.readouterr()
    names = ["a-0", "ghost", "b-1"]
    with pytest.raises(Failed, match="there is no PodMove shop/ghost"):
        asyncio.run(moves._pause_each(api, "shop", names, Output.TABLE, paused=True))
    assert capsys.readouterr().out == "a-0 paused\nb-1 paused\n"
    asyncio.run(moves._pause_each(api, "shop", names[::2], Output.JSON, paused=True))
    printed = json.loads(capsys.readouterr().out)
    assert (printed["kind"], printed["items"]) == ("List", list(api.moves.values()))
    assert [each["spec"]["paused"] for each in printed["items"]] == [True, True]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('podmoves.reserver.io "a-0" not found', "there is no PodMove shop/a-0"),
        ("the server could not find the requested resource", "apply scheduler-config/components"),
    ],
)
def test_what_cannot_be_paused_says_why(said: str, message: str) -> None:
    class Without(Api):
        async def patch(self, path: str, body: object) -> bytes:  # noqa: ARG002
            raise ApiError(404, "NotFound", said)

    with pytest.raises(Failed, match=message) as caught:
        asyncio.run(podmoves.pause(Without(pod("a")), "shop", "a-0", paused=True))
    assert caught.value.status is ExitStatus.REFUSED
