"""Bind calls at once, calls that are given up, and the drain at the end."""

import asyncio

import pytest

from reserver.errors import ApiError
from reserver.extender import bindings as bindings_module
from tests.builders import pod, requested
from tests.unit.extender.bindings.calls import OWNER, SEAT, begun, bind, until_asked
from tests.unit.extender.conftest import Served
from tests.unit.extender.fakes import call
from tests.waiting import until


async def test_many_calls_at_once_share_what_is_left_and_no_more(served: Served) -> None:
    served.show(SEAT, *(pod(f"p{number}", cpu="1") for number in range(8)))
    served.cluster.gate.clear()
    calls = [asyncio.create_task(bind(served, call(f"p{number}"))) for number in range(8)]
    await until_asked(served, 2)
    served.cluster.gate.set()
    answers = await asyncio.gather(*calls)
    assert sorted(answers) == [""] * 2 + ["held by reservation shop/store/r"] * 6
    assert requested(served.state, "worker-1") == 2000


async def test_a_second_call_for_the_same_node_joins_the_first(served: Served) -> None:
    served.show(OWNER)
    served.cluster.gate.clear()
    calls = [asyncio.create_task(bind(served, call("owner"))) for _ in range(3)]
    await until_asked(served)
    assert len(served.bindings) == 1
    served.cluster.gate.set()
    assert await asyncio.gather(*calls) == ["", "", ""]
    assert len(served.cluster.bound) == 1
    assert len(served.bindings) == 0


async def test_those_who_joined_learn_of_the_failure_too(served: Served) -> None:
    served.show(OWNER)
    served.cluster.gate.clear()
    served.cluster.failure = ApiError(422, "Invalid", "nonsense")
    calls = [asyncio.create_task(bind(served, call("owner"))) for _ in range(2)]
    await until_asked(served)
    served.cluster.gate.set()
    assert await asyncio.gather(*calls) == ["binding failed: Invalid"] * 2


async def test_another_node_is_refused_while_a_binding_is_under_way(served: Served) -> None:
    served.show(OWNER)
    first = await begun(served, call("owner"))
    assert await bind(served, call("owner", "worker-2")) == "being bound to worker-1"
    served.cluster.gate.set()
    assert await first == ""
    assert len(served.cluster.bound) == 1


async def test_a_call_that_waits_too_long_is_answered_and_the_binding_goes_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindings_module, "BIND_PATIENCE_S", 0.01)
    served.show(OWNER)
    served.cluster.gate.clear()
    answer = await bind(served, call("owner"))
    assert answer == "binding not confirmed by the API server yet"
    assert requested(served.state, "worker-1") == 2000
    again = asyncio.create_task(bind(served, call("owner")))
    served.cluster.gate.set()
    assert await again == ""
    assert len(served.cluster.bound) == 1


async def test_a_call_that_is_given_up_does_not_end_the_binding(served: Served) -> None:
    served.show(OWNER)
    first = await begun(served, call("owner"))
    first.cancel()
    served.cluster.gate.set()
    await served.bindings.drain()
    assert requested(served.state, "worker-1") == 2000
    assert await bind(served, call("owner")) == ""
    assert len(served.cluster.bound) == 1


async def test_a_binding_is_wanted_while_a_call_waits_for_it_and_a_moment_longer(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.show(OWNER)
    served.cluster.gate.clear()
    calls = [asyncio.create_task(bind(served, call("owner"))) for _ in range(2)]
    await until_asked(served)
    for waiting in calls:
        assert await served.cluster.is_wanted()
        waiting.cancel()
        await asyncio.sleep(0)
    assert await served.cluster.is_wanted()  # Its kube-scheduler may be asking again just now.
    monkeypatch.setattr("reserver.extender.pod_writes.LEFT_S", 0)
    assert not await served.cluster.is_wanted()
    again = asyncio.create_task(bind(served, call("owner")))
    await asyncio.sleep(0)
    assert await served.cluster.is_wanted()
    served.cluster.gate.set()
    assert await again == ""


async def test_draining_waits_for_the_bindings_under_way(served: Served) -> None:
    served.show(OWNER)
    first = await begun(served, call("owner"))
    draining = asyncio.create_task(served.bindings.drain())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not draining.done()
    served.cluster.gate.set()
    await draining
    assert await first == ""


async def test_draining_does_not_wait_for_ever(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reserver.extender.bindings.BIND_PATIENCE_S", 0)
    served.show(OWNER)
    first = await begun(served, call("owner"))
    await served.bindings.drain()
    assert "not confirmed" in await first
    await until(lambda: not len(served.bindings))  # A task that was cancelled ends by itself.
