"""The share of a namespace's quotas that one reservation asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from reserver.reservations.reservation import Reservation


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
