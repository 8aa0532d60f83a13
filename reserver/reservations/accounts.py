"""Accounts of held, claimed and used resources by week, namespace and owner. Pure.

Each held unit is, in each hour, in one of three states: free (unclaimed), spare (in a claimed slot,
beyond the pod's requests) or used (requested by the pod). A meter measures one reservation:
the held amounts at a moment, and the share that is used in a day.
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
"""Most namespaces with their own accounts in a week."""

MOST_OWNERS = 20
"""Most owners of a namespace with their own accounts in a week."""

MOST_RESOURCES = 8
"""Most resources of an owner that are counted in a week."""

_COUNTED_ALWAYS = frozenset({"cpu", "memory"})
"""Resources beyond the limit as well: an owner could hide them behind eight others."""

_MOST_TEXT = 128
"""Most characters of an owner."""

OTHERS = "_others"
"""The name for all others: no namespace and no owner has this name."""

_HOUR_S = 3600.0
WEEK_S = 7 * 86_400
_MONDAY_S = 3 * 86_400
"""1970 began on a Thursday, three days after a Monday."""


class HoldUse(NamedTuple):
    """Free, spare and used amounts of a resource: at a moment, or multiplied by hours."""

    free: float = 0.0
    spare: float = 0.0
    used: float = 0.0

    @property
    def held(self) -> float:
        """The held amount."""
        return self.free + self.spare + self.used

    @property
    def claimed(self) -> float:
        """The amount in claimed slots."""
        return self.spare + self.used

    @property
    def unused(self) -> float:
        """The amount that no pod requests."""
        return self.free + self.spare

    def plus(self, other: HoldUse, times: float = 1.0) -> HoldUse:
        """Return the sum with `times` times another use."""
        return HoldUse(*(mine + more * times for mine, more in zip(self, other, strict=True)))


Uses = Mapping[str, HoldUse]
"""Uses by resource, in millicores, bytes or pieces."""


class AccountKey(NamedTuple):
    """The key of an owner's account of a week; `week` starts Monday 00:00 UTC, in unix seconds."""

    week: int
    namespace: str
    owner: str


def week_of(moment: float) -> int:
    """Return the start of the week of a moment, both in unix seconds."""
    return int((moment + _MONDAY_S) // WEEK_S) * WEEK_S - _MONDAY_S


_Week = dict[str, dict[str, dict[str, HoldUse]]]
"""Accounts by namespace and owner."""


class Accounts:
    """The accounts of the last `MOST_WEEKS` weeks."""

    def __init__(self) -> None:
        """Begin empty."""
        self._weeks: dict[int, _Week] = {}

    def add(self, namespace: str, owner: str, begin: float, end: float, uses: Uses) -> None:
        """Add an owner's uses between two moments, in unix seconds."""
        while begin < end:
            week = week_of(begin)
            until = min(end, week + WEEK_S)
            self.put(AccountKey(week, namespace, owner), uses, (until - begin) / _HOUR_S)
            begin = until

    def put(self, key: AccountKey, uses: Uses, hours: float = 1.0) -> None:
        """Add uses times hours to an account; beyond a bound, to the account of the others."""
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
        """Yield each account, in amounts times hours, earliest week first."""
        for week in sorted(self._weeks):
            for namespace, owners in self._weeks[week].items():
                for owner, account in owners.items():
                    yield AccountKey(week, namespace, owner), account

    @property
    def weeks(self) -> list[int]:
        """The weeks, earliest first."""
        return sorted(self._weeks)

    def of(self, week: int) -> Iterator[tuple[str, Mapping[str, Uses]]]:
        """Yield each namespace of a week with its accounts by owner; additions are safe."""
        yield from tuple(self._weeks.get(week, {}).items())

    def fold(self) -> Generator[None, None, int]:
        """Shrink the accounts by one week's step; return the week that has changed.

        The owners of each namespace are summed first, oldest week first; then the namespaces of a
        week; then the oldest week is dropped. Additions between the steps are safe.
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
    """Return the current uses of a reservation.

    A pod uses its request, up to the slot. A claimed slot whose pod is gone counts as nothing.
    Resources that no node offers do not count: authors can invent names, and an account has a
    bounded number.
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
    """Return the uses of whole nodes: a node is used while an owner is there.

    The resources that matter most come first, as an account keeps a bounded number.
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
    """Measures the uses of one reservation from look to look.

    Attributes:
        namespace: the owners' namespace.
        owner: the owners, in words.
        at: the last look, in unix seconds.
        uses: the uses since the last look.
        day_began: the start of the day that is measured for low use, in unix seconds.
        day: the uses of that day, in amounts times seconds.
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
        """Begin to measure at a moment.

        Args:
            namespace: the owners' namespace.
            owner: the owners, in words.
            uses: the current uses.
            at: the moment, in unix seconds.
            unused_since: since when the uses are the same and nothing was used; None if unknown.
        """
        meter = cls(namespace, owner, at, uses, at)
        if unused_since is not None:
            meter.day_began -= max(0.0, at - unused_since) % DAY_S
            meter._count(at - meter.day_began)
        return meter

    def advance(self, now: float, uses: Uses) -> tuple[float, Uses]:
        """Take the new uses; return the seconds since the last look, and the uses in that time.

        A day at most: a clock that jumps ahead by years would fill all kept weeks.
        """
        seconds, before = min(max(0.0, now - self.at), DAY_S), self.uses
        self._count(seconds)
        self.at, self.uses = now, uses
        self.day_began = min(self.day_began, now)
        return seconds, before

    def finish_day(self, least: float) -> float | None:
        """End the day if it is over; return the used share if less than `least`, else None.

        The resource with the greatest share counts; of several resources ``pods`` does not: each
        pod uses all of its slot's ``pods``, however little else it requests.
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
