"""ProvisioningRequests and PodTemplates as they are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import TENANT
from reserver.k8s.objects.objects import Condition, decode
from reserver.k8s.objects.pods import PodObject
from reserver.provisioning.codec import RequestObject, read_object, show_conditions
from reserver.provisioning.model import (
    ConditionChange,
    ConditionReason,
    Kind,
    PodSet,
    ProvisioningRequest,
)
from reserver.provisioning.template import document, documents, place, pod_of
from reserver.reservations.reservation import Ref
from reserver.stores.codec import spec_codec

NOW = 1_900_000_000.0
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
}
NEW, OLD = "autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"


def read(**spec: Any) -> ProvisioningRequest:
    whole = {
        "provisioningClassName": "hold.reserver.io",
        "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 2}],
        **spec,
    }
    metadata = {"name": "job", "namespace": "shop", "uid": "u"}
    return read_object(
        decode(RequestObject, json.dumps({"metadata": metadata, "spec": whole}).encode())
    )


def test_a_request_says_which_pods_come_and_for_how_long_room_is_held() -> None:
    request = read(parameters={"validFor": "1h30m", "noRetry": "true"})
    assert (request.name, request.uid) == (PodName("shop", "job"), "u")
    assert request.pod_sets == (PodSet("worker", 2),)
    assert (request.valid_s, request.retries, request.problem) == (5400.0, False, "")
    assert (read().valid_s, read().retries) == (600.0, True)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"podSets": []}, "spec.podSets: is empty"),
        ({"podSets": [{"podTemplateRef": {"name": "A b"}, "count": 1}]}, "podTemplateRef.name"),
        ({"podSets": [{"podTemplateRef": {"name": "a"}, "count": 0}]}, "count: 0 is out of range"),
        (
            {"podSets": [{"podTemplateRef": {"name": "a"}, "count": 1}] * 33},
            "spec.podSets: 33 entries are too many; write 32 at most, or several requests",
        ),
        ({"podSets": "all"}, "spec.podSets"),
        ({"parameters": {"ValidUntilSeconds": "5"}}, "there are validFor and noRetry"),
        ({"parameters": {"validFor": "0s"}}, "write 1s to 720h"),
        ({"parameters": {"validFor": "721h"}}, "write 1s to 720h"),
        ({"parameters": {"validFor": "soon"}}, "spec.parameters.validFor: 'soon'"),
        ({"parameters": {"noRetry": "yes"}}, "neither true nor false"),
        (
            {"parameters": {"x" * 20_000: "y"}},
            "bytes are too many; write 16384 at most, or several requests",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(spec: dict[str, Any], says: str) -> None:
    request = read(**spec)
    assert says in request.problem
    assert request.reason is ConditionReason.INVALID_SPEC
    assert bool(request.pod_sets) == ("parameters" in spec and "bytes" not in says)


def test_conditions_of_others_stay_and_ours_keep_their_time_until_they_change() -> None:
    theirs = Condition("Theirs", "True", "X", "", "2020-01-01T00:00:00Z", 1)
    ours = Condition("Accepted", "True", "Accepted", "before", "2020-01-01T00:00:00Z", 1)
    said = {
        Kind.ACCEPTED: ConditionChange(Kind.ACCEPTED, ConditionReason.ACCEPTED, "now", holds=True),
        Kind.FAILED: ConditionChange(
            Kind.FAILED, ConditionReason.QUOTA_EXCEEDED, "m" * 2000, holds=True
        ),
    }
    kept, accepted, failed = show_conditions(said, [theirs, ours], 3, NOW)
    assert kept == theirs
    assert accepted == Condition("Accepted", "True", "Accepted", "now", "2020-01-01T00:00:00Z", 3)
    assert (failed.type, failed.observed_generation) == ("Failed", 3)
    assert failed.last_transition_time == "2030-03-17T17:46:40Z"
    assert len(failed.message) == 1000


def held(template: dict[str, Any], pods: int = 3) -> dict[str, Any]:
    request = ProvisioningRequest(name=PodName("shop", "job"), uid="0123456789", valid_s=60.0)
    body = json.dumps({"metadata": {"name": "worker"}, "template": template}).encode()
    found = document(request, PodSet("worker", pods), pod_of(body, ""), NOW)
    spec_codec.read(found, Ref.of_object("shop", "job"), NOW, TENANT)  # Reserver takes it.
    return found


def test_a_template_is_held_with_its_requests_and_where_there_are_none_its_limits() -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    container = {"name": "main", "resources": resources}
    early = {"name": "early", "resources": {"limits": {"cpu": "3"}}}
    found = held({"spec": {"containers": [container], "initContainers": [early]}})
    assert found == {
        "owners": [{"controller": {"kind": "ProvisioningRequest", "name": "job"}}],
        "resources": {"cpu": "3", "memory": "1Gi", "pods": "1"},
        "slots": 3,
        "expiresAt": "2030-03-17T17:47:40Z",
        "retain": True,
        "description": "for ProvisioningRequest job",
    }


def test_a_template_that_asks_for_nothing_takes_a_place_for_a_pod() -> None:
    assert held({"spec": {"containers": [{"name": "main"}]}})["resources"] == {"pods": "1"}


def test_where_its_pods_may_run_is_where_room_is_held() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": [term]}}}
    taint = {"key": "gpu", "operator": "Exists"}
    spec = {"nodeSelector": {"a": "b"}, "affinity": affinity, "tolerations": [taint]}
    found = held({"spec": {"containers": [{"name": "main"}], **spec}})
    assert found["placement"] == spec


@pytest.mark.parametrize(
    "template",
    [
        {"spec": {"containers": "none"}},
        {"spec": {"containers": [{"name": "x", "resources": {"requests": {"cpu": "many"}}}]}},
        {"spec": {"containers": [{"name": "x" * 40_000}]}},
    ],
)
def test_a_template_that_cannot_be_held_room_for_is_refused(template: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        held(template)


def asking(template: dict[str, Any], counts: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the objects for a request whose podSets have so many pods, all of a template."""
    pod_sets = tuple(PodSet("worker", count) for count in counts)
    request = ProvisioningRequest(name=PodName("shop", "job"), uid="0123456789", pod_sets=pod_sets)
    body = json.dumps({"template": template}).encode()
    pods = [pod_of(body, place(index, each)) for index, each in enumerate(pod_sets)]
    return outcome(documents(request, pods, NOW, TENANT))


