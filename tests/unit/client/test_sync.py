"""The synchronous client has the calls of the asynchronous one, argument by argument."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from reserver.client import Capacity, Client, SyncCapacity, SyncClient
from reserver.client.client import done


def calls(kind: type[Any]) -> dict[str, Any]:
    named = inspect.getmembers(kind, inspect.isfunction)
    return {name: method for name, method in named if not name.startswith("_")}


@pytest.mark.parametrize(("kind", "other"), [(Client, SyncClient), (Capacity, SyncCapacity)])
def test_both_clients_take_the_same(kind: type[Any], other: type[Any]) -> None:
    mine, theirs = calls(kind), calls(other)
    assert mine.keys() == theirs.keys()
    for name, method in mine.items():
        assert inspect.signature(theirs[name]) == inspect.signature(method), name
        assert inspect.getdoc(theirs[name]) == inspect.getdoc(method), name
        assert not inspect.iscoroutinefunction(theirs[name]), name
        assert not inspect.isasyncgenfunction(theirs[name]), name


def test_both_connect_alike() -> None:
    signatures = [inspect.signature(kind.__init__).parameters for kind in (Client, SyncClient)]
    assert signatures[0] == signatures[1]


def test_a_call_that_blocks_never_waits_for_an_event_loop() -> None:
    class Waits:
        def __await__(self) -> Any:
            yield

    async def call() -> None:
        await Waits()

    with pytest.raises(RuntimeError, match="has waited"):
        done(call())
