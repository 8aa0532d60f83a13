"""The meter of one hold: what it holds at a moment, and how much of that is used in a day. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from reserver.cluster.node import NODES
from reserver.reservations.accounts import HoldUse, Uses
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Reservation
from reserver.reservations.view import LedgerView

DAY_S = 86_400.0
NOTHING: Uses = {}


def measured(reservation: Reservation, ledger: LedgerView) -> Uses:
    """Return what a reservation holds now, in the three parts of each resource.

    What pods use is what they request, up to the slot. A slot whose pod is gone for good holds
    nothing for anybody. A whole node is used while an owner is there.
    """
    ref = reservation.ref
    if ledger.phase(ref) not in {Phase.ACTIVE, Phase.CLAIMED}:
        return NOTHING
    holding = ledger.holding(ref)
    pods = [pod for pod in ledger.claiming(ref).values() if pod is not None and not pod.finished]
    if reservation.is_whole:
        used, held = len({pod.node for pod in pods} & holding.keys()), len(holding)
        return {NODES: HoldUse(held - used, 0, used)} if held else NOTHING
    uses = {}
    for resource, slot in reservation.resources.items():
        used = sum(min(slot, pod.requests.get(resource, 0)) for pod in pods)
        free = sum(amounts.get(resource, 0) for amounts in holding.values())
        if free or pods:
            uses[resource] = HoldUse(free, slot * len(pods) - used, used)
    return uses


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
        """Take what it holds from now on; return for how many seconds it has held what."""
        seconds, before = max(0.0, now - self.at), self.uses
        self._count(seconds)
        self.at, self.uses = now, uses
        self.day_began = min(self.day_began, now)
        return seconds, before

    def finish_day(self, least: float) -> float | None:
        """End the day if it is over; return the share that was used if that is less than `least`.

        Of several resources the one counts of which most was used.
        """
        days = int((self.at - self.day_began) // DAY_S)
        if not days:
            return None
        shares = [use.used / use.held for use in self.day.values() if use.held]
        self.day_began += days * DAY_S
        self.day = {}
        self.is_low = bool(shares) and max(shares) < least
        return max(shares) if self.is_low else None

    def _count(self, seconds: float) -> None:
        for resource, use in self.uses.items() if seconds else ():
            self.day[resource] = self.day.get(resource, HoldUse()).plus(use, seconds)
