"""The facts are those of component-helpers/resource/helpers_test.go of Kubernetes 1.37.

Each case there that concerns requests, with the options that kube-scheduler sets, is a row here, or
in test_resized_request.py if a resize is under way.
"""

from typing import Any

import pytest

from reserver.cluster.quantity import Container, PodResources, effective_request
from tests.unit.cluster.containers import Written, c, check, nano, s


@pytest.mark.parametrize(
    ("init", "containers", "expected"),
    [
        pytest.param([], [], {}, id="nothing at all"),
        pytest.param([], [c(cpu="9")], {"cpu": "9"}, id="one container"),
        pytest.param([], [c(cpu="9"), c(cpu="9")], {"cpu": "18"}, id="containers add up"),
        pytest.param([], [c(cpu="1"), c(memory="1Gi")], {"cpu": "1", "memory": "1Gi"}, id="each"),
        pytest.param([c(cpu="9")], [c(cpu="9")], {"cpu": "9"}, id="an init container runs before"),
        pytest.param([c(cpu="4")], [c(cpu="1")], {"cpu": "4"}, id="a larger init container"),
        pytest.param([c(cpu="2")], [c(cpu="2"), c(cpu="3")], {"cpu": "5"}, id="larger containers"),
        pytest.param([c(cpu="3"), c(cpu="4")], [], {"cpu": "4"}, id="init containers take turns"),
        pytest.param(
            [c(memory="5Mi", cpu="1m")],
            [c(memory="3Mi", cpu="2m")],
            {"memory": "5Mi", "cpu": "2m"},
            id="the larger of each resource",
        ),
        pytest.param([s(cpu="1")], [c(cpu="1")], {"cpu": "2"}, id="a sidecar runs along"),
        pytest.param(
            [c(cpu="5"), s(cpu="1"), s(cpu="2"), s(cpu="3")],
            [c(cpu="1")],
            {"cpu": "7"},
            id="sidecars after an init container do not run beside it",
        ),
        pytest.param(
            [c(cpu="5"), s(cpu="1"), s(cpu="2"), c(cpu="5"), s(cpu="3")],
            [c(cpu="1")],
            {"cpu": "8"},
            id="sidecars before an init container run beside it",
        ),
        pytest.param(
            [s(cpu="10"), c(cpu="200")], [c(cpu="100")], {"cpu": "210"}, id="init above all"
        ),
        pytest.param(
            [s(cpu="8"), c(cpu="6")], [c(cpu="9")], {"cpu": "17"}, id="running above starting"
        ),
        pytest.param(
            [s(memory="5Mi", cpu="4m"), c(memory="6Mi", cpu="8m")],
            [c(memory="3Mi", cpu="2m")],
            {"memory": "11Mi", "cpu": "12m"},
            id="init container beside a sidecar",
        ),
    ],
)
def test_containers_that_run_together_add_up_and_init_containers_take_turns(
    init: list[Container], containers: list[Container], expected: Written
) -> None:
    pod = PodResources(containers=tuple(containers), init_containers=tuple(init))
    check(pod, expected)


