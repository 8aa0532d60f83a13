"""The accounts as data of a ConfigMap, with one key for each week, such as ``2026-11-23``."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime

import msgspec

from reserver.k8s.objects.objects import encode
from reserver.reservations.accounts import AccountKey, Accounts, HoldUse, week_of

MOST_BYTES = 768 * 1024
"""Bound on keys and values, in bytes; the API server allows 1 MiB."""

_UNTIL = "until"
_DIGITS = 7
_Week = dict[str, dict[str, dict[str, tuple[float, float, float]]]]
_decoder = msgspec.json.Decoder(_Week)


def week_name(week: int) -> str:
    """Return the first day of a week as an ISO date; `week` is its start in unix seconds."""
    return datetime.fromtimestamp(week, UTC).date().isoformat()


def write(accounts: Accounts, until: float) -> Generator[None, None, dict[str, str]]:
    """Return the data of accounts counted until `until`, folded until they fit `MOST_BYTES`."""
    texts: dict[int, str] = {}
    while True:
        for week in accounts.weeks:
            if week not in texts:
                texts[week] = yield from _text(accounts, week)
        data = {week_name(week): texts[week] for week in accounts.weeks if week in texts}
        if sum(len(name) + len(text.encode()) for name, text in data.items()) <= MOST_BYTES:
            return {**data, _UNTIL: f"{until:.0f}"}
        texts.pop((yield from accounts.fold()), None)


def _text(accounts: Accounts, week: int) -> Generator[None, None, str]:
    """Return a week's accounts as JSON, one namespace a step: a whole week took 0.1 s."""
    parts = []
    for namespace, owners in accounts.of(week):
        shown = {
            owner: {
                name: (_short(use.free), _short(use.spare), _short(use.used))
                for name, use in uses.items()
            }
            for owner, uses in owners.items()
        }
        parts.append(f"{encode(namespace).decode()}:{encode(shown).decode()}")
        yield
    return f"{{{','.join(parts)}}}"


def read(data: Mapping[str, str]) -> Generator[None, None, tuple[Accounts, float]]:
    """Return accounts without unreadable weeks, and the end of counting in unix seconds."""
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
    """Return the start of a week in unix seconds; None for any other key."""
    try:
        begin = datetime.combine(date.fromisoformat(name), datetime.min.time(), UTC)
    except ValueError:
        return None
    moment = int(begin.timestamp())
    return moment if week_of(moment) == moment else None


def _short(value: float) -> float:
    """Return a number rounded to `_DIGITS` significant digits."""
    return float(f"{value:.{_DIGITS}g}")
