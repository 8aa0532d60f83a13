"""Finding a node, without an extender."""

import pytest

from reserver.cluster.node import Node
from reserver.cluster.pod import Pod, PodName
from reserver.sim.scheduler.objects import NodeView, PodView
from reserver.sim.scheduler.search import NodeSearch
from reserver.sim.scheduler.verdict import AttemptFailedError, NotSchedulableError
from reserver.sim.scheduler.view import ClusterView


def _pod(name: str, cpu: int, *, priority: int = 0, nominated: str = "") -> PodView:
    pod = Pod(
        name=PodName("default", name),
        uid=name,
        requests={"cpu": cpu},
        priority=priority,
        nominated_node=nominated,
    )
    return PodView(pod, {"metadata": {"name": name}, "spec": {}, "status": {}})


def _cluster(**cpu: int) -> ClusterView:
    cluster = ClusterView()
    for name, amount in cpu.items():
        cluster.set_node(
            NodeView(
                Node(name=name, allocatable={"cpu": amount}), {}, cordoned=False, scheduling=()
            )
        )
    return cluster


def _search(cluster: ClusterView) -> NodeSearch:
    return NodeSearch(cluster, None, sample=100)


async def test_the_emptiest_node_wins_and_the_name_breaks_ties() -> None:
    cluster = _cluster(b=4000, a=4000, c=4000)
    assert await _search(cluster).pick(_pod("p", 1000), ()) == "a"
    cluster.assume(_pod("q", 1000).pod, "a")
    assert await _search(cluster).pick(_pod("p", 1000), ()) == "b"


async def test_a_nominated_pod_keeps_its_room_from_equals_and_lesser() -> None:
    search = _search(_cluster(n=4000))
    other = _pod("other", 3000, priority=5, nominated="n")
    for priority in (0, 5):
        with pytest.raises(NotSchedulableError, match="1 Insufficient cpu"):
            await search.pick(_pod("p", 2000, priority=priority), [other])
    assert await search.pick(_pod("p", 2000, priority=6), [other]) == "n"
    assert await search.pick(_pod("p", 1000), [other]) == "n"


async def test_a_nominated_pod_does_not_stand_in_its_own_way() -> None:
    search = _search(_cluster(m=4000, n=4000))
    pod = _pod("p", 3000, nominated="n")
    assert await search.pick(pod, [pod]) == "n"


async def test_a_nomination_that_does_not_fit_is_passed_over() -> None:
    search = _search(_cluster(m=4000, n=1000))
    assert await search.pick(_pod("p", 3000, nominated="n"), ()) == "m"
    assert await search.pick(_pod("p", 3000, nominated="none"), ()) == "m"


async def test_no_nodes_are_a_failed_attempt() -> None:
    with pytest.raises(AttemptFailedError) as caught:
        await _search(_cluster()).pick(_pod("p", 1), ())
    assert caught.value.reason == "Unschedulable"


async def test_what_is_forgotten_leaves_room_and_what_is_bound_does_not() -> None:
    cluster = _cluster(n=4000)
    pod = Pod(name=PodName("d", "p"), uid="p", requests={"cpu": 3000}, node="n")
    cluster.assume(pod, "n")
    assert cluster.used("n") == {"cpu": 3000}
    cluster.forget("p")
    assert cluster.used("n") == {"cpu": 0}
    cluster.assume(pod, "n")
    cluster.set_pod(pod)
    cluster.forget("p")
    assert cluster.used("n") == {"cpu": 3000}
    cluster.remove_pod("p")
    assert cluster.used("n") == {"cpu": 0}
