"""Exact Kubernetes quantities.

The grammar and the rounding are those of apimachinery/pkg/api/resource/quantity.go: decimal and
binary suffixes, scientific notation, anything finer than a nano-unit rounded away from zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from reserver.errors import InvalidInput

NANO = 10**9
"""Nano-units in one base unit (byte, core, device)."""

MAX = 2**53
"""The largest amount that a reservation may hold, all slots together: millicores or base units.

Far beyond any node (8 PiB in bytes), and exact where numbers are doubles (JSON, CEL). Many such
reservations may be on one node, so int64 is too small for their sums (docs/adr/0015).
"""

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_MAX_LENGTH = 64
_MAX_EXPONENT = 40
_NANO_POWER = 9
_TENS: dict[str | None, int] = {
    **{s: 3 * i for i, s in enumerate("num", start=-3)},
    **{s: 3 * i for i, s in enumerate("kMGTPE", start=1)},
}
"""By how many powers of ten a decimal suffix multiplies."""
_TWOS: dict[str | None, int] = {f"{s}i": 10 * i for i, s in enumerate("KMGTPE", start=1)}
"""By how many powers of two a binary suffix multiplies."""
_SHOWN = [
    *((1 << 10 * i, f"{s}i") for i, s in enumerate("KMGTPE", start=1)),
    *((10 ** (3 * i), s) for i, s in enumerate("MGTPE", start=2)),
]
"""Suffixes of amounts that are shown, with their sizes; the first of equally long ones is taken.
Thousands have none: they are pods and devices as well."""

_REMEDY = "write a Kubernetes quantity such as 2, 500m or 4Gi"

_SHARED = 1024
"""How many are found again: megabytes at most, as a reservation names few resources."""


@lru_cache(maxsize=4096)
def parse(text: str) -> int:
    """Return the quantity in nano-units, rounded away from zero; negative ones included.

    Raises:
        InvalidInput: the text is not a quantity, or its exponent exceeds 40.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise InvalidInput("", f"{shorten(text)!r} is not a quantity", _REMEDY)
    exponent = int(match["exponent"] or 0)
    if abs(exponent) > _MAX_EXPONENT:
        raise InvalidInput("", f"{text!r} has an absurd exponent", _REMEDY)
    whole, _, fine = match["number"].lstrip("+-").partition(".")
    suffix = match["suffix"]
    number = int(whole + fine) << _TWOS.get(suffix, 0)
    power = _NANO_POWER + exponent + _TENS.get(suffix, 0) - len(fine)
    ten: int = 10 ** abs(power)
    nano = number * ten if power >= 0 else -(-number // ten)
    return -nano if text.startswith("-") else nano


def to_unit(resource: str, nano: int) -> int:
    """Return nano-units in the unit that kube-scheduler counts in, rounded up.

    The unit is the millicore for ``cpu`` and the base unit (byte, device, pod) for all else:
    ``Quantity.MilliValue`` and ``Quantity.Value``.
    """
    return -(-nano // (NANO // 1000 if resource == "cpu" else NANO))


def amount(resource: str, text: str) -> int:
    """Return one quantity of a resource in the unit of `to_unit`."""
    return to_unit(resource, parse(text))


def show(resource: str, value: int) -> str:
    """Return an amount as a person writes it: ``1500m``, ``4Gi``, ``4G``, ``3``."""
    if resource == "cpu":
        return f"{value}m" if value % 1000 else str(value // 1000)
    exact = [(f"{value // size}{suffix}") for size, suffix in _SHOWN if value % size == 0]
    return min(exact, key=len) if value and exact else str(value)


def shorten(text: str, limit: int = 60) -> str:
    """Return text fit for a message: at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def shared(amounts: Mapping[str, int]) -> Mapping[str, int]:
    """Return equal amounts, which many have: nobody may change them."""
    return _shared(tuple(amounts.items()))


def times(amounts: Mapping[str, int], slots: int) -> Mapping[str, int]:
    """Return the amounts of so many slots, which many have: nobody may change them."""
    return amounts if slots == 1 else shared({name: n * slots for name, n in amounts.items()})


@lru_cache(_SHARED)
def _shared(amounts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    return dict(amounts)


def total(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of amounts by resource, exactly."""
    total: dict[str, int] = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def is_less(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Return whether there is less of any resource than before."""
    return any(amount > after.get(name, 0) for name, amount in before.items())


def exchange(
    by_node: dict[str, dict[str, int]],
    node: str,
    before: Mapping[str, int],
    after: Mapping[str, int],
) -> Mapping[str, int]:
    """Count amounts on a node instead of others; return all that is counted there."""
    totals = dict(by_node.get(node, {}))
    for name, amount in before.items():
        totals[name] -= amount
    for name, amount in after.items():
        totals[name] = totals.get(name, 0) + amount
    for name in before.keys() - after.keys():
        if not totals[name]:
            del totals[name]
    if totals:
        by_node[node] = totals
    else:
        by_node.pop(node, None)
    return totals
