"""The holds of a ledger."""

from reserver.reservations.ledger import Ledger


def held(ledger: Ledger, worker: str = "worker-1") -> int:
    """Return the held millicores; assert that ledger and matrix agree."""
    said = ledger.held_on(worker).get("cpu", 0)
    row = ledger._snapshot.row(worker)
    assert row is not None
    assert ledger._snapshot.held[row, ledger._snapshot.columns["cpu"]] == said
    assert bool(ledger._snapshot.has_holds[row]) == bool(ledger.held_on(worker))
    return said
