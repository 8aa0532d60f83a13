"""Bind calls that bind a pod or refuse it."""

import asyncio

import pytest

from reserver.errors import ApiError, InvalidInput
from reserver.scheduling.in_flight import FORGETTING_S
from reserver.scheduling.verdicts import Retry
from tests.builders import held, pod, requested, reservation
from tests.unit.extender.bindings.calls import OWNER, SEAT, begun, bind
from tests.unit.extender.conftest import Served
from tests.unit.extender.fakes import call


async def test_a_pod_is_bound_with_what_it_claims(served: Served) -> None:
    served.show(SEAT, OWNER)
    assert await bind(served, call("owner")) == ""
    assert served.cluster.bound == [("owner", "worker-1", (SEAT.identity,))]
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (2000, 0)


async def test_what_holds_refuse_is_not_asked_for(served: Served) -> None:
    served.show(SEAT, pod("a", cpu="3"))
    assert await bind(served, call("a")) == "held by reservation shop/store/r"
    assert served.cluster.bound == []
    assert requested(served.state, "worker-1") == 0


@pytest.mark.parametrize("fails", [False, True])
async def test_an_owner_waits_while_kube_scheduler_forgets_whose_binding_to_its_seat_failed(
    served: Served, *, fails: bool
) -> None:
    owner = pod("owner", nominated="worker-1", cpu="2")
    served.show(SEAT, owner, pod("a", cpu="2" if fails else "3"))
    served.cluster.failure = ApiError(409, "Conflict", "") if fails else None
    assert await bind(served, call("a")) != ""
    verdict = served.extender.filter(owner, ["worker-2"])
    assert verdict.nodes == ()
    assert verdict.effects == (Retry(owner, attempts=1, after_s=FORGETTING_S),)


async def test_an_owner_waits_for_its_seat_while_bind_waits_for_a_broken_watch(
    served: Served,
) -> None:
    owner = pod("owner", nominated="worker-1", cpu="2")
    served.show(SEAT, owner, pod("a", cpu="2"))
    served.readiness.current.clear()
    binding = asyncio.create_task(bind(served, call("a")))
    await asyncio.sleep(0)
    assert served.extender.filter(owner, ["worker-2"]).nodes == ()
    served.readiness.current.set()
    assert await binding == ""
    assert served.extender.filter(owner, ["worker-2"]).nodes == ["worker-2"]


async def test_room_is_taken_from_the_decision_on_not_from_the_answer(served: Served) -> None:
    served.show(SEAT, pod("a", cpu="2"), pod("b", cpu="2"))
    first = await begun(served, call("a"))
    assert await bind(served, call("b")) == "held by reservation shop/store/r"
    served.cluster.gate.set()
    assert await first == ""


@pytest.mark.parametrize("shown", [True, False], ids=["shown", "not shown yet"])
@pytest.mark.parametrize(("to", "bound"), [("worker-1", True), ("worker-2", False)])
async def test_once_bound_a_pod_is_not_bound_again_to_whatever_node(
    served: Served, to: str, *, bound: bool, shown: bool
) -> None:
    others = reservation("others", owners=("b",), cpu="2")
    served.show(others, OWNER)
    assert await bind(served, call("owner")) == ""
    if shown:
        served.show(pod("owner", node="worker-1", cpu="2"))
    answer = await bind(served, call("owner", to))
    assert (answer == "") == bound
    assert len(served.cluster.bound) == 1
    assert requested(served.state, "worker-1") == 2000
    assert requested(served.state, "worker-2") == 0


@pytest.mark.parametrize("failure", [ApiError(404, "NotFound", "gone"), InvalidInput("", "x", "y")])
async def test_a_binding_that_fails_gives_back_what_it_took(
    served: Served, failure: Exception
) -> None:
    served.show(SEAT, OWNER)
    served.cluster.failure = failure
    assert (await bind(served, call("owner"))).startswith("binding failed: ")
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (0, 2000)
    served.cluster.failure = None
    assert await bind(served, call("owner")) == ""
    assert served.cluster.bound == [("owner", "worker-1", (SEAT.identity,))] * 2


async def test_a_failure_is_told_in_constant_words(served: Served) -> None:
    served.show(OWNER)
    answers = set()
    for number in range(3):
        served.cluster.failure = ApiError(422, "Invalid", f"at {number} o'clock")
        answers.add(await bind(served, call("owner")))
    assert answers == {"binding failed: Invalid"}


async def test_the_watch_may_show_a_binding_before_the_answer_comes(served: Served) -> None:
    served.show(SEAT, OWNER)
    served.cluster.on_bind = lambda: served.show(
        pod("owner", node="worker-1", claims=[SEAT], cpu="2")
    )
    assert await bind(served, call("owner")) == ""
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (2000, 0)
