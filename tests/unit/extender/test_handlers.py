import asyncio
from dataclasses import replace
from itertools import pairwise
from unittest.mock import Mock

import pytest

from reserver.cluster.pod import Pod
from reserver.errors import ApiError, InvalidInput, NotReady
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.pods import PodObject
from reserver.scheduling.verdicts import FilterVerdict, Nominate, Retry
from tests.builders import NOW, name, node, pod, reservation
from tests.unit.extender.conftest import Served
from tests.unit.extender.fakes import call
from tests.waiting import until

SEAT = reservation("r", cpu="2")
OWNER = pod("owner", cpu="2")


async def carry_out(served: Served, verdict: FilterVerdict) -> None:
    """Carry out the effects of a verdict, to the end."""
    served.extender.carry_out(verdict)
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nothing_is_decided_before_the_cluster_is_seen(served: Served) -> None:
    served.show(OWNER)
    served.readiness.said = ("/api/v1/pods is not listed yet",)
    with pytest.raises(NotReady, match="/api/v1/pods is not listed yet"):
        served.extender.filter(OWNER, ["worker-1"])
    with pytest.raises(NotReady):
        await served.bindings.bind(call("owner"))
    with pytest.raises(NotReady):
        await served.extender.explain(OWNER.name)
    with pytest.raises(NotReady):
        await served.extender.preempt(OWNER, {"worker-1": ["uid-v"]})
    assert served.cluster.bound == []


async def test_bind_decides_only_once_no_watch_is_broken(served: Served) -> None:
    served.show(OWNER)
    served.readiness.current.clear()
    asked = asyncio.create_task(served.bindings.bind(call("owner")))
    await asyncio.sleep(0)
    served.show(SEAT)  # Written before, and shown only now.
    served.readiness.current.set()
    assert (await asked).refusal is None
    assert served.cluster.bound == [("owner", "worker-1", (SEAT.identity,))]


async def test_nobody_is_evicted_on_what_a_broken_watch_shows(served: Served) -> None:
    asking = pod("a", priority=1000, cpu="3")
    served.show(asking, pod("v", node="worker-1", cpu="2"))
    served.readiness.current.clear()
    asked = asyncio.create_task(served.extender.preempt(asking, {"worker-1": ["uid-v"]}))
    await asyncio.sleep(0)
    served.show(SEAT)  # Written before, and shown only now.
    served.readiness.current.set()
    assert (await asked).nodes == ()


async def test_a_pod_that_the_watch_has_shown_as_it_is_sent_is_not_read_again(
    served: Served,
) -> None:
    shown = replace(pod("a", cpu="1"), revision=7)
    served.show(shown)

    def sent(uid: str, version: str) -> Pod:
        metadata = {"name": "a", "namespace": "shop", "uid": uid, "resourceVersion": version}
        return served.extender.read(decode(PodObject, encode({"metadata": metadata})))

    assert sent(shown.uid, "7") is shown
    for other in (sent(shown.uid, "8"), sent("uid-later", "7"), sent(shown.uid, "")):
        assert other is not shown
        assert "cpu" not in other.requests
    served.show(replace(shown, revision=0))
    assert sent(shown.uid, "") is not served.state.pods[shown.name]


async def test_filter_has_no_effects_by_itself(served: Served) -> None:
    served.show(SEAT)
    verdict = served.extender.filter(OWNER, ["worker-2"])
    assert verdict.effects == (Nominate(OWNER, "worker-1"),)
    assert served.cluster.effects == []
    await carry_out(served, verdict)
    assert served.cluster.effects == [Nominate(OWNER, "worker-1")]


async def test_carrying_out_keeps_nobody_waiting(served: Served) -> None:
    served.cluster.gate.clear()
    await carry_out(served, FilterVerdict(effects=(Nominate(OWNER, "worker-1"),)))
    assert served.cluster.effects == []
    served.show(pod("a", cpu="1"))
    assert list(served.extender.filter(pod("a", cpu="1"), ["worker-1"]).nodes) == ["worker-1"]


@pytest.mark.parametrize(
    ("effect", "budget"), [(Nominate(OWNER, "worker-1"), 8), (Retry(OWNER, attempts=5), 13)]
)
async def test_a_pod_is_sent_back_only_so_often_in_a_minute(
    served: Served, effect: Nominate | Retry, budget: int
) -> None:
    verdict = FilterVerdict(effects=(effect,))
    for _ in range(30):
        await carry_out(served, verdict)
    assert len(served.cluster.effects) == budget
    served.now += 61
    await carry_out(served, verdict)
    assert len(served.cluster.effects) == budget + 1


async def test_a_pod_that_is_to_be_tried_later_is_not_tried_at_once(served: Served) -> None:
    later = Retry(OWNER, attempts=1, after_s=0.01)
    await carry_out(served, FilterVerdict(effects=(later,)))
    assert served.cluster.effects == []
    await until(lambda: served.cluster.effects)
    assert served.cluster.effects == [later]


