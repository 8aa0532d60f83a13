import json
from typing import Any

import msgspec
import pytest

from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import WatchEvent
from reserver.reservations.reservation import Ref, Written
from reserver.stores.recovery import PodPast, StorePast


def event(kind: str, item: dict[str, Any]) -> WatchEvent:
    return WatchEvent(kind, msgspec.Raw(json.dumps(item).encode()))


def configmap(revision: int, **data: str) -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": "store", "resourceVersion": str(revision)}
    return {"metadata": metadata, "data": data}


def spec(cpu: str, pod: str = "web-0") -> dict[str, Any]:
    return {
        "owners": [{"pod": {"name": pod}}],
        "node": "worker-1",
        "resources": {"cpu": cpu},
        "ttl": "0",
    }


def entry(cpu: str) -> str:
    return json.dumps(spec(cpu))


def items(**cpu_by_pod: int) -> str:
    return json.dumps(
        [
            {"pod": pod, "namespace": "shop", "cpu": cpu, "mem": 0, "expire": 2_000_000_000}
            for pod, cpu in cpu_by_pod.items()
        ]
    )


def written(*events: WatchEvent) -> dict[Ref, Written]:
    past = StorePast("reserver-system")
    for each in events:
        past.take(each)
    return {ref: when for ref, _, when in past.entries()}


def key(name: str, item: str = "") -> Ref:
    return Ref("shop", "store", name, item)


def test_entries_are_as_old_as_the_event_that_first_shows_them() -> None:
    assert written(
        event("MODIFIED", configmap(5, a=entry("1"))),
        event("MODIFIED", configmap(7, a=entry("1"), b=entry("1"))),
        event("MODIFIED", configmap(9, a=entry("1"), b=entry("2"))),
    ) == {key("a"): Written(0, 5), key("b"): Written(9, 9)}


def test_what_was_removed_and_written_again_is_new() -> None:
    assert written(
        event("ADDED", configmap(5, a=entry("1"))),
        event("MODIFIED", configmap(6)),
        event("MODIFIED", configmap(7, a=entry("1"))),
    ) == {key("a"): Written(7, 7)}


def test_so_is_what_is_in_a_store_that_was_deleted_and_made_again() -> None:
    assert written(
        event("ADDED", configmap(5, a=entry("1"))),
        event("DELETED", configmap(6, a=entry("1"))),
        event("ADDED", configmap(7, a=entry("1"))),
    ) == {key("a"): Written(7, 7)}


def test_each_item_of_a_list_has_its_own_time() -> None:
    assert written(
        event("ADDED", configmap(5, n=items(a=1))),
        event("MODIFIED", configmap(6, n=items(a=1, b=1))),
        event("MODIFIED", configmap(7, n=items(a=2, b=1))),
    ) == {key("n", "shop/a"): Written(7, 7), key("n", "shop/b"): Written(6, 6)}


def test_large_and_broken_values_are_passed_over() -> None:
    large = entry("1") + " " * 70_000
    assert written(event("ADDED", configmap(5, large=large, broken="{", ok=entry("1")))) == {
        key("ok"): Written(0, 5)
    }


def test_objects_are_as_old_as_their_spec() -> None:
    def item(revision: int, cpu: str, phase: str) -> dict[str, Any]:
        metadata = {"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": str(revision)}
        return {"metadata": metadata, "spec": spec(cpu), "status": {"phase": phase}}

    assert written(
        event("ADDED", item(5, "1", "")),
        event("MODIFIED", item(6, "2", "Active")),
        event("MODIFIED", item(7, "2", "Claimed")),
    ) == {Ref.of_object("shop", "a"): Written(6, 6)}


def pod(revision: int, node: str, uid: str = "u", claims: str = "") -> dict[str, Any]:
    annotations = {"reserver.io/claims": claims} if claims else {}
    metadata = {"namespace": "shop", "name": "web-0", "uid": uid, "annotations": annotations}
    metadata["resourceVersion"] = str(revision)
    return {"metadata": metadata, "spec": {"nodeName": node}}


@pytest.mark.parametrize(
    ("shown", "bindings"),
    [
        ([("ADDED", pod(2, "n")), ("MODIFIED", pod(3, "n"))], [(2, True)]),
        ([("ADDED", pod(2, "n")), ("DELETED", pod(4, "n"))], [(2, True), (2, True)]),
        ([("MODIFIED", pod(3, "n")), ("DELETED", pod(4, "n"))], [(4, False)]),
        ([("ADDED", pod(2, "n")), ("DELETED", pod(4, "n", uid="v"))], [(2, True), (4, False)]),
        ([("MODIFIED", pod(3, "n"))], []),
    ],
    ids=["bound", "bound, deleted", "bound before", "another one", "neither"],
)
def test_bindings_are_told(
    shown: list[tuple[str, dict[str, Any]]], bindings: list[tuple[int, bool]]
) -> None:
    past = PodPast()
    for kind, item in shown:
        past.take(event(kind, item))
    assert [(found.revision, exact) for found, exact in past.bindings()] == bindings


def test_a_pod_that_is_gone_says_what_it_claimed() -> None:
    past = PodPast()
    past.take(event("DELETED", pod(4, "n", claims='["shop/store/a@1"]')))
    ((gone, _),) = past.bindings()
    assert gone.claims == {"shop/store/a@1"}


@pytest.mark.parametrize("past", [PodPast(), StorePast("home")], ids=["pods", "stores"])
@pytest.mark.parametrize("text", ["[]", "null", '{"metadata":[]}', '{"metadata":{"uid":5}}'])
def test_what_is_no_object_is_refused(past: PodPast | StorePast, text: str) -> None:
    with pytest.raises(InvalidInput):
        past.take(WatchEvent("ADDED", msgspec.Raw(text.encode())))
