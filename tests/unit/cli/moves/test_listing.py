"""`moves`: the list of PodMoves, and their changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from reserver.cli import moves, podmoves
from reserver.cli.failure import Failed
from reserver.cli.output import Output
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.moves.manifests import SharedFields, manifest
from tests.unit.cli.moves.api import MOVES, Api, drain
from tests.unit.moves.test_drain import pod


def test_moves_are_listed_for_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    api = Api(pod("a"))
    drain(api)
    capsys.readouterr()
    found = asyncio.run(podmoves.listed(api, "shop"))
    podmoves.show(found, Output.TABLE, everywhere=True)
    assert capsys.readouterr().out.splitlines() == [
        "NAMESPACE   NAME   POD   PHASE       REASON   FROM   TO",
        "shop        a-0    a     Succeeded                   worker-2",
    ]
    podmoves.show(found, Output.JSON)
    assert json.loads(capsys.readouterr().out)["items"] == found


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        (Output.NAME, ["a-0", "a-0"]),
        (Output.JSON, ['{"apiVersion": ', '{"apiVersion": ']),
        (Output.TABLE, ["NAME", "a-0", "shop/a to worker-2 Failed: said"]),
    ],
)
def test_each_change_of_a_move_is_printed_as_it_happens(
    capsys: pytest.CaptureFixture[str], form: Output, lines: list[str]
) -> None:
    class Changing(Api):
        phases = iter(("Succeeded", "Failed"))

        async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
            phase = next(self.phases, None)
            if phase is None:
                raise ApiError(503, "ServiceUnavailable", "it ends here")
            self.moves[f"{MOVES}/a-0"]["status"]["phase"] = phase
            return await super().get(path, params)

    api = Changing()
    asyncio.run(podmoves.create(api, manifest(PodName("shop", "a"), SharedFields())))
    with pytest.raises(Failed, match="it ends here"):
        asyncio.run(moves.follow(api, "shop", form, everywhere=False, look_s=0))
    out = capsys.readouterr().out.splitlines()
    assert [line[: len(start)] for line, start in zip(out, lines, strict=True)] == lines


def test_of_a_move_that_follows_another_it_is_shown_which_and_whose_pod_has_come(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = {"pod": {"name": "web-0", "after": "first"}, "to": {"node": "worker-2"}}
    move: dict[str, Any] = {"metadata": {"name": "second", "namespace": "shop"}, "spec": spec}
    waits = move | {"status": {"phase": "Pending", "reason": "WaitsForMove", "message": "m"}}
    moves = move | {"status": {"phase": "Evicting", "pod": "web-1", "from": "worker-3"}}
    podmoves.show([waits, moves], Output.WIDE)
    assert capsys.readouterr().out.splitlines() == [
        "NAME     POD     PHASE      REASON         FROM       TO         AFTER   OPENS   MESSAGE",
        "second   web-0   Pending    WaitsForMove              worker-2   first           m",
        "second   web-1   Evicting                  worker-3   worker-2   first",
    ]
    assert podmoves.summary(moves) == "shop/web-1 Evicting"
