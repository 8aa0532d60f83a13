"""A running pod does not grow into room that is held for others."""

from dataclasses import replace

import pytest

from reserver.cluster.pod import Pod
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.resize import judge_resize
from reserver.scheduling.state import State
from tests.builders import NOW, node, pod, requested, reservation, state_of

WORKER = node("worker-1", cpu="4")
HOLD = reservation("r", cpu="2")
WEB = pod("web-0", node="worker-1", cpu="1")


def grown(cpu: str, web: Pod = WEB) -> Pod:
    return replace(web, requests=pod("any", cpu=cpu).requests)


@pytest.fixture
def state() -> State:
    state = state_of(WORKER, HOLD)
    state.pod_seen(WEB)
    return state


def test_what_is_free_beside_the_holds_may_be_had(state: State) -> None:
    assert judge_resize(grown("2"), state, NOW) is None
    assert judge_resize(grown("500m"), state, NOW) is None


def test_growth_into_held_room_is_refused_with_the_reservation_and_the_numbers(
    state: State,
) -> None:
    why = judge_resize(grown("3"), state, NOW)
    assert why is not None
    assert why.startswith(f"held by reservation {HOLD.ref}: node worker-1 has 1 of cpu beside")
    assert "the 2 that are held, and pod shop/web-0 needs 2 more" in why


def test_what_nobody_holds_is_the_kubelets_business() -> None:
    state = state_of(WORKER)
    state.pod_seen(WEB)
    assert judge_resize(grown("9"), state, NOW) is None
    state = state_of(node("worker-1", cpu="4", memory="4Gi"), reservation("r", memory="4Gi"))
    state.pod_seen(WEB)
    assert judge_resize(grown("9"), state, NOW) is None


def test_a_hold_that_yields_to_the_pods_priority_is_not_in_its_way() -> None:
    state = state_of(WORKER, replace(HOLD, yields_above=5))
    important = replace(WEB, priority=10)
    state.pod_seen(important)
    assert judge_resize(grown("3", important), state, NOW) is None
    assert judge_resize(grown("5", important), state, NOW) is None
    assert judge_resize(grown("3"), state, NOW) is not None


def test_growth_that_passes_counts_until_the_watch_shows_it(state: State) -> None:
    state.grow(grown("2"))
    assert requested(state, "worker-1") == 2000
    state.pod_seen(WEB)  # Something else of it has changed.
    assert requested(state, "worker-1") == 2000
    assert judge_resize(pod("db-0", node="worker-1", cpu="500m"), state, NOW) is not None
    state.pod_seen(grown("2"))
    assert requested(state, "worker-1") == 2000
    state.pod_seen(WEB)  # And back.
    assert requested(state, "worker-1") == 1000


def test_growth_that_never_came_is_forgotten(state: State) -> None:
    first, second = grown("1500m"), grown("2")
    state.grow(first)
    state.grow(second)
    state.ungrow(first)  # Its time is up; the second one's is not.
    assert requested(state, "worker-1") == 2000
    state.ungrow(second)
    assert requested(state, "worker-1") == 1000


def test_nothing_stays_of_a_pod_that_is_gone(state: State) -> None:
    state.grow(grown("2"))
    state.pod_gone(WEB.name)
    state.ungrow(grown("2"))
    assert requested(state, "worker-1") == 0
    state.pod_seen(WEB)  # Only a test has a second pod of this UID.
    assert requested(state, "worker-1") == 1000


def test_no_pod_is_bound_into_room_that_another_grows_into(state: State) -> None:
    state.grow(grown("2"))
    late = pod("late", cpu="500m")
    state.pod_seen(late)
    assert judge_bind(late, "worker-1", state, NOW).refusal is not None


def test_a_pod_that_is_not_seen_yet_or_not_bound_is_judged_whole(state: State) -> None:
    assert judge_resize(pod("new", node="worker-1", cpu="2"), state, NOW) is not None
    assert judge_resize(pod("new", node="worker-1", cpu="1"), state, NOW) is None
    assert judge_resize(pod("new", cpu="9"), state, NOW) is None
