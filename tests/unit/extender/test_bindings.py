import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, InvalidInput, NotReady
from reserver.extender import bindings as bindings_module
from reserver.extender.protocol import ExtenderBindingArgs
from reserver.scheduling.in_flight import FORGETTING_S
from reserver.scheduling.verdicts import Retry
from tests.builders import held, pod, requested, reservation, rule
from tests.unit.extender.conftest import Served
from tests.unit.extender.fakes import call
from tests.waiting import until

SEAT = reservation("r", cpu="2")
OWNER = pod("owner", cpu="2")


async def bind(served: Served, asked: ExtenderBindingArgs) -> str:
    """Bind a pod; return why not, empty once it is bound."""
    return (await served.bindings.bind(asked)).refusal or ""


async def until_asked(served: Served, count: int = 1) -> None:
    """Wait until the API server was asked for so many bindings."""
    for _ in range(100):
        if len(served.cluster.bound) >= count:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{len(served.cluster.bound)} bindings were asked for")


async def begun(served: Served, args: ExtenderBindingArgs) -> asyncio.Task[str]:
    """Begin a Bind call, whose binding the API server answers once its gate opens."""
    served.cluster.gate.clear()
    binding = asyncio.create_task(bind(served, args))
    await until_asked(served)
    return binding


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


async def test_a_pod_that_the_watch_has_not_shown_is_read(served: Served) -> None:
    served.cluster.pods[OWNER.name] = OWNER
    assert await bind(served, call("owner")) == ""
    assert served.cluster.reads == 1


async def test_a_pod_that_is_no_more_is_refused(served: Served) -> None:
    assert "pod cannot be read" in await bind(served, call("ghost"))


@pytest.mark.parametrize("watched", [True, False])
async def test_a_pod_that_was_replaced_is_refused(served: Served, *, watched: bool) -> None:
    served.cluster.pods[OWNER.name] = OWNER
    if watched:
        served.show(OWNER)
    assert "replaced" in await bind(served, call("owner", uid="uid-old"))
    assert served.cluster.bound == []


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


GHOST = dataclasses.replace(pod("ghost", nominated="worker-1", cpu="2", priority=10), revision=10)


def shown_and_gone(served: Served) -> None:
    """Let the watch show a pod's beginning and its end."""
    served.state.pod_seen(GHOST)
    served.state.pod_seen(dataclasses.replace(GHOST, terminating=True, revision=11))
    served.state.pod_gone(GHOST.name)


def gone_in_a_gap(served: Served) -> None:
    """Let a list show that there is no such pod, after changes were missed."""
    served.state.pods_shown(12)


def shown_and_replaced(served: Served) -> None:
    shown_and_gone(served)
    served.state.pod_seen(
        dataclasses.replace(GHOST, uid="uid-next", nominated_node="", revision=13)
    )


