import json
from typing import Any

import msgspec
import pytest

from reserver.base.pacer import outcome
from reserver.cluster.pod import PodName
from reserver.extender.cluster_watches import (
    claim_view,
    class_view,
    namespace_view,
    node_view,
    pod_view,
    volume_view,
)
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject
from reserver.k8s.watch.object_view import ObjectView
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Written
from reserver.scheduling.state import State
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.stores import store_view
from tests.builders import name, ref, requested, reservation


def raw(document: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(document).encode())


def pod(
    pod_name: str, node: str = "", cpu: str = "1", uid: str = "", revision: int = 1
) -> msgspec.Raw:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": pod_name, "namespace": "shop", "uid": uid or f"uid-{pod_name}"}
    metadata["resourceVersion"] = str(revision)
    return raw({"metadata": metadata, "spec": {"nodeName": node, "containers": containers}})


def node(node_name: str, cpu: str = "8") -> msgspec.Raw:
    return raw({"metadata": {"name": node_name}, "status": {"allocatable": {"cpu": cpu}}})


def listed(view: ObjectView[Any], *pages: list[msgspec.Raw]) -> None:
    view.list_began()
    for items in pages:
        for item in items:
            outcome(view.listed(item))
    outcome(view.list_ended(0))


@pytest.fixture
def state() -> State:
    state = State()
    listed(node_view(state), [node("worker-1")])
    return state


def test_listed_and_watched_pods_are_counted(state: State) -> None:
    view = pod_view(state)
    listed(view, [pod("a", "worker-1")], [pod("b", "worker-1")])
    outcome(view.changed(pod("c", "worker-1")))
    assert requested(state, "worker-1") == 3000
    outcome(view.deleted(pod("a", "worker-1")))
    assert requested(state, "worker-1") == 2000


def test_the_newest_object_is_known_without_looking_at_all(state: State) -> None:
    view = pod_view(state)

    def newest() -> Any:
        return outcome(view.newest())

    assert newest() is None
    listed(view, [pod("a", revision=3), pod("b", revision=7), pod("c", revision=5)])
    assert newest() == (("shop", "b"), 7)
    view.known = lambda: pytest.fail("all are looked at")
    outcome(view.changed(pod("c", revision=8)))
    outcome(view.changed(pod("d", revision=9)))
    outcome(view.changed(pod("c", revision=10)))
    assert newest() == (("shop", "c"), 10)
    outcome(view.deleted(pod("c", revision=11)))
    assert newest() == (("shop", "d"), 9)
    view = pod_view(state)
    outcome(view.changed(pod("d", revision=12)))
    listed(view, [pod("d", revision=12), pod("e", revision=20)])
    assert view.noted() == (("shop", "d"), 12)
    assert newest() == view.noted() == (("shop", "e"), 20)


def test_a_newest_object_that_is_gone_has_a_successor(state: State) -> None:
    view = pod_view(state)
    listed(view, [pod("a", revision=3), pod("b", revision=7)])
    for number in range(300):
        outcome(view.changed(pod(f"short-{number}", revision=10 + number)))
    assert outcome(view.newest()) == (("shop", "short-299"), 309)
    for number in range(300):
        outcome(view.deleted(pod(f"short-{number}", revision=400 + number)))
    assert outcome(view.newest()) == (("shop", "b"), 7)


def test_what_a_new_list_does_not_show_is_gone(state: State) -> None:
    view = pod_view(state)
    listed(view, [pod("a", "worker-1"), pod("b", "worker-1")])
    outcome(view.changed(pod("c", "worker-1")))
    listed(view, [pod("b", "worker-1")])
    assert list(state.pods) == [name("b")]
    assert requested(state, "worker-1") == 1000


def test_a_pod_that_cannot_be_read_costs_no_other(state: State) -> None:
    view = pod_view(state)
    listed(view, [pod("a", "worker-1"), pod("b", "worker-1", cpu="?"), pod("c", "worker-1")])
    assert list(state.pods) == [name("a"), name("c")]
    assert view.unreadable == 1
    outcome(view.changed(pod("b", "worker-1")))
    assert requested(state, "worker-1") == 3000


def test_a_pod_of_which_not_even_its_node_can_be_read_is_no_fault_of_ours(state: State) -> None:
    view = pod_view(state)
    raw = msgspec.Raw(b'{"metadata":{"namespace":"shop","name":"a"},"spec":"none"}')
    outcome(view.changed(raw))
    assert view.unreadable == 1  # And nothing was quarantined: see the fixture `faults`.


def test_a_pod_that_cannot_be_read_any_more_stays_as_it_was_until_it_is_gone(state: State) -> None:
    view = pod_view(state)
    listed(view, [pod("a", "worker-1")])
    outcome(view.changed(pod("a", "worker-1", cpu="?")))
    listed(view, [pod("a", "worker-1", cpu="?")])
    assert requested(state, "worker-1") == 1000
    outcome(view.deleted(pod("a", "worker-1", cpu="?")))
    assert requested(state, "worker-1") == 0


@pytest.mark.parametrize(("revision", "stays"), [(7, False), (9, True)])
def test_a_pod_that_is_read_during_a_list_stays_if_it_is_younger(
    state: State, revision: int, *, stays: bool
) -> None:
    """No watch would show the deletion: the next watch begins at the list."""
    view = pod_view(state)
    view.list_began()
    assert state.pod_read(decode(PodObject, pod("a", revision=revision)).value())
    outcome(view.list_ended(8))
    assert list(state.pods) == [name("a")] * stays


