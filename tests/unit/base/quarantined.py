"""Faults that one object raises, and the reports of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from reserver.base.quarantine import Component

Faults = Counter[Component]

POISON = "poison"


def poisoned(function: Callable[..., Any], names: Callable[..., bool]) -> Callable[..., Any]:
    """Return a function that raises an error for one of its arguments."""

    def raises(*arguments: Any, **more: Any) -> Any:
        if names(*arguments, **more):
            raise ZeroDivisionError("poison")
        return function(*arguments, **more)

    return raises