@pytest.mark.parametrize("happens", [shown_and_gone, gone_in_a_gap, shown_and_replaced])
@pytest.mark.parametrize("asked", ["preempt", "bind"])
async def test_a_pod_that_is_gone_before_it_was_read_does_not_come_back(
    served: Served,
    asked: str,
    happens: Callable[[Served], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read_pod(_: object) -> Pod:
        happens(served)  # While the answer is on its way.
        return GHOST

    monkeypatch.setattr(served.cluster, "read_pod", read_pod)
    if asked == "preempt":
        verdict = await served.extender.preempt(GHOST, {"worker-1": ("uid-v",)})
        assert (verdict.nodes, verdict.spared) == ((), {})
    else:
        assert "pod cannot be read" in await bind(served, call("ghost"))
    known = served.state.pods.get(GHOST.name)
    assert known is None or known.uid != GHOST.uid
    assert not list(served.state.nominations.nodes())
    assert served.cluster.bound == []
    assert requested(served.state, "worker-1") == 0


async def test_a_pod_that_the_watch_has_still_to_show_is_taken_as_it_is_read(
    served: Served,
) -> None:
    served.state.pod_seen(dataclasses.replace(pod("earlier"), revision=9))
    served.cluster.pods[GHOST.name] = GHOST
    read = dataclasses.replace(pod("later"), revision=20)
    served.cluster.pods[read.name] = read
    await served.bindings.find_pod(read.name, read.uid)  # What is read tells nothing of others.
    await served.bindings.find_pod(GHOST.name, GHOST.uid)
    assert served.state.pods[GHOST.name] == GHOST


def as_of(revision: int, pod: Pod = OWNER, **changes: object) -> Pod:
    return dataclasses.replace(pod, revision=revision, **changes)  # type: ignore[arg-type]


STRANGER = pod("stranger", cpu="1")
CONFLICT = ApiError(409, "Conflict", "the object has been modified")


def changes_first(served: Served, *versions: Pod) -> None:
    """Have a pod change so often before its binding comes to it."""
    waiting = list(versions)

    def on_bind() -> None:
        served.cluster.failure = CONFLICT if waiting else None
        if waiting:
            now = waiting.pop(0)
            served.cluster.pods[now.name] = now

    served.cluster.on_bind = on_bind


async def test_a_pod_that_grew_since_it_was_reserved_is_judged_again(served: Served) -> None:
    served.show(SEAT, as_of(5, STRANGER))
    assert (await served.bindings.reserve(call("stranger"))).refusal is None
    served.show(as_of(6, pod("stranger", cpu="3")))
    assert await bind(served, call("stranger")) == "held by reservation shop/store/r"
    assert served.cluster.bound == []
    assert (requested(served.state, "worker-1"), len(served.bindings)) == (0, 0)
    served.show(as_of(7, pod("stranger", cpu="2")))
    assert await bind(served, call("stranger")) == ""


async def test_a_pod_that_changed_since_it_was_reserved_and_still_fits_is_bound(
    served: Served,
) -> None:
    served.show(SEAT, as_of(5, STRANGER))
    assert (await served.bindings.reserve(call("stranger"))).refusal is None
    served.show(as_of(6, pod("stranger", cpu="2")))
    assert await bind(served, call("stranger")) == ""
    assert requested(served.state, "worker-1") == 2000


async def test_a_pod_that_grew_before_its_binding_came_is_judged_again(served: Served) -> None:
    served.show(SEAT, as_of(5, STRANGER))
    changes_first(served, as_of(6, pod("stranger", cpu="3")))
    assert await bind(served, call("stranger")) == "held by reservation shop/store/r"
    assert len(served.cluster.bound) == 1
    assert (requested(served.state, "worker-1"), len(served.bindings)) == (0, 0)


async def test_a_pod_that_is_no_owner_any_more_does_not_get_the_seat(served: Served) -> None:
    seat = reservation("r", owners=(), rules=[rule(app="web")], cpu="3")
    web = pod("web-0", cpu="2", labels={"app": "web"})
    served.show(seat, as_of(5, web))
    changes_first(served, as_of(6, web, labels={"app": "other"}))
    assert await bind(served, call("web-0")) == "held by reservation shop/store/r"
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (0, 3000)


async def test_a_pod_that_becomes_an_owner_claims_its_seat(served: Served) -> None:
    seat = reservation("r", owners=(), rules=[rule(app="web")], cpu="2")
    web = pod("web-0", cpu="2")
    served.show(seat, as_of(5, web))
    changes_first(served, as_of(6, web, labels={"app": "web"}))
    assert await bind(served, call("web-0")) == ""
    assert [claims for _, _, claims in served.cluster.bound] == [(), (seat.identity,)]
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (2000, 0)


async def test_a_pod_that_only_was_nominated_meanwhile_is_bound(served: Served) -> None:
    served.show(SEAT, as_of(5))
    changes_first(served, as_of(6, nominated_node="worker-1"), as_of(7))
    assert await bind(served, call("owner")) == ""
    assert served.cluster.bound == [("owner", "worker-1", (SEAT.identity,))] * 3
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (2000, 0)


async def test_a_pod_that_changes_each_time_is_left_for_kube_scheduler_to_try_again(
    served: Served,
) -> None:
    served.show(SEAT, as_of(5))
    changes_first(served, *map(as_of, range(6, 20)))
    assert await bind(served, call("owner")) == "binding failed: Conflict"
    assert len(served.cluster.bound) == bindings_module.MOST_TRIES
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (0, 2000)


@pytest.mark.parametrize(
    "now", [as_of(5), as_of(6, node="worker-2"), as_of(6, uid="uid-next")], ids=repr
)
async def test_what_conflicts_for_another_reason_is_not_tried_again(
    served: Served, now: Pod
) -> None:
    served.show(SEAT, as_of(5))
    changes_first(served, now, now)
    assert await bind(served, call("owner")) == "binding failed: Conflict"
    assert len(served.cluster.bound) == 1


async def test_a_hold_that_came_meanwhile_counts_when_a_pod_is_judged_again(
    served: Served,
) -> None:
    served.show(as_of(5, STRANGER))
    changes_first(served, as_of(6, STRANGER))
    binding = await begun(served, call("stranger"))
    served.state.ledger.put(reservation("late", cpu="4"))
    served.cluster.gate.set()
    assert await binding == "held by reservation shop/store/late"


async def test_nothing_is_decided_on_a_view_that_fell_behind_while_the_pod_was_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.show(SEAT)
    served.cluster.pods[OWNER.name] = OWNER
    read = served.cluster.read_pod

    async def slowly(name: PodName) -> Pod:
        served.readiness.said = ("pods are out of date",)
        return await read(name)

    monkeypatch.setattr(served.cluster, "read_pod", slowly)
    with pytest.raises(NotReady):
        await bind(served, call("owner"))
    assert served.cluster.bound == []
