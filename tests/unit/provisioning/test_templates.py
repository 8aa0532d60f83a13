"""Large PodTemplates: read one by one, in steps, up to a bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import TENANT
from reserver.provisioning.booking import Booking
from reserver.provisioning.decide import NoBooking
from reserver.provisioning.model import (
    MOST_POD_SETS,
    ConditionReason,
    PodSet,
    ProvisioningRequest,
)
from reserver.provisioning.template import _Object, documents, place, pod_of
from tests.builders import NOW
from tests.cpu import MOST_S, least_cpu_s, longest_step_s
from tests.unit.k8s.fakes import ScriptedClient, refused
from tests.unit.moves.api_server import SEATS
from tests.unit.provisioning.shop import TEMPLATES, Shop, asked

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LONGEST = _Object.MOST_BYTES
POD: dict[str, Any] = {"spec": {"containers": [{"name": "main"}]}}


def template(labels: int = 0, pod: Any = POD) -> bytes:
    metadata = {"name": "t", "labels": {f"l{number}": "" for number in range(labels)}}
    return json.dumps({"metadata": metadata, "template": pod}).encode()


def widest(number: int) -> dict[str, Any]:
    """Return a pod with as many terms as fit."""
    values = [f"v{value}-{number}" for value in range(64)]
    terms = [
        {"matchExpressions": [{"key": f"k{term}", "operator": "In", "values": values}]}
        for term in range(16)
    ]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return {"spec": {"containers": [{"name": "c"}] * 1_000, "affinity": affinity}}


@pytest.mark.parametrize("size", [LONGEST + 1, 1_500_000])
def test_one_that_is_too_long_is_refused_unread_with_the_place(size: int) -> None:
    long = template() + b" " * (size - len(template()))
    with pytest.raises(InvalidInput) as refused:
        pod_of(long, place(3, PodSet("worker", 1)))
    assert refused.value.path == "spec.podSets[3], PodTemplate worker"
    assert str(size) in refused.value.problem
    assert str(LONGEST) in refused.value.remedy


@pytest.mark.parametrize("size", [0, 1, 1_000])
def test_only_its_pod_is_kept(size: int) -> None:
    assert json.loads(pod_of(template(labels=size), "")) == POD


def test_the_largest_are_read_in_short_steps() -> None:
    pods = [pod_of(template(pod=widest(number)), "") for number in range(MOST_POD_SETS)]
    assert max(map(len, pods)) > TENANT.spec_bytes // 2
    sets = tuple(PodSet(f"t{number}", 1) for number in range(MOST_POD_SETS))
    request = ProvisioningRequest(name=PodName("shop", "job"), uid="u", pod_sets=sets)
    each_s = longest_step_s(lambda: iter(documents(request, pods, NOW, TENANT)))
    assert each_s < MOST_S / 4
    assert len(list(documents(request, pods, NOW, TENANT))) == MOST_POD_SETS

    def longest(number: int) -> bytes:
        return template(labels=12_000 + number, pod=widest(number))

    assert LONGEST // 2 < len(longest(0)) < LONGEST
    assert least_cpu_s(longest, lambda raw: pod_of(raw, "")) < MOST_S / 4


@pytest.mark.parametrize(
    "fill", [{"labels": {"a": "b" * LONGEST}}, {"annotations": {"a": "b" * LONGEST}}]
)
async def test_a_request_with_one_fails_for_good(fill: dict[str, Any]) -> None:
    def grow(shop: Shop) -> None:
        shop.api.add(TEMPLATES, {"metadata": {"name": "driver", **fill}, "template": POD})
        shop.is_over = lambda: shop.holds("Failed")

    shop = await asked(grow)
    await shop.settle()
    assert shop.said["Failed"] == ("True", "InvalidPodTemplate")
    assert not shop.api.of(SEATS)
    provisioner = shop.reserver.features.provisioner
    assert provisioner is not None
    (known,) = provisioner.requests
    assert not any(each.template for each in known.request.pod_sets)  # It has ended.


async def test_those_before_a_missing_one_are_read_once() -> None:
    """A waiting request is tried again each second: 31 of the largest took half of the time."""
    client = ScriptedClient(json.loads(template()), refused(404), *[json.loads(template())] * 2)
    parts: Any = (None, None, None)
    booking = Booking(client, lambda: NOW, *parts)
    sets = tuple(PodSet(f"t{number}", 1) for number in range(3))
    request = ProvisioningRequest(name=PodName("shop", "job"), uid="u", pod_sets=sets)
    missing = await booking.templates(request)
    assert isinstance(missing, NoBooking)
    assert missing.reason is ConditionReason.POD_TEMPLATE_NOT_FOUND
    found = await booking.templates(request)
    assert not isinstance(found, NoBooking)
    assert [json.loads(pod) for pod in found] == [POD] * 3
    read = [each.path.rpartition("/")[2] for each in client.requests]
    assert read == ["t0", "t1", "t1", "t2"]


async def test_requests_of_a_namespace_keep_no_other_waiting() -> None:
    """Once, a worker took all requests of a namespace before it came to the next one."""
    shop = Shop()
    await shop.start()
    provisioner = shop.reserver.features.provisioner
    assert provisioner is not None
    for number in range(1_000):
        provisioner.queue.add(PodName("greedy", f"job-{number}"))
    provisioner.queue.add(PodName("shop", "job"))
    assert len(provisioner.queue.take(2) or ()) == 1
    assert provisioner.queue.take(2) == [PodName("shop", "job")]