def test_the_smallest_slots_are_written_first() -> None:
    def template(cpu: str) -> bytes:
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        return json.dumps({"spec": {"containers": [container]}}).encode()

    pod_sets = (PodSet("large", 1), PodSet("small", 2))
    request = ProvisioningRequest(name=PodName("shop", "job"), uid="0123456789", pod_sets=pod_sets)
    written = outcome(documents(request, [template("4"), template("1")], NOW, TENANT))
    assert [(each["resources"]["cpu"], each["slots"]) for each in written] == [("1", 2), ("4", 1)]


@pytest.mark.parametrize(
    ("spec", "counts", "path", "problem", "remedy"),
    [
        (
            {"nodeSelector": {f"k{number}": "v" for number in range(33)}},
            (1, 1),
            "spec.podSets[0], PodTemplate worker.placement",
            "33 labels in selectors are too many",
            "write 32 at most, or several requests",
        ),
        (
            {"containers": [{"name": "x" * 40_000}]},
            (1,),
            "spec.podSets[0], PodTemplate worker",
            "40040 bytes are too many for one reservation",
            "keep it under 32768, or write several requests",
        ),
        (
            {"containers": [{"resources": {"requests": {"cpu": "9" * 60}}}]},
            (1,),
            "spec.podSets[0], PodTemplate worker.resources.cpu",
            "9223372036854775807 is more than any node has",
            "check the unit",
        ),
        (
            APART,
            (1, 21),
            "spec.podSets[1].count",
            "21 are too many with a placement by pod affinity or topology spread",
            "write 20 at most, or several requests",
        ),
        (
            APART,
            (20,) * 6,
            "spec.podSets",
            "120 slots with a placement by pod affinity or topology spread are too many",
            "write 100 at most, or several requests",
        ),
    ],
)
def test_what_no_room_can_be_held_for_is_named_in_the_request_with_its_bound(
    spec: dict[str, Any], counts: tuple[int, ...], path: str, problem: str, remedy: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        asking({"spec": spec}, counts)
    found = refused.value
    assert (found.path, found.problem, found.remedy) == (path, problem, remedy)


@pytest.mark.parametrize(
    ("annotations", "request_"),
    [
        ({}, ""),
        ({f"{NEW}/consume-provisioning-request": "job"}, "job"),
        ({f"{OLD}/consume-provisioning-request": "job"}, "job"),
        (
            {
                f"{NEW}/consume-provisioning-request": "job",
                f"{NEW}/provisioning-class-name": "hold.reserver.io",
            },
            "job",
        ),
        (
            {
                f"{NEW}/consume-provisioning-request": "job",
                f"{NEW}/provisioning-class-name": "check-capacity.autoscaling.x-k8s.io",
            },
            "",
        ),
        (
            {
                f"{NEW}/consume-provisioning-request": "new",
                f"{OLD}/consume-provisioning-request": "old",
            },
            "new",
        ),
        ({f"{NEW}/consume-provisioning-request": "x" * 254}, ""),
    ],
)
def test_a_pod_says_by_an_annotation_whose_it_is(
    annotations: dict[str, str], request_: str
) -> None:
    metadata = {"name": "p", "namespace": "shop", "uid": "u", "annotations": annotations}
    item = decode(PodObject, json.dumps({"metadata": metadata, "spec": {}}).encode())
    assert item.value().request == request_
