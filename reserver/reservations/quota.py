"""A quota: a limit on all reservations of a namespace together, as in ResourceQuota.

The counted amounts have the names of ``spec.hard``: ``reservations``, and ``held.RESOURCE`` in
millicores of cpu and base units of all others. Each reservation asks for a share of them.
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
"""The name of the number of reservations."""

HELD = "held."
"""The prefix of a resource's name: the held amount of the resource."""

HELD_NODES = f"{HELD}{NODES}"
"""The name of the number of whole nodes."""

HELD_ELSE = "held.*"
"""The name of the limit for each resource without its own limit."""

EXCEEDED = "exceeded quota:"
"""The beginning of each message about a quota, as in Kubernetes' ResourceQuota."""

_MOST_NAMED = 8

_REMEMBERED = 1024
"""Most different uses that are cached, so that equal uses are one value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The limits of a namespace.

    Attributes:
        name: the quota's name in messages.
        hard: the limit of each counted amount, by its name.
        max_ttl: the longest life of a reservation, in seconds; None for no limit.
        allows_node_names: reservations may name nodes.
        allows_firm_holds: reservations need not be preemptible.
    """

    name: str
    hard: Mapping[str, int]
    max_ttl: float | None = None
    allows_node_names: bool = True
    allows_firm_holds: bool = True

    def limit(self, counted: str) -> int | None:
        """Return the limit of a counted amount; None without one.

        A whole node has all resources: if any resource is limited, whole nodes are limited to 0.
        """
        limit = self.hard.get(counted)
        if limit is None and counted == HELD_NODES and HELD_ELSE not in self.hard:
            return 0 if any(name.startswith(HELD) for name in self.hard) else None
        if limit is None and counted.startswith(HELD):
            return self.hard.get(HELD_ELSE)
        return limit


def usage(reservation: Reservation, slots: int) -> Mapping[str, int]:
    """Return the amounts that slots of a reservation use of a quota; equal ones are one value."""
    return _usage(tuple(reservation.resources.items()), slots)


@lru_cache(_REMEMBERED)
def _usage(resources: tuple[tuple[str, int], ...], slots: int) -> Mapping[str, int]:
    return {RESERVATIONS: 1} | {f"{HELD}{name}": each * slots for name, each in resources}


def show_amount(counted: str, amount: int) -> str:
    """Return a counted amount in the form that people write."""
    return quantity.show(counted.removeprefix(HELD), amount)


def exceeded(quotas: Iterable[Quota], asked: Mapping[str, int], used: Mapping[str, int]) -> str:
    """Return the exceeded quota and amounts, in ResourceQuota's words; empty if none.

    The words are those of apiserver's plugin/pkg/admission/resourcequota/controller.go.

    Args:
        quotas: the namespace's quotas; each has to be met.
        asked: the requested amounts.
        used: the amounts of other reservations.
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
    """Return why a quota forbids a reservation by itself; empty if none does.

    Args:
        quotas: the namespace's quotas; each has to be met.
        since: the write of the reservation, unix seconds.
    """
    for quota in quotas:
        for judge in _RULES:
            if why := judge(quota, reservation, since):
                return f"{EXCEEDED} {quota.name}, {why}"
    return ""


def forbids_change(
    quotas: Iterable[Quota], before: Reservation, after: Reservation, since: float
) -> bool:
    """Return whether an edit adds something that a quota forbids.

    Args:
        quotas: the namespace's quotas; each has to be met.
        before: the former spec.
        after: the new spec.
        since: the first write of the reservation, unix seconds.
    """
    lives_longer = _lives(after, since) > _lives(before, since)
    return any(
        judge(quota, after, since)
        and (not judge(quota, before, since) or (lives_longer and judge is _lives_too_long))
        for quota in quotas
        for judge in _RULES
    )


def names_node(reservation: Reservation) -> bool:
    """Return whether a reservation names its node, in any field.

    A required affinity to a pod may name its node as well, unless its topology is the zone or the
    region: any other label may have a different value on each node.
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
    """Return the life of a reservation from `since`, or of each occurrence, in seconds."""
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
        is_new: it is not recorded as admitted before this process began.
        at: the write, unix seconds.
        number: the order of arrival; later ones are greater.
    """

    is_new: bool
    at: float
    number: int


class AdmissionState(Enum):
    """The state of a reservation in admission."""

    WAITING = auto()
    ADMITTED = auto()
    BLOCKED = auto()
    """The reservation could not be admitted even alone."""


@dataclass(slots=True, eq=False)
class QuotaShare:
    """The share of the quotas that one reservation asks for.

    Attributes:
        asked: the amounts of its unclaimed slots.
        turn: its turn in the order of writing.
        since: the write, unix seconds.
        standing: its state in admission.
        why: why it is not admitted; of an admitted one, the limit that it exceeds.
        former: the spec before an edit that is not judged yet.
    """

    reservation: Reservation
    asked: Mapping[str, int]
    turn: WriteOrder
    since: float
    standing: AdmissionState = AdmissionState.WAITING
    why: str = ""
    former: Reservation | None = None
