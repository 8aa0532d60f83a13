"""A quota: what the reservations of a namespace may hold together, as in ResourceQuota.

What is counted has the names of ``spec.hard``: ``reservations``, and ``held.RESOURCE`` in
millicores of cpu and base units of all else. Of it each reservation asks for a share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from reserver.cluster import quantity
from reserver.cluster.constraints import Constraints
from reserver.cluster.node import HOSTNAME, NODES
from reserver.cluster.storage import ZONE_LABELS
from reserver.reservations.reservation import Reservation

RESERVATIONS = "reservations"
"""Counts reservations."""

HELD = "held."
"""Before the name of a resource: counts what is held of it."""

HELD_NODES = f"{HELD}{NODES}"
"""Counts whole nodes."""

HELD_ELSE = "held.*"
"""Limits each resource that has no limit of its own."""

EXCEEDED = "exceeded quota:"
"""The beginning of each message about a quota, as in Kubernetes' ResourceQuota."""

_MOST_NAMED = 8

_REMEMBERED = 1024
"""How many different uses are found again (`amounts.shared`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Limits of a namespace.

    Attributes:
        name: what messages call it.
        hard: the most of what is counted, by its name.
        max_ttl: how long a reservation may live, in seconds; None for any time.
        allows_node_names: reservations may name nodes.
        allows_firm_holds: reservations need not be preemptible.
    """

    name: str
    hard: Mapping[str, int]
    max_ttl: float | None = None
    allows_node_names: bool = True
    allows_firm_holds: bool = True

    def limit(self, counted: str) -> int | None:
        """Return the limit of what is counted; None if it has none.

        A whole node is all resources: where any is limited, so are whole nodes, to none.
        """
        limit = self.hard.get(counted)
        if limit is None and counted == HELD_NODES and HELD_ELSE not in self.hard:
            return 0 if any(name.startswith(HELD) for name in self.hard) else None
        if limit is None and counted.startswith(HELD):
            return self.hard.get(HELD_ELSE)
        return limit


def usage(reservation: Reservation, slots: int) -> Mapping[str, int]:
    """Return what these slots of a reservation use of a quota; equal ones are one value."""
    return _usage(tuple(reservation.resources.items()), slots)


@lru_cache(_REMEMBERED)
def _usage(resources: tuple[tuple[str, int], ...], slots: int) -> Mapping[str, int]:
    return {RESERVATIONS: 1} | {f"{HELD}{name}": each * slots for name, each in resources}


def show_amount(counted: str, amount: int) -> str:
    """Return an amount of what is counted as a person writes it."""
    return quantity.show(counted.removeprefix(HELD), amount)


def exceeded(quotas: Iterable[Quota], asked: Mapping[str, int], used: Mapping[str, int]) -> str:
    """Return which quota is exceeded, and by what, as ResourceQuota says it; empty if none is.

    The words are those of apiserver's plugin/pkg/admission/resourcequota/controller.go.

    Args:
        quotas: all of them have to be met.
        asked: what is asked for.
        used: what is used besides.
    """
    for quota in quotas:
        over = sorted(
            (counted, limit)
            for counted, amount in asked.items()
            if (limit := quota.limit(counted)) is not None and used.get(counted, 0) + amount > limit
        )
        if over:
            requested = _listed((counted, asked[counted]) for counted, _ in over[:_MOST_NAMED])
            taken = _listed((counted, used.get(counted, 0)) for counted, _ in over[:_MOST_NAMED])
            limited = _listed(over[:_MOST_NAMED])
            return (
                f"{EXCEEDED} {quota.name}, requested: {requested}, used: {taken}, "
                f"limited: {limited}"
            )
    return ""


def forbidden(quotas: Sequence[Quota], reservation: Reservation, since: float) -> str:
    """Return why some quota does not let a reservation hold, whatever else holds.

    Args:
        quotas: all of them have to be met.
        since: when it was, unix seconds.
    """
    for quota in quotas:
        for judge in _RULES:
            if why := judge(quota, reservation, since):
                return f"{EXCEEDED} {quota.name}, {why}"
    return ""


