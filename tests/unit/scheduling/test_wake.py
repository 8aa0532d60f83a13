"""The waiting pods that are requeued when less is held."""

import dataclasses
from collections.abc import Sequence

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.constraints import Constraints
from reserver.cluster.labels import equals
from reserver.cluster.pod import Pod
from reserver.scheduling.filter import filter_nodes
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Nominate, Retry
from reserver.scheduling.wake import Wake
from tests.builders import NOW, node, pod, ref, reservation, state_of, wake
from tests.listening import Recorded
from tests.unit.scheduling.refusals import NAMES, ask, release

HOLDS = [reservation(f"r{n}", node=f"worker-{n}", cpu="4") for n in (1, 2)]


def waiting(*pods: Pod, names: list[str] | None = None) -> State:
    """Return two workers that are held whole, and pods that were refused because of the holds."""
    state = state_of(*(node(name, cpu="4") for name in NAMES), *HOLDS)
    for asking in pods:
        state.pod_seen(asking)
        ask(state, asking, names)
    return state


def test_a_pod_that_fits_now_is_steered_to_what_became_free() -> None:
    asking = pod("a", cpu="2")
    assert release(waiting(asking), 2) == (Nominate(asking, "worker-2"),)


def test_a_pod_that_still_does_not_fit_is_left_alone() -> None:
    assert release(waiting(pod("a", cpu="5")), 1) == ()


def test_only_as_many_are_woken_as_fit() -> None:
    pods = [pod(f"p{number}", cpu="2") for number in range(5)]
    assert release(waiting(*pods), 1) == tuple(Nominate(p, "worker-1") for p in pods[:2])


def test_the_most_important_come_first_and_then_those_that_waited_longest() -> None:
    low, early, late = pod("low", cpu="4"), pod("early", cpu="2"), pod("late", cpu="2")
    low = dataclasses.replace(low, priority=-1)
    effects = release(waiting(low, early, late), 1)
    assert [effect.pod for effect in effects] == [early, late]


def test_what_many_nodes_give_is_handed_out_node_by_node() -> None:
    pods = [pod(f"p{number}", cpu="3") for number in range(3)]
    effects = release(waiting(*pods), 1, 2)
    assert effects == (Nominate(pods[0], "worker-1"), Nominate(pods[1], "worker-2"))


def test_a_node_that_kube_scheduler_did_not_offer_is_of_no_use() -> None:
    assert release(waiting(pod("a", cpu="2"), names=["worker-1"]), 2) == ()


@pytest.mark.parametrize(
    ("mate", "cpu", "is_woken"),
    [("2", "3", True), ("2", "5", False), ("3", "3", False)],
    ids=["the other may go there", "it is too large itself", "the other is too large"],
)
def test_a_pod_is_woken_for_room_that_another_of_its_group_may_take(
    mate: str, cpu: str, *, is_woken: bool
) -> None:
    """Otherwise the pod waits up to 5 minutes, until kube-scheduler retries the group."""
    small, stays = (reservation(f"r{n}", node=f"worker-{n}", cpu="2") for n in (2, 1))
    state = state_of(node("worker-1", cpu="6"), node("worker-2", cpu="2"), small, stays)
    other, asking = (
        dataclasses.replace(pod(name, cpu=n), group="training")
        for name, n in (("other", mate), ("asking", cpu))
    )
    for each in (other, asking):
        state.pod_seen(each)
    nodes = filter_nodes(other, ["worker-1"], state, NOW).nodes
    state.answered(other, nodes, NOW)
    ask(state, asking, ["worker-1"])
    assert asking.uid in state.waiting
    state.ledger.drop(small.ref)
    found = wake(["worker-2"], state, NOW)
    assert found == ((Retry(asking, attempts=1),) if is_woken else ())


def test_a_node_that_is_freed_is_of_no_use_to_a_pod_that_may_not_go_there() -> None:
    picky = pod("picky", cpu="2", constraints=Constraints(node_selector=equals({"zone": "b"})))
    state = waiting(picky, pod("other", cpu="2"))
    state.node_seen(node("worker-1", cpu="4", labels={"zone": "a"}))
    state.node_seen(node("worker-2", cpu="4", labels={"zone": "b"}))
    assert release(state, 1) == (Nominate(pod("other", cpu="2"), "worker-1"),)
    assert Nominate(picky, "worker-2") in release(state, 2)


def test_a_nomination_that_somebody_else_made_is_left_alone() -> None:
    asking = dataclasses.replace(pod("a", cpu="2"), nominated_node="worker-9")
    assert release(waiting(asking), 1) == (Retry(asking, attempts=1),)


