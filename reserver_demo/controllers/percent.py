"""Numbers that may be percentages (`intstr.GetScaledValueFromIntOrPercent`)."""

from __future__ import annotations


def of_total(value: int | str, total: int, *, up: bool) -> int:
    """Return a number, or a percentage of a total, rounded up or down."""
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-total * percent // 100) if up else total * percent // 100
