"""The effective request of a pod, from its spec and status."""

import copy

import pytest

from reserver.errors import InvalidInput
from tests.unit.k8s.pods import POD, pod


def test_what_claims_take_of_a_node_is_part_of_the_request() -> None:
    claim = {
        "resourceClaimName": "a",
        "containers": ["web", "mesh"],
        "mapping": [{"name": "cpu", "quantity": "2"}, {"name": "memory", "quantity": None}],
        "overhead": [
            {"name": "cpu", "perPod": "100m", "perContainer": "10m"},
            {"name": "memory", "perContainer": "1Mi"},
        ],
    }
    alone = claim | {"containers": None, "mapping": None}
    before = pod().value().requests
    requests = pod(status__nodeAllocatableResourceClaimStatuses=[claim, alone]).value().requests
    assert requests["cpu"] == before["cpu"] + 2000 + 120 + 100
    assert requests["memory"] == before["memory"] + 2 * 2**20


def test_a_malformed_amount_of_a_claim_is_refused_at_its_field() -> None:
    broken = [{"mapping": [{"name": "cpu", "quantity": "much"}]}]
    with pytest.raises(InvalidInput, match=r"status\.nodeAllocatableResourceClaimStatuses\.cpu"):
        pod(status__nodeAllocatableResourceClaimStatuses=broken).value()


@pytest.mark.parametrize(
    ("conditions", "millicores"),
    [
        ([], 2060),
        ([{"type": "PodResizePending", "status": "True", "reason": "Deferred"}], 2060),
        ([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}], 310),
        ([{"type": "PodResizeInProgress", "status": "True", "reason": "Infeasible"}], 2060),
    ],
)
def test_a_resize_that_is_infeasible_does_not_count(
    conditions: list[object], millicores: int
) -> None:
    containers = copy.deepcopy(POD["spec"]["containers"])
    containers[0]["resources"]["requests"]["cpu"] = "2"
    value = pod(spec__containers=containers, status__conditions=conditions).value()
    # The sidecar has no status, so that its spec is all there is, unless the resize is infeasible.
    assert value.requests["cpu"] == millicores


@pytest.mark.parametrize(
    ("observed", "millicores"),
    [({}, 310), ({"observedGeneration": 3}, 310), ({"observedGeneration": 2}, 2060)],
)
def test_a_resize_counts_until_the_kubelet_has_looked_at_it(
    observed: dict[str, int], millicores: int
) -> None:
    """Otherwise another pod could take an admitted growth before the kubelet allocates it."""
    containers = copy.deepcopy(POD["spec"]["containers"])
    containers[0]["resources"]["requests"]["cpu"] = "2"
    said = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", **observed}
    changes = {"metadata__generation": 3, "spec__containers": containers}
    value = pod(**changes, status__conditions=[said]).value()
    assert value.requests["cpu"] == millicores


@pytest.mark.parametrize(
    "in_force",
    [
        pytest.param({}, id="which is empty"),
        pytest.param({"limits": {"cpu": "9"}}, id="which tells limits only"),
    ],
)
def test_pod_level_requests_count_with_what_is_allocated_once_there_is_a_resource_status(
    in_force: object,
) -> None:
    value = pod(
        spec__resources={"requests": {"cpu": "2"}},
        status__allocatedResources={"cpu": "3"},
        status__resources=in_force,
    ).value()
    assert value.requests["cpu"] == 3010


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        (
            {"spec__containers": [{"resources": {"requests": {"cpu": "x"}}}]},
            "spec.containers[0].resources.requests.cpu",
        ),
        (
            {"spec__initContainers": [{}, {"resources": {"requests": {"cpu": ""}}}]},
            "spec.initContainers[1].resources.requests.cpu",
        ),
        ({"spec__overhead": {"memory": "1 Gi"}}, "spec.overhead.memory"),
        ({"spec__resources": {"requests": {"cpu": "x"}}}, "spec.resources.requests.cpu"),
        ({"status__allocatedResources": {"cpu": "x"}}, "status.allocatedResources.cpu"),
        ({"status__resources": {"requests": {"cpu": "x"}}}, "status.resources.requests.cpu"),
    ],
)
def test_a_malformed_quantity_is_refused_at_its_field(
    changes: dict[str, object], path: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        pod(**changes).value()
    assert refusal.value.path == path


def test_a_field_of_the_wrong_type_is_refused_at_its_path() -> None:
    with pytest.raises(InvalidInput) as refusal:
        pod(spec__nodeName=7)
    assert refusal.value.path == "spec.nodeName"
