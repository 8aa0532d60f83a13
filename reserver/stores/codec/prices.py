"""Hourly prices of resources, from a table of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.k8s.objects.names import is_resource
from reserver.reservations.accounts import HoldUse, Uses

NONE = "none"
MOST_PRICES = 32

_CURRENCY = "currency"
_MOST_CURRENCY = 8
_MOST_PRICE = 1e9
_GIB = 2**30
_UNITS = {"cpu": 1000, "memory": _GIB, "ephemeral-storage": _GIB}
_REMEDY = "write e.g. cpu=0.03,memory=0.004,currency=EUR, or none"


@dataclass(frozen=True, slots=True)
class Prices:
    """The hourly price of each resource.

    Attributes:
        of: price of an hour of a core, a GiB or a piece, by resource.
        currency: for example EUR; empty if the table has none.
    """

    of: Mapping[str, float] = field(default_factory=dict)
    currency: str = ""

    def cost(self, hours: Uses) -> HoldUse | None:
        """Return the cost of amounts times hours, by kind of use; None without any price."""
        cost, is_priced = HoldUse(), False
        for resource, use in hours.items():
            if resource in self.of:
                cost = cost.plus(use, self.of[resource] / _per_unit(resource))
                is_priced = True
        return cost if is_priced else None


def parse(text: str) -> Prices:
    """Return the prices of ``NAME=PRICE,…``; an empty table for ``none``.

    Raises:
        InvalidInput: some part is not acceptable.
    """
    table: dict[str, str] = {}
    for part in text.split(",") if text.strip() != NONE else ():
        name, equals, value = part.strip().partition("=")
        if not equals or name in table:
            problem = f"{shorten(part)!r} is not NAME=PRICE, or is given twice"
            raise InvalidInput("", problem, _REMEDY)
        table[name] = value
    currency = table.pop(_CURRENCY, "")
    if currency and not (currency.isalnum() and len(currency) <= _MOST_CURRENCY):
        problem = f"{shorten(currency)!r} is not 1 to {_MOST_CURRENCY} letters and digits"
        raise InvalidInput(_CURRENCY, problem, "write e.g. EUR")
    if len(table) > MOST_PRICES:
        raise InvalidInput("", f"{len(table)} prices are too many", f"write at most {MOST_PRICES}")
    return Prices({name: _price(name, value) for name, value in table.items()}, currency)


def read_table(written: object) -> str:
    """Return the text for `parse` from a table in the configuration file.

    Raises:
        InvalidInput: some part is not acceptable.
    """
    if not isinstance(written, dict):
        raise InvalidInput(
            "", f"{shorten(repr(written))} is not a table", 'write e.g. {cpu: "0.03"}'
        )
    for name, value in written.items():
        is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        if not is_plain or {",", "="} & {*f"{name}{value}"}:
            raise InvalidInput(
                str(name), f"{shorten(repr(value))} is not a price", 'write e.g. "0.03"'
            )
    text = ",".join(f"{name}={value}" for name, value in written.items()) or NONE
    parse(text)
    return text


def show_table(text: str) -> dict[str, str]:
    """Return the table of a text, the reverse of `read_table`."""
    parts = text.split(",") if text.strip() != NONE else ()
    return dict(part.strip().split("=", 1) for part in parts)


def check(flag: str, text: str) -> None:
    """Refuse a text that is not a table of prices."""
    try:
        parse(text)
    except InvalidInput as exc:
        raise exc.under(flag) from exc


def _per_unit(resource: str) -> int:
    """Return the number of Reserver's units in one priced unit, such as 1000 millicores."""
    return _GIB if resource.startswith("hugepages-") else _UNITS.get(resource, 1)


def _price(name: str, text: str) -> float:
    if not is_resource(name):
        raise InvalidInput(name, f"{shorten(name)!r} is not a resource", _REMEDY)
    try:
        price = float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError:
        price = -1.0
    if not (isfinite(price) and 0 <= price <= _MOST_PRICE):
        raise InvalidInput(
            name, f"{shorten(text)!r} is not a price", 'write a number such as "0.03"'
        )
    return price
