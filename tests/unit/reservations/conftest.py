import pytest

from reserver.cluster.snapshot import Snapshot
from reserver.reservations.ledger import Ledger
from tests.builders import node


@pytest.fixture
def snapshot() -> Snapshot:
    snapshot = Snapshot()
    snapshot.set_node(node("worker-1", cpu="16"))
    snapshot.set_node(node("worker-2", cpu="16"))
    return snapshot


@pytest.fixture
def ledger(snapshot: Snapshot) -> Ledger:
    return Ledger(snapshot)
