"""The synchronous client has the calls of the asynchronous one, argument by argument."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from reserver.client import Capacity, Client, SyncCapacity, SyncClient


def calls(kind: type[Any]) -> dict[str, inspect.Signature]:
    named = inspect.getmembers(kind, inspect.isfunction)
    found = {name: method for name, method in named if not name.startswith("_")}
    return {name: inspect.signature(method) for name, method in found.items()}


@pytest.mark.parametrize(("kind", "other"), [(Client, SyncClient), (Capacity, SyncCapacity)])
def test_both_clients_take_the_same(kind: type[Any], other: type[Any]) -> None:
    mine, theirs = calls(kind), calls(other)
    assert mine.keys() == theirs.keys()
    for name, signature in mine.items():
        assert theirs[name].parameters == signature.parameters, name
        returned = str(signature.return_annotation).replace("Async", "")
        assert str(theirs[name].return_annotation) == returned, name


def test_both_connect_alike() -> None:
    signatures = [inspect.signature(kind.__init__).parameters for kind in (Client, SyncClient)]
    assert signatures[0] == signatures[1]
