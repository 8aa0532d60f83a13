"""What is measured of this process, beside its calls."""

from __future__ import annotations

from collections.abc import Iterable

from reserver.assembly import Assembly
from reserver.reservations.view import LedgerView
from reserver.scheduling.state import State


class Measures:
    """What `Metrics` reads when somebody scrapes."""

    def __init__(self, assembly: Assembly) -> None:
        """Read all of it from an assembly."""
        self._assembly = assembly

    @property
    def state(self) -> State:
        """The state that decisions read."""
        return self._assembly.state

    @property
    def ledger(self) -> LedgerView:
        """The ledger of reservations, at this moment."""
        return self._assembly.ledger

    @property
    def is_ready(self) -> bool:
        """Whether calls are decided."""
        return self._assembly.is_ready

    def invalid_entries(self) -> Iterable[tuple[str, int]]:
        """Yield each part of the store with the number of entries not enforced."""
        return (("/".join(name), count) for name, count in self._assembly.stores.problem_counts())

    def counters(self) -> Iterable[tuple[str, str, int]]:
        """Yield name, help text and value of each counter."""
        parts = self._assembly
        yield (
            "reserver_lists",
            "Lists of a watched collection.",
            sum(reflector.lists for reflector in parts.reflectors),
        )
        yield (
            "reserver_watches",
            "Watches begun, resumed ones included.",
            sum(reflector.watches for reflector in parts.reflectors),
        )
        yield (
            "reserver_problems",
            "Entries reported as not enforced.",
            parts.recorder.reported,
        )
        yield "reserver_store_edits", "Edits that tidied the store.", parts.cleaner.edits
        yield (
            "reserver_store_edits_lost",
            "Edits that were not made because somebody wrote the key in between.",
            parts.cleaner.lost,
        )
        yield (
            "reserver_status_writes",
            "Writes of what became of entries.",
            sum(store.statuses.writes for store in parts.stores),
        )
        yield (
            "reserver_quota_status_writes",
            "Writes of what is used.",
            parts.quota_writer.writes,
        )
        yield (
            "reserver_placements",
            "Reservations placed, or placed anew.",
            parts.placer.placed,
        )
        yield (
            "reserver_woken_pods",
            "Waiting pods sent back to be tried.",
            parts.waker.woken,
        )
        yield (
            "reserver_unreadable_objects",
            "Objects that were passed over because they could not be read.",
            sum(reflector.view.unreadable for reflector in parts.reflectors),
        )
