"""Each pass, write and call that judges goes on when one thing raises an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import get_args

import pytest

from reserver.base.quarantine import Component
from tests.unit.base.judging_calls import (
    in_a_binding,
    in_a_grpc_call,
    in_a_whole_pass,
    in_an_effect,
    in_an_http_call,
    in_the_feed,
)
from tests.unit.base.judging_passes import (
    in_a_buffer,
    in_a_companion,
    in_a_move,
    in_a_provisioning_request,
    in_a_quota,
    in_a_status,
    in_an_event,
    in_the_cleaner,
    in_the_history,
    in_the_placer,
    in_the_status_of_a_quota,
    in_the_status_of_an_object,
    in_the_waker,
)
from tests.unit.base.quarantined import Faults

SCENARIOS: dict[Component, tuple[Callable[[pytest.MonkeyPatch], Awaitable[None]], ...]] = {
    "bind": (in_a_binding,),
    "buffer": (in_a_buffer,),
    "call": (in_a_grpc_call,),
    "cleaner": (in_the_cleaner,),
    "companion": (in_a_companion,),
    "effect": (in_an_effect,),
    "event": (in_an_event,),
    "feed": (in_the_feed,),
    "history": (in_the_history,),
    "http": (in_an_http_call,),
    "move": (in_a_move,),
    "pass": (in_a_whole_pass,),
    "placer": (in_the_placer,),
    "provisioning": (in_a_provisioning_request,),
    "quota": (in_a_quota, in_the_status_of_a_quota),
    "status": (in_a_status, in_the_status_of_an_object),
    "waker": (in_the_waker,),
}

SHOWN_ELSEWHERE: set[Component] = {"ledger", "listener", "store", "watch"}
"""By `test_quarantine.py` and `reservations/test_listener.py`."""


def test_each_place_that_judges_is_shown() -> None:
    assert SCENARIOS.keys() | SHOWN_ELSEWHERE == set(get_args(Component))


@pytest.mark.parametrize(
    ("component", "scenario"),
    [(component, each) for component, several in SCENARIOS.items() for each in several],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
async def test_what_raises_costs_no_other(
    component: Component,
    scenario: Callable[[pytest.MonkeyPatch], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    faults: Faults,
) -> None:
    async with asyncio.timeout(20):
        await scenario(monkeypatch)
    assert faults.pop(component) >= 1