def test_a_nomination_that_was_made_after_the_refusal_is_left_alone_too() -> None:
    asking = dataclasses.replace(pod("a", cpu="2"), revision=7)
    state = waiting(asking)
    nominated = dataclasses.replace(asking, nominated_node="worker-9", revision=8)
    state.pod_seen(nominated)
    state.pod_seen(asking)  # A watch behind kube-scheduler shows an older pod.
    assert release(state, 1) == (Retry(nominated, attempts=1),)


def test_a_pod_that_was_bound_or_deleted_or_passed_waits_no_more() -> None:
    bound, gone, passed = pod("bound", cpu="1"), pod("gone", cpu="1"), pod("passed", cpu="1")
    state = waiting(bound, gone, passed)
    state.pod_seen(dataclasses.replace(bound, node="elsewhere"))
    state.pod_gone(gone.name)
    state.ledger.drop(ref("r1"))
    ask(state, passed)
    assert wake(["worker-1"], state, NOW) == ()


def test_a_pod_that_was_gone_before_it_was_asked_for_does_not_wait() -> None:
    gone, replaced = pod("gone", cpu="1"), pod("replaced", cpu="1")
    state = waiting()
    state.pod_seen(pod("replaced", uid="a-new-one", cpu="1"))
    for asking in (gone, replaced):
        ask(state, asking)
    assert state.waiting == {}


def test_a_pod_that_was_asked_for_before_the_watch_shows_it_is_woken_as_well() -> None:
    asking = dataclasses.replace(pod("a", cpu="2"), revision=7)
    state = waiting()
    state.pod_seen(dataclasses.replace(pod("b", cpu="2"), revision=6))
    ask(state, asking)
    state.pod_seen(asking)
    assert release(state, 1) == (Nominate(asking, "worker-1"),)


def test_a_pod_that_came_and_went_while_no_watch_was_there_waits_no_more() -> None:
    shown, missed = pod("shown", cpu="2"), dataclasses.replace(pod("missed", cpu="2"), revision=7)
    state = waiting(shown)
    ask(state, missed)
    assert len(state.waiting) == 2
    state.pods_listed(9)
    assert list(state.waiting) == [shown.uid]


def test_a_node_that_is_gone_wakes_nobody() -> None:
    state = waiting(pod("a", cpu="1"))
    state.node_gone("worker-1")
    assert release(state, 1) == ()


@pytest.mark.parametrize("comes", [(), ("worker-9",), ("gpu",), ("worker-9", "gpu")])
def test_a_node_that_goes_between_two_pods_is_given_to_nobody(comes: Sequence[str]) -> None:
    """The row may belong to another node by then, and a column to another resource."""
    asking = pod("a", cpu="2")
    state = waiting(asking)
    state.ledger.drop(ref("r1"))
    this = Wake(("worker-1",), state, NOW)
    uids = outcome(this.order())
    row = state.snapshot.row("worker-1")
    state.node_gone("worker-1")
    if "worker-9" in comes:
        state.node_seen(node("worker-9", cpu="4"))
        assert state.snapshot.row("worker-9") == row
    if "gpu" in comes:
        state.snapshot.layout += 1
    assert [this.judge(uid) for uid in uids] == [None]


def test_the_ledger_tells_of_every_node_on_which_less_is_held() -> None:
    heard = Recorded()
    state = State(heard)
    state.node_seen(node("worker-1", cpu="4"))
    state.ledger.put(reservation("r", cpu="4", expires=NOW + 10))
    state.ledger.put(reservation("r", cpu="5", expires=NOW + 10))
    heard.freed.clear()  # An edit is a removal and an addition.
    state.ledger.put(reservation("r", cpu="3", expires=NOW + 10))
    assert heard.freed == ["worker-1"]
    state.ledger.advance(NOW + 10)
    assert heard.freed == ["worker-1", "worker-1"]


def test_of_a_whole_sample_no_name_is_remembered() -> None:
    names = [f"n{number}" for number in range(500)]
    state = state_of(*(node(each, cpu="4") for each in names))
    for each in names:
        state.ledger.put(reservation(each, node=each, cpu="4"))
    asking = pod("a", cpu="2")
    state.pod_seen(asking)
    state.judged(asking, names, waits=True)
    assert state.waiting[asking.uid].names is None
    state.ledger.drop(ref("n7"))
    assert wake(["n7"], state, NOW) == (Nominate(asking, "n7"),)


def test_names_are_remembered_as_they_are_kept_anyway() -> None:
    state = waiting(pod("a", cpu="2"))
    sent = [f"worker-{number}" for number in "12"]  # Copies, as each call has them.
    ask(state, pod("a", cpu="2"), sent)
    kept = state.waiting["uid-a"].names
    assert kept is not None
    assert all(one is known for one, known in zip(kept, state._nodes, strict=True))
