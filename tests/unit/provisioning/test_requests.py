"""The ProvisioningRequests that are known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reserver.cluster.pod import PodName
from reserver.k8s.objects.objects import decode
from reserver.provisioning import observe
from reserver.provisioning.codec import RequestObject
from reserver.provisioning.model import ConditionReason
from reserver.provisioning.observe import KnownRequests, refs


def item(
    name: str, uid: str = "", *said: str, revision: int = 1, of_class: str = "hold.reserver.io"
) -> RequestObject:
    pod_set = {"podTemplateRef": {"name": "worker"}, "count": 1}
    at = "2030-01-01T00:00:00Z"
    conditions: list[dict[str, Any]] = [
        {"type": kind, "status": "True", "reason": "X", "message": "", "lastTransitionTime": at}
        for kind in said
    ]
    whole = {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": uid or f"uid-of-{name}",
            "resourceVersion": str(revision),
        },
        "spec": {"provisioningClassName": of_class, "podSets": [pod_set]},
        "status": {"conditions": conditions},
    }
    return decode(RequestObject, json.dumps(whole).encode())


@pytest.fixture
def touched() -> list[PodName]:
    return []


@pytest.fixture
def known(touched: list[PodName]) -> KnownRequests:
    return KnownRequests(touched.append)


def test_a_namespace_has_so_many_open_requests_and_those_that_have_begun_go_on(
    known: KnownRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observe, "MOST_REQUESTS", 2)
    known.put(item("over", "", "Accepted", "Failed"))
    for name in ("a", "b", "late"):
        known.put(item(name))
    known.put(item("begun", "", "Accepted"))
    known.put(item("b", "", revision=2))
    known.put(item("late", "", revision=2))
    refused = {
        each.request.name.name
        for each in known
        if each.request.reason is ConditionReason.TOO_MANY_REQUESTS
    }
    assert refused == {"late"}
    for name in ("a", "b", "late", "begun"):
        known.drop(PodName("shop", name))
    known.put(item("next"))
    next_one = known.get(PodName("shop", "next"))
    assert next_one is not None
    assert not next_one.request.problem


def test_what_went_is_known_until_it_is_released_and_its_successor_is_another(
    known: KnownRequests, touched: list[PodName]
) -> None:
    name = PodName("shop", "job")
    known.put(item("job", "first-one"))
    known.put(item("job", "second-one"))
    (gone,) = known.gone(name)
    now = known.get(name)
    assert now is not None
    assert (gone.uid, now.request.uid) == ("first-one", "second-one")
    assert not {*refs(gone)} & {*refs(now.request)}
    assert {known.of(ref) for ref in refs(now.request)} == {name}
    assert {known.of(ref) for ref in refs(gone)} == {None}
    known.drop(name)
    known.released(name, [gone])  # The second one was deleted while the first was released.
    assert [each.uid for each in known.gone(name)] == ["second-one"]
    known.released(name, known.gone(name))
    assert not known.gone(name)
    assert set(touched) == {name}


def test_other_classes_and_late_news_are_passed_over(known: KnownRequests) -> None:
    known.put(item("theirs", of_class="check-capacity.autoscaling.x-k8s.io"))
    assert not known.names()
    known.put(item("job", "", "Accepted", revision=5))
    known.put(item("job", revision=4))
    (now,) = known
    assert now.metadata.revision == 5


def test_what_reserver_said_is_read_behind_whatever_others_say(known: KnownRequests) -> None:
    """Else it would say so again, at once and for ever."""
    known.put(item("job", "", *(f"example.com/T{number}" for number in range(40)), "Accepted"))
    (now,) = known
    assert (len(now.conditions), set(now.request.said)) == (32, {"Accepted"})


def test_a_request_that_is_deleted_while_its_status_is_written_stays_deleted() -> None:
    requests = KnownRequests(lambda _: None)
    requests.put(item("a"))
    known = requests.get(PodName("shop", "a"))
    assert known is not None
    requests.drop(PodName("shop", "a"))
    requests.answered(known, item("a", revision=2))
    assert requests.get(PodName("shop", "a")) is None


def test_little_is_kept_of_an_ended_request_but_the_names_of_its_reservations(
    known: KnownRequests,
) -> None:
    """A namespace may have thousands, and a podSet names a PodTemplate of 253 characters."""
    name = PodName("shop", "job")
    known.put(item("job", "", "Failed", "example.com/Other"))
    before = known.get(name)
    assert before is not None
    known.ended(before)
    (now,) = known
    assert (now.metadata, now.conditions) == (before.metadata, ())
    assert now.request.said == before.request.said
    assert [each.template for each in now.request.pod_sets] == [""]
    assert refs(now.request) == refs(before.request)
    assert {known.of(ref) for ref in refs(now.request)} == {None}
    known.put(item("job", "", "Failed", revision=2))
    assert {known.of(ref) for ref in refs(before.request)} == {name}
