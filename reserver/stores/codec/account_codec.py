"""The accounts as data of a ConfigMap: a key for each week, such as ``2026-11-23``."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime

import msgspec

from reserver.k8s.objects.objects import encode
from reserver.reservations.accounts import AccountKey, Accounts, HoldUse, week_of

MOST_BYTES = 768 * 1024
"""What keys and values take at most; the API server allows 1 MiB."""

_UNTIL = "until"
_DIGITS = 7
_STEP = 100
"""So many accounts are shown between two chances for other work."""

_Week = dict[str, dict[str, dict[str, tuple[float, float, float]]]]
_decoder = msgspec.json.Decoder(_Week)


def week_name(week: int) -> str:
    """Return the day on which a week begins."""
    return datetime.fromtimestamp(week, UTC).date().isoformat()


def write(accounts: Accounts, until: float) -> Generator[None, None, dict[str, str]]:
    """Return the data of accounts counted until a moment; what is too much is summed first."""
    while True:
        weeks: dict[str, _Week] = {}
        for number, (key, uses) in enumerate(tuple(accounts)):
            if number % _STEP == 0:
                yield
            namespaces = weeks.setdefault(week_name(key.week), {})
            namespaces.setdefault(key.namespace, {})[key.owner] = {
                name: (_short(use.free), _short(use.spare), _short(use.used))
                for name, use in uses.items()
            }
        data = {}
        for name, week in weeks.items():
            data[name] = encode(week).decode()
            yield
        if sum(len(name) + len(text.encode()) for name, text in data.items()) <= MOST_BYTES:
            return {**data, _UNTIL: f"{until:.0f}"}
        yield from accounts.fold()


def read(data: Mapping[str, str]) -> Generator[None, None, tuple[Accounts, float]]:
    """Return accounts, and until when they are counted; a week that cannot be read is left out."""
    accounts, until = Accounts(), 0.0
    with suppress(ValueError):
        until = float(int(data.get(_UNTIL, "0")[:12]))
    for name, text in data.items():
        week = _week(name)
        if week is None or len(text) > MOST_BYTES:
            continue
        with suppress(msgspec.DecodeError, RecursionError):
            for namespace, owners in _decoder.decode(text).items():
                for owner, uses in owners.items():
                    found = {name: HoldUse(*parts) for name, parts in uses.items()}
                    accounts.put(AccountKey(week, namespace, owner), found)
                yield
    return accounts, until


def _week(name: str) -> int | None:
    """Return the begin of a week; None for another key."""
    try:
        begin = datetime.combine(date.fromisoformat(name), datetime.min.time(), UTC)
    except ValueError:
        return None
    moment = int(begin.timestamp())
    return moment if week_of(moment) == moment else None


def _short(value: float) -> float:
    """Return a number without the digits that nobody needs."""
    return float(f"{value:.{_DIGITS}g}")