@pytest.mark.parametrize(
    ("pod_level", "init", "containers", "expected"),
    [
        pytest.param({"memory": "2Mi"}, [], [], {"memory": "2Mi"}, id="alone"),
        pytest.param(
            {"memory": "2Mi"}, [], [c(cpu="2m")], {"memory": "2Mi", "cpu": "2m"}, id="beside"
        ),
        pytest.param(
            {"storage": "2Mi"}, [], [c(storage="3Mi")], {"storage": "3Mi"}, id="not of this kind"
        ),
        pytest.param({"storage": "2Mi"}, [], [c(memory="3Mi")], {"memory": "3Mi"}, id="ignored"),
        pytest.param(
            {"storage": "2Mi", "cpu": "1"}, [], [c(cpu="2")], {"cpu": "1"}, id="one of the kinds"
        ),
        pytest.param(
            {"memory": "6Mi", "cpu": "8m"},
            [],
            [c(memory="3Mi", cpu="2m")],
            {"memory": "6Mi", "cpu": "8m"},
            id="replaces the sum",
        ),
        pytest.param(
            {"cpu": "1"}, [c(cpu="9")], [c(cpu="2")], {"cpu": "1"}, id="replaces a larger sum"
        ),
        pytest.param(
            {"memory": "15Mi", "cpu": "18m"},
            [s(memory="5Mi", cpu="4m"), c(memory="6Mi", cpu="8m")],
            [c(memory="3Mi", cpu="2m")],
            {"memory": "15Mi", "cpu": "18m"},
            id="replaces init containers and sidecars",
        ),
        pytest.param(
            {"cpu": "1", "hugepages_2Mi": "10Mi"},
            [],
            [c(hugepages_2Mi="6Mi")],
            {"cpu": "1", "hugepages_2Mi": "10Mi"},
            id="huge pages",
        ),
        pytest.param(
            {"cpu": "1", "hugepages_2Mi": "10Mi"},
            [],
            [c(memory="4Mi", hugepages_1Gi="1Gi")],
            {"cpu": "1", "memory": "4Mi", "hugepages_2Mi": "10Mi", "hugepages_1Gi": "1Gi"},
            id="huge pages of two sizes",
        ),
    ],
)
def test_pod_level_requests_replace_what_containers_say_of_cpu_memory_and_huge_pages(
    pod_level: Written, init: list[Container], containers: list[Container], expected: Written
) -> None:
    pod = PodResources(
        containers=tuple(containers), init_containers=tuple(init), pod_level=nano(pod_level)
    )
    check(pod, expected)


@pytest.mark.parametrize(
    ("pod_level", "expected"),
    [
        pytest.param({}, {"cpu": "6", "memory": "1Gi"}, id="on the containers"),
        pytest.param({"cpu": "2"}, {"cpu": "3", "memory": "1Gi"}, id="on pod-level requests"),
    ],
)
def test_overhead_is_added_last(pod_level: Written, expected: Written) -> None:
    pod = PodResources(
        containers=(c(cpu="2"), c(cpu="3")),
        init_containers=(c(cpu="2"),),
        pod_level=nano(pod_level),
        overhead=nano({"cpu": "1", "memory": "1Gi"}),
    )
    check(pod, expected)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            PodResources(containers=tuple(c(cpu="0.1m") for _ in range(10))),
            {"cpu": "1m"},
            id="ten tenths of a millicore are one",
        ),
        pytest.param(
            PodResources(containers=tuple(c(memory="100m") for _ in range(10))),
            {"memory": "1"},
            id="ten tenths of a byte are one",
        ),
        pytest.param(
            PodResources(containers=(c(cpu="1n"),), overhead=nano({"cpu": "1n"})),
            {"cpu": "1m"},
            id="what is left is rounded up once",
        ),
    ],
)
def test_sums_are_exact_and_rounding_comes_last(pod: PodResources, expected: Written) -> None:
    check(pod, expected)


def test_a_pod_always_takes_one_of_the_nodes_pods() -> None:
    assert effective_request(PodResources()) == {"pods": 1}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({}, {"cpu": "3"}, id="beside what containers request"),
        pytest.param(
            {"init_containers": (c(cpu="4"),)},
            {"cpu": "6"},
            id="beside the largest init container",
        ),
        pytest.param({"pod_level": nano({"cpu": "5"})}, {"cpu": "5"}, id="within the pod's own"),
        pytest.param(
            {"containers": (c(cpu="1", allocated={"cpu": "2"}),)},
            {"cpu": "4"},
            id="beside what the kubelet allocated to containers",
        ),
        pytest.param(
            {"containers": (c(cpu="1", actuated={"cpu": "9"}),)},
            {"cpu": "9"},
            id="within what is in force",
        ),
        pytest.param(
            {"containers": (c(cpu="1", allocated={"cpu": "1"}),), "resize_infeasible": True},
            {"cpu": "3"},
            id="infeasible",
        ),
        pytest.param(
            {"pod_allocated": nano({"cpu": "4"}), "pod_actuated": nano({"cpu": "4"})},
            {"cpu": "4"},
            id="within the kubelet's sums over the pod",
        ),
    ],
)
def test_what_claims_take_of_a_node_counts_where_kube_scheduler_counts_it(
    pod: dict[str, Any], expected: Written
) -> None:
    check(
        PodResources(**{"containers": (c(cpu="1"),), **pod}, claimed=nano({"cpu": "2"})), expected
    )
