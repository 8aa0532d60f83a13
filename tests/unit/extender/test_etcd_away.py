"""Bindings while etcd is away: the API server would keep them for the one that comes back."""

import asyncio

import pytest

from tests.builders import held, requested
from tests.unit.extender.bindings.calls import OWNER, SEAT, begun, bind
from tests.unit.extender.conftest import Served
from tests.unit.extender.fakes import call


async def test_nothing_is_asked_for_while_etcd_does_not_answer(served: Served) -> None:
    """The API server would keep the binding for an etcd that may be restored in between."""
    served.show(SEAT, OWNER)
    served.readiness.agreed = False
    assert await bind(served, call("owner")) == "binding failed: etcd cannot be asked"
    assert served.cluster.bound == []
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (0, 2000)
    served.readiness.agreed = True
    binding = await begun(served, call("owner"))
    assert await served.cluster.is_wanted()
    served.readiness.agreed = False
    assert not await served.cluster.is_wanted()
    served.cluster.gate.set()
    assert await binding == ""


@pytest.mark.parametrize("lost", [True, False], ids=["lease lost", "caller gone"])
async def test_nothing_is_sent_after_an_etcd_so_slow_that_another_decides_by_now(
    served: Served, monkeypatch: pytest.MonkeyPatch, *, lost: bool
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slowly() -> bool:
        asked.set()
        await answer.wait()
        return not served.readiness.said

    served.show(SEAT, OWNER)
    monkeypatch.setattr(served.readiness, "agrees", slowly)
    binding = asyncio.create_task(bind(served, call("owner")))
    await asked.wait()
    if lost:
        served.readiness.said = ("standing by: the other leads",)
    else:  # Its kube-scheduler has ended, and another one leads.
        monkeypatch.setattr("reserver.extender.pod_writes.LEFT_S", 0)
        binding.cancel()
        await asyncio.sleep(0)
    answer.set()
    await served.bindings.drain()
    assert served.cluster.bound == []
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (0, 2000)
    if lost:
        assert "standing by" in await binding
