"""A census: how many reservations are in which phase, and what they hold for whose pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation
from reserver.reservations.status import ShortNodes
from reserver.reservations.view import LedgerView

_STEP = 32
"""How many reservations are counted between two chances for other work: about 0.5 ms."""


@dataclass(frozen=True, slots=True)
class Census:
    """How many reservations there are, and what they hold.

    Attributes:
        phases: how many reservations are in each phase.
        unbacked: how many hold what their node does not have, by the namespace that they are in.
        held: what is held for the pods of a namespace, by resource and namespace, in millicores,
            bytes or pieces.
    """

    phases: Counter[Phase] = field(default_factory=Counter)
    unbacked: Counter[str] = field(default_factory=Counter)
    held: dict[str, Counter[str]] = field(default_factory=dict)


def take(
    snapshot: Snapshot, ledger: LedgerView, resources: Iterable[str]
) -> Generator[None, None, Census]:
    """Count all reservations, and return what is held of some resources.

    Reservations that come meanwhile are not counted; those that go are not either.
    """
    census = Census(held={resource: Counter() for resource in resources})
    short = ShortNodes.of(snapshot)
    for number, ref in enumerate(ledger.refs()):
        if number % _STEP == 0:
            yield
        reservation, phase = ledger.get(ref), ledger.phase(ref)
        if reservation is None or phase is None:
            continue
        census.phases[phase] += 1
        if phase in {Phase.ACTIVE, Phase.FAILED} and not short.backs(reservation, phase, ledger):
            census.unbacked[ref.namespace] += 1
        if phase is Phase.ACTIVE:
            _add(census, reservation, ledger)
    return census


def _add(census: Census, reservation: Reservation, ledger: LedgerView) -> None:
    namespace = owner_namespace(reservation)
    for amounts in ledger.kept(reservation.ref).values():
        for resource, by_namespace in census.held.items():
            by_namespace[namespace] += amounts.get(resource, 0)


def owner_namespace(reservation: Reservation) -> str:
    """Return whose pods a reservation is for: the namespace of its first owner."""
    if reservation.owners:
        return reservation.owners[0].namespace
    return reservation.rules[0].namespace if reservation.rules else reservation.ref.namespace
