"""Converts quantities, requests of pods and times by the rules of Kubernetes' documents."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from functools import cache
from typing import Any

Amounts = Mapping[str, int]
"""Resource name to amount: millicores of cpu, base units of all else."""

_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i))?")
_SCALES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", 1)},
}
_DURATION = re.compile(r"([0-9.]+)(ms|h|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@cache
def amount(resource: str, text: str) -> int:
    """Return a quantity in the unit of its resource, rounded up.

    Raises:
        ValueError: it is not a quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, exponent, suffix = match.groups()
    exact = Fraction(number) * Fraction(10) ** int(exponent or 0) * _SCALES.get(suffix, 1)
    return math.ceil(exact * 1000 if resource == "cpu" else exact)


def amounts(written: Mapping[str, Any] | None) -> dict[str, int]:
    """Return a resource list as amounts."""
    return {name: amount(name, str(text)) for name, text in (written or {}).items()}


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return a pod's effective request, with 1 of the resource `pods`.

    Init containers run before the others, one after the other; those with ``restartPolicy:
    Always`` (sidecars) stay. Requests at the level of the pod replace the containers' sum.
    """
    running = total(_container(c) for c in spec.get("containers") or ())
    sidecars: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        own = total((sidecars, _container(container)))
        most = largest((most, own))
        if container.get("restartPolicy") == "Always":
            sidecars = own
    wanted = largest((most, total((running, sidecars))))
    wanted |= amounts((spec.get("resources") or {}).get("requests"))
    return {**total((wanted, amounts(spec.get("overhead")))), "pods": 1}


def _container(container: Mapping[str, Any]) -> dict[str, int]:
    return amounts((container.get("resources") or {}).get("requests"))


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    """Return the sum of amounts."""
    sums: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            sums[name] = sums.get(name, 0) + value
    return sums


def largest(parts: Iterable[Amounts]) -> dict[str, int]:
    """Return the largest amount of each resource."""
    most: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            most[name] = max(most.get(name, 0), value)
    return most


def smallest(parts: Iterable[Amounts]) -> dict[str, int]:
    """Return the minimum of all parts, by resource."""
    first, *others = parts
    return {name: min([value, *(o.get(name, 0) for o in others)]) for name, value in first.items()}


def moment(value: object) -> float:
    """Return unix seconds or an RFC 3339 time as unix seconds.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, datetime):  # What YAML makes of a time without quotes.
        value = value.isoformat()
    if isinstance(value, str):
        parsed = datetime.fromisoformat(value.upper())
        if parsed.tzinfo is None:
            raise ValueError(f"{value!r} has no offset from UTC")
        return parsed.timestamp()
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is not a time")  # noqa: TRY004 - one error for bad input
    return float(value)


def duration(text: str) -> float:
    """Return a duration such as ``1h30m`` in seconds.

    Raises:
        ValueError: it is not a duration.
    """
    if text == "0":
        return 0.0
    parts = _DURATION.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        raise ValueError(f"{text!r} is not a duration")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
