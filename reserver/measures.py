"""The counters of the parts of this process."""

from __future__ import annotations

from collections.abc import Iterator

from reserver.assembly import Assembly


def counters(parts: Assembly) -> Iterator[tuple[str, str, int]]:
    """Yield name, help text and value of each counter."""
    reflectors, stores = parts.reflectors, parts.stores
    unreadable = sum(reflector.view.unreadable for reflector in reflectors)
    lost = "Edits that were not made because somebody wrote the key in between."
    passed_over = "Objects that were passed over because they could not be read."
    yield "reserver_lists", "Lists of a watched collection.", sum(each.lists for each in reflectors)
    watches = sum(each.watches for each in reflectors)
    yield "reserver_watches", "Watches begun, resumed ones included.", watches
    yield "reserver_problems", "Entries reported as not enforced.", parts.recorder.reported
    yield "reserver_store_edits", "Edits that the cleaner made.", parts.cleaner.edits
    yield "reserver_store_edits_lost", lost, parts.cleaner.lost
    writes = sum(store.statuses.writes for store in stores)
    yield "reserver_status_writes", "Writes of what became of entries.", writes
    yield "reserver_quota_status_writes", "Writes of what is used.", parts.quota_writer.writes
    unclaimed = "Reservations that expired with slots that nobody had claimed."
    yield "reserver_expired_unclaimed", unclaimed, parts.archivist.unclaimed
    yield "reserver_history_writes", "Writes of what is over.", parts.archivist.writes
    if parts.rebalancing is not None:
        ended = "How often the process that rebalances has ended by itself."
        yield "reserver_rebalance_process_ended", ended, parts.rebalancing.ended
    yield "reserver_placements", "Reservations placed, or placed again.", parts.placer.placed
    yield "reserver_woken_pods", "Waiting pods sent back to be tried.", parts.waker.woken
    yield "reserver_unreadable_objects", passed_over, unreadable
