"""Bindings while etcd is away: the API server would keep them for the one that comes back."""

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