async def test_a_pod_that_is_steered_is_on_the_waiting_list_until_it_comes_back(
    served: Served,
) -> None:
    served.show(SEAT, OWNER)
    served.extender.carry_out(served.extender.filter(OWNER, ["worker-2"]))
    assert OWNER.uid in served.state.waiting
    assert len(served.requeue) == 1
    assert served.extender.filter(OWNER, ["worker-1"]).nodes == ["worker-1"]
    assert served.state.waiting == {}
    assert len(served.requeue) == 0


async def test_the_tries_of_one_pod_are_not_those_of_another(served: Served) -> None:
    for number in range(5):
        one = FilterVerdict(effects=(Nominate(pod(f"p{number}"), "worker-1"),))
        for _ in range(30):
            await carry_out(served, one)
    assert len(served.cluster.effects) == 5 * 8


async def test_the_owner_of_a_pod_that_only_holds_keep_is_told(served: Served) -> None:
    served.show(SEAT)
    served.extender.filter(pod("a", cpu="3"), ["worker-1"])
    served.extender.filter(pod("a", cpu="3"), ["worker-2"])
    assert [telling.reason for telling in served.told] == ["HeldByReservations"]


@pytest.mark.parametrize("shown", [True, False], ids=["shown", "not shown yet"])
async def test_a_pod_that_nobody_is_evicted_for_is_known_to_wait(
    served: Served, *, shown: bool
) -> None:
    asking = pod("a", priority=1000, cpu="3")
    served.show(SEAT, pod("v", node="worker-1", cpu="2"))
    if shown:
        served.show(asking)
    else:
        served.cluster.pods[asking.name] = asking
    verdict = await served.extender.preempt(asking, {"worker-1": ["uid-v"]})
    assert verdict.nodes == ()
    assert served.state.waiting[asking.uid].spared == {"worker-1": ("uid-v",)}


@pytest.mark.parametrize("asking", ["ghost", "replaced"])
async def test_nobody_is_evicted_for_a_pod_that_is_no_more(served: Served, asking: str) -> None:
    served.show(pod("v", node="worker-1", cpu="2"))
    served.cluster.pods[name("replaced")] = pod("replaced", uid="another", cpu="4")
    verdict = await served.extender.preempt(pod(asking, cpu="4"), {"worker-1": ["uid-v"]})
    assert (verdict.nodes, verdict.spared) == ((), {})


@pytest.mark.parametrize(
    "failure",
    [ApiError(0, "", "connection refused"), InvalidInput("spec", "says nonsense", "write it anew")],
    ids=["away", "unreadable"],
)
async def test_while_a_pod_cannot_be_read_nobody_is_evicted_and_the_pod_is_tried_again(
    served: Served, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    async def read_pod(_: object) -> None:
        raise failure

    monkeypatch.setattr(served.cluster, "read_pod", read_pod)
    with pytest.raises(NotReady, match=r"connection refused|says nonsense"):
        await served.extender.preempt(pod("a", cpu="4"), {"worker-1": ["uid-v"]})


async def test_a_pod_is_explained_if_it_is_known(served: Served) -> None:
    served.show(node("worker-3", cpu="4"), OWNER)
    explanation = await served.extender.explain(OWNER.name)
    assert explanation is not None
    assert explanation.nodes_without_holds == 3
    assert await served.extender.explain(name("ghost")) is None


async def test_other_calls_have_their_turn_between_two_explanations(served: Served) -> None:
    served.show(OWNER)
    calls = [asyncio.create_task(served.extender.explain(OWNER.name)) for _ in range(5)]
    done = [0]
    while done[-1] < len(calls):
        await asyncio.sleep(0)
        done.append(sum(call.done() for call in calls))
    assert all(after - before <= 1 for before, after in pairwise(done))


async def test_thousands_that_end_in_one_second_hold_no_call_up(served: Served) -> None:
    """All waiting calls have ended before the decision, and other calls came in between."""
    ends = NOW + 100.0
    hour = [
        reservation(f"r{number}", node=f"n{number % 500}", expires=ends, cpu="1m")
        for number in range(5_000)
    ]
    served.show(*hour, reservation("last", expires=ends, cpu="4"))
    asking = pod("a", cpu="4")
    assert served.extender.filter(asking, ["worker-1"]).nodes == ()
    served.now, turns, advanced = ends, 0, asyncio.create_task(served.extender.advanced())
    while not advanced.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 5
    settled = Mock(wraps=served.state.ledger._settle)
    served.state.ledger._settle = settled  # type: ignore[method-assign]
    assert served.extender.filter(asking, ["worker-1"]).nodes == ["worker-1"]
    assert not settled.called
