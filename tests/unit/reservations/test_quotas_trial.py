"""Trials of reservations in a quota for which others wait."""

from dataclasses import replace

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.entry import identified
from reserver.reservations.ledger import Ledger
from reserver.reservations.quota import Quota
from tests.builders import NAMESPACE, node, reservation


def test_what_waits_first_itself_waits_for_nothing_before_it() -> None:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="64"))
    ledger = Ledger(snapshot)
    ledger.quotas.limit(NAMESPACE, [Quota(name="cpu", hard={"held.cpu": 4000, "held.memory": 8})])
    first, waits = reservation("a", cpu="3"), reservation("b", cpu="2", memory="1")
    ledger.put(first)
    ledger.put(waits)
    assert ledger.excess(waits.ref)
    smaller = identified(replace(waits, resources={"pods": 1, "cpu": 1000, "memory": 2}))
    assert ledger.quotas.trial([smaller], 0.0, instead=waits) == ""
    assert "is older and waits" in ledger.quotas.trial([reservation("c", cpu="1")], 0.0)