def forbids_change(
    quotas: Iterable[Quota], before: Reservation, after: Reservation, since: float
) -> bool:
    """Return whether a change asks for what some quota forbids, and was not there before.

    Args:
        quotas: all of them have to be met.
        before: what was written.
        after: what is.
        since: when it was first, unix seconds.
    """
    lives_longer = _lives(after, since) > _lives(before, since)
    return any(
        judge(quota, after, since)
        and (not judge(quota, before, since) or (lives_longer and judge is _lives_too_long))
        for quota in quotas
        for judge in _RULES
    )


def names_node(reservation: Reservation) -> bool:
    """Return whether a reservation names its node, in whatever field.

    Who runs a pod on a node names that node by an affinity to the pod, unless the affinity is met
    on many nodes: in the zone or in the region. Of another label nobody says how many have a value.
    """
    return bool(reservation.node) or _is_about_names(reservation.placement.constraints)


def _is_about_names(constraints: Constraints) -> bool:
    terms = constraints.node_terms or ()
    selectors = (constraints.node_selector, *(term.labels for term in terms))
    if any(term.topology_key not in ZONE_LABELS for term in constraints.affinity):
        return True
    return any(term.fields.requirements for term in terms) or any(
        requirement.key == HOSTNAME
        for selector in selectors
        for requirement in selector.requirements
    )


def _lives_too_long(quota: Quota, reservation: Reservation, since: float) -> str:
    if quota.max_ttl is None:
        return ""
    limited = f"limited: maxTTL={_duration(quota.max_ttl)}; let it expire sooner"
    lives = _lives(reservation, since)
    if lives == math.inf:
        return f"requested: a reservation that never expires, {limited}"
    return f"requested: ttl={_duration(lives)}, {limited}" if lives > quota.max_ttl else ""


def _lives(reservation: Reservation, since: float) -> float:
    """Return how long it lives from a moment on, in seconds; of what recurs each occurrence."""
    if (recurrence := reservation.recurrence) is not None:
        return recurrence.schedule.duration + recurrence.lead
    return math.inf if reservation.expires_at is None else reservation.expires_at - since


def _names_node(quota: Quota, reservation: Reservation, _: float) -> str:
    if quota.allows_node_names or not names_node(reservation):
        return ""
    return "limited: nodeNames=Forbidden; name no node, and Reserver chooses one"


def _is_firm(quota: Quota, reservation: Reservation, _: float) -> str:
    if quota.allows_firm_holds or reservation.yields_above is not None:
        return ""
    return "limited: firmHolds=Forbidden; write preemptible: true"


_RULES: tuple[Callable[[Quota, Reservation, float], str], ...] = (
    _lives_too_long,
    _names_node,
    _is_firm,
)


def _listed(amounts: Iterable[tuple[str, int]]) -> str:
    return ",".join(f"{counted}={show_amount(counted, amount)}" for counted, amount in amounts)


def _duration(seconds: float) -> str:
    """Return a duration as ``ttl`` takes it, to the second."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


class WriteOrder(NamedTuple):
    """A turn in the order of writing.

    Attributes:
        is_new: it is not written that it was let in before this process began.
        at: when it was written, unix seconds.
        number: later ones are greater.
    """

    is_new: bool
    at: float
    number: int


class AdmissionState(Enum):
    """The state of a reservation in admission."""

    WAITING = auto()
    ADMITTED = auto()
    BLOCKED = auto()
    """It could not come in if it were alone."""


@dataclass(slots=True, eq=False)
class QuotaShare:
    """The share of the quotas that one reservation asks for.

    Attributes:
        asked: what it counts for, as far as it is not claimed.
        turn: when it is its turn.
        since: when it was written, unix seconds.
        standing: what became of it.
        why: why it is not admitted; of one that is, what it exceeds all the same.
        former: what stood here before an edit that has not been judged yet.
    """

    reservation: Reservation
    asked: Mapping[str, int]
    turn: WriteOrder
    since: float
    standing: AdmissionState = AdmissionState.WAITING
    why: str = ""
    former: Reservation | None = None
