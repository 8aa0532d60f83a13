"""`preflight` on PodMoves."""

from __future__ import annotations

from typing import Any

from reserver.cli import preflight_holds
from tests.unit.cli.preflight.objects import of, role


def move(phase: str | None) -> dict[str, Any]:
    status = {} if phase is None else {"status": {"phase": phase}}
    return {"metadata": {"namespace": "shop", "name": f"m-{phase}"}, **status}


def test_moves_go_on_where_seats_are_kept_and_have_to_end_elsewhere() -> None:
    moves = [move("Landing"), move("Succeeded"), move(None)]
    (goes_on,) = preflight_holds.of_moves(moves, keeps_seats=True)
    assert goes_on.is_ok
    assert goes_on.said == "2 under way, which go on: shop/m-Landing, shop/m-None"
    (end,) = preflight_holds.of_moves(moves, keeps_seats=False)
    assert not end.is_ok
    assert "`kubectl delete podmoves --all --all-namespaces`" in end.remedy
    assert not list(preflight_holds.of_moves([move("Failed")], keeps_seats=False))


def test_moves_that_have_ended_do_not_matter() -> None:
    moves = {"podmoves": [move("Succeeded")]}
    assert not list(preflight_holds.of_features(moves, of(role()), is_first=True))
