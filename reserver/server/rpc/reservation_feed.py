"""The changes of reservations, for those who watch."""

from __future__ import annotations

from reserver.pacer import Pacer
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.server.rpc.catalogue import Catalogue
from reserver.server.rpc.feed import Feed


class ReservationFeed(Feed[Ref]):
    """The changes of reservations, in their order."""

    def __init__(self, catalogue: Catalogue) -> None:
        """Tell the changes of what a catalogue shows."""
        super().__init__()
        self._catalogue = catalogue
        self._short_nodes: ShortNodes | None = None

    def touched(self, key: Ref) -> None:
        """Note that a key or one of its items may look different now; returns at once."""
        super().touched(key._replace(item=""))

    def _others_ran(self) -> None:
        self._short_nodes = None

    async def _look(self, key: Ref, pacer: Pacer) -> dict[str, bytes]:
        after: dict[str, bytes] = {}
        for reservation, text in self._catalogue.written(key):
            if await pacer.give_way() or self._short_nodes is None:
                self._short_nodes = self._catalogue.short_nodes()
            shown = self._catalogue.show_written(reservation, text, self._short_nodes)
            after[shown.id] = shown.SerializeToString(deterministic=True)
        for shown in self._catalogue.broken(key):
            after[shown.id] = shown.SerializeToString(deterministic=True)
        return after