def test_a_replaced_pod_is_counted_as_it_is_now(state: State) -> None:
    view = pod_view(state)
    listed(view, [pod("a", "worker-1", cpu="3")])
    listed(view, [pod("a", "worker-1", cpu="1", uid="new")])
    assert requested(state, "worker-1") == 1000


def test_late_events_of_a_pod_whose_successor_was_read_already_change_nothing(
    state: State,
) -> None:
    """The last events of a predecessor do not end a hold for its successor."""
    view = pod_view(state)
    outcome(view.changed(pod("web", node="worker-1", uid="old", revision=2)))
    state.ledger.put(reservation("a", owners=("web",), cpu="1"), Written(5, 5))
    successor = decode(PodObject, pod("web", uid="new", revision=9)).value()
    state.pod_seen(successor)
    outcome(view.changed(pod("web", node="worker-1", uid="old", revision=7)))
    outcome(view.deleted(pod("web", node="worker-1", uid="old", revision=8)))
    assert state.pods == {name("web"): successor}
    assert state.ledger.phase(ref("a")) is Phase.ACTIVE
    outcome(view.deleted(pod("web", uid="new", revision=10)))
    assert state.pods == {}


def test_nodes_come_and_go(state: State) -> None:
    view = node_view(state)
    outcome(view.changed(node("worker-2")))
    listed(view, [node("worker-2", cpu="4")])
    assert [state.snapshot.has_node(f"worker-{number}") for number in (1, 2)] == [False, True]
    outcome(view.deleted(node("worker-2")))
    assert state.snapshot.node_count == 0


def test_namespaces_come_and_go_with_their_labels(state: State) -> None:
    view = namespace_view(state.snapshot)
    listed(view, [raw({"metadata": {"name": "red", "labels": {"team": "x"}}})])
    outcome(view.changed(raw({"metadata": {"name": "blue"}})))
    assert state.snapshot.namespaces == {"red": {"team": "x"}, "blue": {}}
    outcome(view.deleted(raw({"metadata": {"name": "blue"}})))
    listed(view)
    assert state.snapshot.namespaces == {}


def test_claims_volumes_and_classes_come_and_go(state: State) -> None:
    storage = state.snapshot.storage
    claim = raw({"metadata": {"name": "data", "namespace": "shop"}, "spec": {"volumeName": "pv"}})
    volume = raw({"metadata": {"name": "pv"}, "spec": {}})
    one = raw({"metadata": {"name": "ssd"}, "volumeBindingMode": "WaitForFirstConsumer"})
    views: list[ObjectView[Any]] = [claim_view(storage), volume_view(storage), class_view(storage)]
    for view, item in zip(views, (claim, volume, one), strict=True):
        listed(view, [item])
    assert storage.claims[PodName("shop", "data")].volume == "pv"
    assert storage.volumes["pv"].node_terms is None
    assert storage.classes["ssd"].waits
    for view, item in zip(views, (claim, volume, one), strict=True):
        outcome(view.deleted(item))
        listed(view)
    assert (storage.claims, storage.volumes, storage.classes) == ({}, {}, {})


def test_a_claim_that_cannot_be_read_costs_no_other(state: State) -> None:
    view = claim_view(state.snapshot.storage)
    broken = raw({"metadata": {"name": "a", "namespace": "shop", "ownerReferences": "me"}})
    listed(view, [broken, raw({"metadata": {"name": "b", "namespace": "shop"}})])
    assert list(state.snapshot.storage.claims) == [PodName("shop", "b")]
    assert view.unreadable == 1


def configmap(map_name: str, **data: str) -> msgspec.Raw:
    return raw({"metadata": {"name": map_name, "namespace": "shop"}, "data": data})


SPEC = '{"owners":[{"pod":{"name":"a"}}],"resources":{"cpu":"1"},"node":"worker-1","ttl":0}'


def test_store_configmaps_feed_the_ledger(state: State) -> None:
    store = ConfigMapCache(state.ledger, lambda: 0.0, lambda *_: None)
    view = store_view(store, covers=lambda _: True)
    listed(view, [configmap("store", r1=SPEC, r2=SPEC), configmap("more", r1=SPEC)])
    assert len(state.ledger) == 3
    outcome(view.changed(configmap("store", r1=SPEC)))
    assert len(state.ledger) == 2
    outcome(view.deleted(configmap("store", r1=SPEC)))
    assert len(state.ledger) == 1
    listed(view)
    assert len(state.ledger) == 0


def test_a_configmap_that_two_watches_show_belongs_to_one_of_them(state: State) -> None:
    store = ConfigMapCache(state.ledger, lambda: 0.0, lambda *_: None)
    labelled: Any = store_view(store, covers=lambda map_name: map_name != ("shop", "named"))
    named: Any = store_view(store, covers=lambda map_name: map_name == ("shop", "named"))
    for view in (labelled, named):
        listed(view, [configmap("named", r1=SPEC)])
    assert len(state.ledger) == 1
    outcome(labelled.deleted(configmap("named", r1=SPEC)))
    listed(labelled)
    assert len(state.ledger) == 1
    listed(named)
    assert len(state.ledger) == 0
