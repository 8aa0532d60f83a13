"""The requests of pods whose resize in place is under way."""

import pytest

from reserver.cluster.quantity import Container, PodResources
from tests.unit.cluster.containers import Written, c, check, nano, s

THREE_WAYS = c(
    cpu="30m",
    memory="20M",
    ephemeral_storage="10G",
    allocated={"cpu": "20m", "memory": "10M", "ephemeral_storage": "30G"},
    actuated={"cpu": "10m", "memory": "30M", "ephemeral_storage": "20G"},
)


@pytest.mark.parametrize(
    ("infeasible", "init", "containers", "expected"),
    [
        pytest.param(False, [], [c(cpu="4", actuated={"cpu": "2"})], {"cpu": "4"}, id="growing"),
        pytest.param(False, [], [c(cpu="2", actuated={"cpu": "4"})], {"cpu": "4"}, id="shrinking"),
        pytest.param(False, [], [c(cpu="2", allocated={"cpu": "4"})], {"cpu": "4"}, id="allocated"),
        pytest.param(
            True, [], [c(cpu="4", actuated={"cpu": "2"})], {"cpu": "2"}, id="infeasible: in force"
        ),
        pytest.param(
            True,
            [],
            [c(cpu="6", allocated={"cpu": "4"}, actuated={"cpu": "2"})],
            {"cpu": "4"},
            id="infeasible while another resize is under way: allocated",
        ),
        pytest.param(True, [], [c(cpu="6")], {}, id="infeasible and nothing said of it: nothing"),
        pytest.param(
            True, [s(cpu="4", actuated={"cpu": "2"})], [], {"cpu": "2"}, id="infeasible sidecar"
        ),
        pytest.param(
            False, [s(cpu="4", actuated={"cpu": "2"})], [], {"cpu": "4"}, id="growing sidecar"
        ),
        pytest.param(
            False,
            [],
            [THREE_WAYS],
            {"cpu": "30m", "memory": "30M", "ephemeral_storage": "30G"},
            id="the largest of the three for each resource",
        ),
        pytest.param(
            False,
            [],
            [c(cpu="1", allocated={"cpu": "2"}), c(cpu="2", allocated={"cpu": "1"})],
            {"cpu": "3"},
            id="the largest sum, not the sum of the largest",
        ),
        pytest.param(False, [], [c(actuated={"cpu": "2"})], {"cpu": "2"}, id="only in force"),
        pytest.param(False, [s(actuated={"cpu": "2"})], [], {"cpu": "2"}, id="sidecar in force"),
        pytest.param(
            False,
            [],
            [c(cpu="1", actuated={}), c(cpu="1", allocated={})],
            {"cpu": "2"},
            id="an empty status is a status, and less than the spec",
        ),
        pytest.param(
            False,
            [s(cpu="1", allocated={"cpu": "3"}), c(cpu="5")],
            [c(cpu="1")],
            {"cpu": "8"},
            id="a resized sidecar beside an init container",
        ),
    ],
)
def test_a_resize_in_place_counts_with_the_largest_that_may_be_in_force(
    *, infeasible: bool, init: list[Container], containers: list[Container], expected: Written
) -> None:
    pod = PodResources(
        containers=tuple(containers), init_containers=tuple(init), resize_infeasible=infeasible
    )
    check(pod, expected)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            PodResources(
                containers=(c(cpu="1"),),
                pod_allocated=nano({"cpu": "4"}),
                pod_actuated=nano({"cpu": "3"}),
            ),
            {"cpu": "4"},
            id="the kubelet's sums over all containers",
        ),
        pytest.param(
            PodResources(
                containers=(c(cpu="1", allocated={"cpu": "6"}, actuated={"cpu": "5"}),),
                pod_actuated=nano({"cpu": "3"}),
            ),
            {"cpu": "6"},
            id="no sum of what is allocated: container by container",
        ),
        pytest.param(
            PodResources(
                containers=(c(cpu="1", allocated={"cpu": "6"}, actuated={"cpu": "5"}),),
                pod_allocated=nano({"cpu": "9"}),
            ),
            {"cpu": "6"},
            id="no sum of what is in force: container by container",
        ),
        pytest.param(
            PodResources(
                containers=(c(cpu="1"),),
                pod_level=nano({"cpu": "2"}),
                pod_allocated=nano({"cpu": "3"}),
                pod_actuated=nano({"cpu": "3.5"}),
            ),
            {"cpu": "3.5"},
            id="a pod-level resize under way",
        ),
        pytest.param(
            PodResources(
                containers=(c(cpu="1"),),
                pod_level=nano({"cpu": "10"}),
                pod_allocated=nano({"cpu": "3"}),
                pod_actuated=nano({"cpu": "4"}),
                resize_infeasible=True,
            ),
            {"cpu": "4"},
            id="an infeasible pod-level resize",
        ),
        pytest.param(
            PodResources(pod_level=nano({"cpu": "2"}), pod_allocated=nano({"cpu": "3"})),
            {"cpu": "2"},
            id="pod-level requests without a status of what is in force",
        ),
    ],
)
def test_a_resize_of_the_whole_pod_counts_with_the_largest_that_may_be_in_force(
    pod: PodResources, expected: Written
) -> None:
    check(pod, expected)
