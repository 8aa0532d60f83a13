"""The pods that are requeued when less is held, because evictions may help them now."""

from reserver.cluster.pod import Pod
from reserver.scheduling.preempt import judge_preemption
from reserver.scheduling.state import State
from reserver.scheduling.verdicts import Activate, Nominate
from tests.builders import NOW, node, pod, ref, reservation, state_of, wake
from tests.unit.scheduling.refusals import ask, release


def spared(*asking: Pod, victim: str = "3") -> State:
    """Return a worker that is full and partly held, and pods that may evict no pod there."""
    evictable = pod("v", node="worker-1", cpu=victim)
    state = state_of(node("worker-1", cpu="4"), reservation("r1", cpu="1"), evictable)
    for each in asking:
        state.pod_seen(each)
        verdict = judge_preemption(each, {"worker-1": ["uid-v"]}, state, NOW)
        state.judged_preemption(each, verdict.nodes, verdict.spared)
    return state


def test_a_pod_for_which_nobody_was_evicted_is_roused_when_that_would_help() -> None:
    asking = pod("a", priority=1000, cpu="4")
    assert release(spared(asking), 1) == (Activate(asking, "worker-1"),)


def test_a_pod_for_which_evicting_would_still_not_help_is_left_alone() -> None:
    assert release(spared(pod("a", priority=1000, cpu="5")), 1) == ()


def test_victims_that_have_left_since_are_not_counted() -> None:
    asking = pod("a", priority=1000, cpu="4")
    state = spared(asking)
    state.pod_seen(pod("v", node="worker-2", cpu="3"))
    state.pod_seen(pod("w", node="worker-1", cpu="1"))
    assert release(state, 1) == ()


def test_one_that_is_roused_brings_the_others() -> None:
    low, high = pod("low", priority=10, cpu="4"), pod("high", priority=1000, cpu="4")
    assert release(spared(low, high), 1) == (Activate(high, "worker-1"),)


def test_a_pod_that_is_refused_again_is_not_roused_for_what_was_before() -> None:
    asking = pod("a", priority=1000, cpu="4")
    state = spared(asking)
    state.judged(asking, ["worker-1"], waits=False)
    assert release(state, 1) == ()


def test_what_filter_refused_is_still_known_after_preempt() -> None:
    asking = pod("a", priority=1000, cpu="3")
    state = spared()
    state.pod_seen(asking)
    ask(state, asking, ["worker-1"])
    verdict = judge_preemption(asking, {"worker-1": []}, state, NOW)
    state.judged_preemption(asking, verdict.nodes, {"worker-9": ("uid-w",)})
    state.pod_gone(pod("v").name)
    assert release(state, 1) == (Nominate(asking, "worker-1"),)


def test_a_pod_that_is_gone_when_preempt_asks_does_not_wait() -> None:
    state = spared()
    state.judged_preemption(pod("ghost"), (), {"worker-1": ("uid-v",)})
    assert not state.waiting


def many_spared(nodes: int, victims: int) -> State:
    """Return nodes that are full and partly held, and a pod that may evict no pod there."""
    state = state_of()
    asking = pod("a", priority=1000, cpu="4")
    state.pod_seen(asking)
    evicted = {}
    for number in range(nodes):
        state.node_seen(node(f"n{number}", cpu="4", pods="1000"))
        state.ledger.put(reservation(f"r{number}", node=f"n{number}", cpu="1"))
        evicted[f"n{number}"] = tuple(f"uid-v{number}-{each}" for each in range(victims))
        for each in range(victims):
            state.pod_seen(pod(f"v{number}-{each}", node=f"n{number}", cpu="10m"))
    state.judged_preemption(asking, (), evicted)
    return state


def test_no_more_than_a_thousand_victims_are_remembered_and_all_nodes_count() -> None:
    state = many_spared(nodes=30, victims=100)
    kept = state.waiting["uid-a"]
    assert sum(map(len, kept.spared.values())) <= 1000
    for node_name, key in (("n0", "r0"), ("n29", "r29")):
        state.ledger.drop(ref(key))
        assert wake([node_name], state, NOW) == (Activate(kept.pod, node_name),)


def test_a_node_of_which_no_victims_are_remembered_rouses_nobody_if_it_is_too_small() -> None:
    state = many_spared(nodes=30, victims=100)
    state.node_seen(node("n29", cpu="3"))
    state.ledger.drop(ref("r29"))
    assert wake(["n29"], state, NOW) == ()
