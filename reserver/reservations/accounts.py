"""Accounts: what was held, claimed and used of each resource, by week, namespace and owner. Pure.

Each hour of each unit that a reservation holds is one of three parts: no pod has claimed it (free),
a pod has claimed it and requests less than its slot (spare), or a pod requests it (used). A meter
says what one hold holds at a moment, and how much of that is used in a day.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reserver.cluster.node import NODES
from reserver.cluster.quantity import total
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

MOST_WEEKS = 13
MOST_NAMESPACES = 500
"""So many namespaces have accounts of their own in a week."""

MOST_OWNERS = 20
"""So many owners of a namespace have accounts of their own in a week."""

MOST_RESOURCES = 8
"""So many resources of an owner are counted in a week."""

_COUNTED_ALWAYS = frozenset({"cpu", "memory"})
"""Whatever else was counted first: an owner with eight others would hide these."""

_MOST_TEXT = 128
"""How many characters of an owner are kept."""

OTHERS = "_others"
"""Stands for all others: no namespace and no owner is called that."""

_HOUR_S = 3600.0
WEEK_S = 7 * 86_400
_MONDAY_S = 3 * 86_400
"""1970 began on a Thursday, three days after a Monday."""


class HoldUse(NamedTuple):
    """An amount of a resource in its three parts: at a moment, or times hours."""

    free: float = 0.0
    spare: float = 0.0
    used: float = 0.0

    @property
    def held(self) -> float:
        """All of it."""
        return self.free + self.spare + self.used

    @property
    def claimed(self) -> float:
        """The part of slots that pods have claimed."""
        return self.spare + self.used

    @property
    def unused(self) -> float:
        """The part that no pod requested."""
        return self.free + self.spare

    def plus(self, other: HoldUse, times: float = 1.0) -> HoldUse:
        """Return the sum with another one, so many times."""
        return HoldUse(*(mine + more * times for mine, more in zip(self, other, strict=True)))


Uses = Mapping[str, HoldUse]
"""By resource, in millicores, bytes or pieces."""


class AccountKey(NamedTuple):
    """The account of an owner in a week; `week` is its begin, a Monday 00:00 UTC, in seconds."""

    week: int
    namespace: str
    owner: str


def week_of(moment: float) -> int:
    """Return the begin of the week of a moment, both in unix seconds."""
    return int((moment + _MONDAY_S) // WEEK_S) * WEEK_S - _MONDAY_S


_Week = dict[str, dict[str, dict[str, HoldUse]]]
"""By namespace and owner."""


class Accounts:
    """The accounts of some weeks, within bounds."""

    def __init__(self) -> None:
        """Begin empty."""
        self._weeks: dict[int, _Week] = {}

    def add(self, namespace: str, owner: str, begin: float, end: float, uses: Uses) -> None:
        """Add what an owner held between two moments, in unix seconds."""
        while begin < end:
            week = week_of(begin)
            until = min(end, week + WEEK_S)
            self.put(AccountKey(week, namespace, owner), uses, (until - begin) / _HOUR_S)
            begin = until

    def put(self, key: AccountKey, uses: Uses, hours: float = 1.0) -> None:
        """Add to an account what it had, so many hours; what is too much goes to the others."""
        namespaces = self._weeks.setdefault(key.week, {})
        namespace = _bounded(key.namespace, namespaces, MOST_NAMESPACES)
        owners = namespaces.setdefault(namespace, {})
        owner = key.owner[:_MOST_TEXT] if namespace == key.namespace else OTHERS
        account = owners.setdefault(_bounded(owner, owners, MOST_OWNERS), {})
        for resource, use in uses.items():
            is_kept = resource in account or resource in _COUNTED_ALWAYS
            if is_kept or len(account) < MOST_RESOURCES:
                account[resource] = account.get(resource, HoldUse()).plus(use, hours)
        while len(self._weeks) > MOST_WEEKS:
            del self._weeks[min(self._weeks)]

    def __iter__(self) -> Iterator[tuple[AccountKey, dict[str, HoldUse]]]:
        """Yield each account, in amounts times hours, the earliest week first."""
        for week in sorted(self._weeks):
            for namespace, owners in self._weeks[week].items():
                for owner, account in owners.items():
                    yield AccountKey(week, namespace, owner), account

    @property
    def weeks(self) -> list[int]:
        """The weeks, the earliest first."""
        return sorted(self._weeks)

    def of(self, week: int) -> Iterator[tuple[str, Mapping[str, Uses]]]:
        """Yield each namespace of a week with its accounts by owner; others may be added."""
        yield from tuple(self._weeks.get(week, {}).items())

    def fold(self) -> Generator[None, None, int]:
        """Keep less: sum the owners of the oldest week, then of others, then the namespaces.

        Only once there is nothing else to sum, the oldest week is forgotten. Others may be added
        between the steps. Returns the week that has changed.
        """
        for week in sorted(self._weeks):
            many = [name for name, owners in self._weeks[week].items() if owners.keys() != {OTHERS}]
            for namespace in many:
                owners = self._weeks[week].pop(namespace)
                self._sum(AccountKey(week, namespace, OTHERS), owners)
                yield
            if many:
                return week
        for week in sorted(self._weeks):
            many = [name for name in self._weeks[week] if name != OTHERS]
            for namespace in many:
                self._sum(AccountKey(week, OTHERS, OTHERS), self._weeks[week].pop(namespace))
                yield
            if many:
                return week
        oldest = min(self._weeks)
        del self._weeks[oldest]
        return oldest

    def _sum(self, key: AccountKey, owners: Mapping[str, Uses]) -> None:
        for account in owners.values():
            self.put(key, account)


def _bounded(name: str, known: Mapping[str, object], most: int) -> str:
    return name if name in known or len(known) < most else OTHERS


DAY_S = 86_400.0
NOTHING: Uses = {}


def measured(reservation: Reservation, ledger: LedgerView) -> Uses:
    """Return what a reservation holds now, in the three parts of each resource.

    The use of a pod is its request, up to the slot. A slot whose pod is gone for good holds
    nothing for anybody. What no node offers nobody holds: its author invents the names, and an
    account has only so many.
    """
    ref = reservation.ref
    if ledger.phase(ref) not in {Phase.ACTIVE, Phase.CLAIMED}:
        return NOTHING
    if reservation.is_whole:
        return _of_whole_nodes(reservation, ledger)
    holding = ledger.holding(ref)
    pods = [pod for pod in ledger.claiming(ref).values() if pod is not None and not pod.finished]
    uses = {}
    for resource, slot in reservation.resources.items():
        if not ledger.is_offered(resource):
            continue
        used = sum(min(slot, pod.requests.get(resource, 0)) for pod in pods)
        free = sum(amounts.get(resource, 0) for amounts in holding.values())
        if free or pods:
            uses[resource] = HoldUse(free, slot * len(pods) - used, used)
    return uses


def _of_whole_nodes(reservation: Reservation, ledger: LedgerView) -> Uses:
    """Return the nodes, used while an owner is there, and all that pods of others leave of them.

    First what an account has room for in any case.
    """
    uses, owners = dict[str, HoldUse](), ledger.owners_on(reservation)
    for node, left in ledger.kept(reservation.ref).items():
        pods = owners.get(node, [])
        used = total(pod.requests for pod in pods)
        for name, amount in left.items():
            use = HoldUse(0, amount, used.get(name, 0)) if pods else HoldUse(amount)
            use = HoldUse(used=1) if pods and name == NODES else use
            uses[name] = uses.get(name, HoldUse()).plus(use)
    first = (NODES, "cpu", "memory", *(name for name in sorted(uses) if "/" in name), *sorted(uses))
    return {name: uses[name] for name in first if name in uses and uses[name].held}


@dataclass(slots=True)
class HoldMeter:
    """Counts what one reservation holds, from look to look.

    Attributes:
        namespace: of the pods that it is for.
        owner: who may claim it, in words.
        at: until when it is counted, in unix seconds.
        uses: what it has held since then.
        day_began: when the day began that is measured for low use.
        day: what was held and used on that day, in amounts times seconds.
        is_low: the last day had low use.
    """

    namespace: str
    owner: str
    at: float
    uses: Uses
    day_began: float
    day: dict[str, HoldUse] = field(default_factory=dict)
    is_low: bool = False

    @classmethod
    def begun(
        cls, namespace: str, owner: str, uses: Uses, at: float, unused_since: float | None
    ) -> HoldMeter:
        """Begin to count at a moment.

        Args:
            namespace: of the pods that it is for.
            owner: who may claim it, in words.
            uses: what it holds.
            at: the moment, in unix seconds.
            unused_since: since when it has held that and nothing was used; None if unknown.
        """
        meter = cls(namespace, owner, at, uses, at)
        if unused_since is not None:
            meter.day_began -= max(0.0, at - unused_since) % DAY_S
            meter._count(at - meter.day_began)
        return meter

    def advance(self, now: float, uses: Uses) -> tuple[float, Uses]:
        """Take what it holds from now on; return for how many seconds it has held what.

        A day at most: a clock that jumps ahead by years would fill all weeks that are kept.
        """
        seconds, before = min(max(0.0, now - self.at), DAY_S), self.uses
        self._count(seconds)
        self.at, self.uses = now, uses
        self.day_began = min(self.day_began, now)
        return seconds, before

    def finish_day(self, least: float) -> float | None:
        """End the day if it is over; return the share that was used if that is less than `least`.

        Of several resources the one counts of which most was used; not ``pods``, of which one
        takes its whole slot, however little it requests.
        """
        days = int((self.at - self.day_began) // DAY_S)
        if not days:
            return None
        shares = {name: use.used / use.held for name, use in self.day.items() if use.held}
        if len(shares) > 1:
            shares.pop("pods", None)
        self.day_began += days * DAY_S
        self.day = {}
        most = max(shares.values(), default=1.0)
        self.is_low = most < least
        return most if self.is_low else None

    def _count(self, seconds: float) -> None:
        for resource, use in self.uses.items() if seconds else ():
            self.day[resource] = self.day.get(resource, HoldUse()).plus(use, seconds)
