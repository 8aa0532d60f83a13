"""The metrics of the process."""

from __future__ import annotations

from reserver.k8s.client import ApiClient
from reserver.k8s.lease import Lease
from reserver.process.metrics import _leadership
from tests.unit.k8s.clocks import ManualTime


class Election(ApiClient):
    """An API server that lets a candidate have the Lease."""

    def __init__(self) -> None:
        """Begin without a connection."""

    async def _send(self, method: str, path: str, **_: object) -> bytes:
        assert method in {"GET", "POST", "PUT", "PATCH"}, path
        return b'{"metadata": {"resourceVersion": "1"}, "spec": {}}'


def leads(lease: Lease | None) -> float:
    (family,) = _leadership(lease)
    (sample,) = family.samples
    assert (sample.name, sample.labels) == ("leader_election_master_status", {"name": "reserver"})
    return sample.value


async def test_who_holds_the_lease_leads_and_who_needs_none() -> None:
    time = ManualTime()
    lease = Lease(Election(), ("home", "reserver"), "me", lambda: 0.0, lambda: time.now)
    assert (leads(None), leads(lease)) == (1, 0)
    await lease.acquire()
    assert leads(lease) == 1
    time.now += 60
    assert leads(lease) == 0
