"""A reservation of each night."""

from dataclasses import replace

from reserver.base.schedule import Schedule
from reserver.cluster.pod import Pod
from reserver.reservations.entry import identified
from reserver.reservations.enums import Phase
from reserver.reservations.ledger import Ledger
from reserver.reservations.recurrence import Recurrence
from reserver.reservations.reservation import Reservation
from tests.builders import pod, ref, reservation, rule
from tests.unit.reservations.held import held

DAY = 86_400.0
HOUR = 3_600.0
MIDNIGHT = 21_000 * DAY
"""Unix seconds; in UTC."""

R = ref("r")
BEGIN, END = MIDNIGHT + 22 * HOUR, MIDNIGHT + 30 * HOUR
"""Of the first occurrence."""


def nightly(*, cpu: str = "2", until: float | None = None, **fields: object) -> Reservation:
    """Return a reservation of 22:00 to 06:00, of two slots for pods with app=batch."""
    schedule = Schedule("0 22 * * *", 8 * HOUR, until=until)
    once = reservation("r", owners=(), rules=[rule(app="batch")], slots=2, cpu=cpu)
    recurrence = Recurrence(schedule=schedule, **fields)  # type: ignore[arg-type]
    return identified(replace(once, recurrence=recurrence))


def at(ledger: Ledger, now: float) -> tuple[Phase | None, int, int]:
    """Return the phase, the claims and the held millicores at a moment."""
    ledger.advance(now)
    return ledger.phase(R), ledger.claimed(R), held(ledger)


def claimed(ledger: Ledger, name: str, revision: int = 10) -> Pod:
    """Bind a pod that claims a slot now."""
    reservation = ledger.get(R)
    assert reservation is not None
    bound = pod(name, labels={"app": "batch"}, node="worker-1", claims=[reservation], cpu="2")
    bound = replace(bound, revision=revision)
    ledger.claim(reservation.identity, bound)
    return bound
