"""Canonical quantities, as stored by the API server.

apimachinery/pkg/api/resource/quantity.go, `CanonicalizeBytes`: the largest suffix without a
fraction, of the same family (decimal, binary, exponent) as the original.
"""

from __future__ import annotations

import re

from reserver.cluster.quantity import NANO, parse
from reserver.errors import InvalidInput

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+$")
_PATTERN = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"

MALFORMED = f"quantities must match the regular expression '{_PATTERN}'"
"""The API server's message for an invalid quantity."""


def canonical(value: str | float) -> str:
    """Return a quantity in canonical form.

    Raises:
        ValueError: the text is not a quantity.
    """
    text = str(value)
    try:
        nano = parse(text)
    except InvalidInput as error:
        raise ValueError(MALFORMED) from error
    if text.endswith("i") and abs(nano) >= 1024 * NANO and nano % NANO == 0:
        return _binary(nano // NANO)
    return _decimal(nano, exponent=bool(_EXPONENT.search(text)))


def _binary(amount: int) -> str:
    step = 0
    while amount % 1024 == 0 and step < len(_BINARY) - 1:
        amount //= 1024
        step += 1
    return f"{amount}{_BINARY[step]}"


def _decimal(nano: int, *, exponent: bool) -> str:
    if nano == 0:
        return "0"
    step = 0
    while nano % 1000 == 0 and step < len(_DECIMAL) - 1:
        nano //= 1000
        step += 1
    if exponent:
        power = 3 * (step - _DECIMAL.index(""))
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{_DECIMAL[step]}"
