"""An exception costs the one object or entry that raised it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from reserver.base.pacer import outcome
from reserver.base.quarantine import quarantined
from reserver.errors import LeadershipLost
from reserver.extender.cluster_watches import node_view, pod_view
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.k8s.objects.pods import PodObject
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.state import State
from reserver.stores.codec import spec_codec
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.object import entries as objects_module
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.entries import read_object
from tests.builders import NOW, held, node, pod, reservation, state_of
from tests.unit.base.quarantined import POISON, Faults, poisoned
from tests.unit.stores.test_object_cache import made


def spec(owner: str, cpu: str = "1") -> str:
    fields = {"owners": [{"pod": {"name": owner}}], "resources": {"cpu": cpu}}
    return json.dumps(fields | {"node": "worker-1", "ttl": 0})


def raw(document: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(document).encode())


def raw_pod(name: str, on: str = "worker-1", cpu: str = "1") -> msgspec.Raw:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7"}
    return raw({"metadata": metadata, "spec": {"nodeName": on, "containers": containers}})


@pytest.fixture
def state() -> State:
    return state_of(node("worker-1", cpu="8"), node("worker-2", cpu="8"), now=NOW)


class ReportingStore:
    """A store and its reports."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.said: list[str] = []
        self.store = ConfigMapCache(
            state.ledger, lambda: NOW, lambda _, problem: self.said.append(str(problem))
        )

    def put(self, **data: str) -> None:
        metadata = Metadata("store", "shop", "uid", "5")
        outcome(self.store.put(ConfigMapObject(metadata, data)))


@pytest.fixture
def reporting(state: State) -> ReportingStore:
    return ReportingStore(state)


def allows(state: State, cpu: str = "1", name: str = "stranger") -> bool:
    return judge_bind(pod(name, cpu=cpu), "worker-1", state, NOW).refusal is None


# The quarantine itself.


def test_a_fault_is_logged_once_with_its_traceback_and_counted_each_time(faults: Faults) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            with quarantined("placer", "one-of-many"):
                raise ZeroDivisionError
    assert len(logs) == 1
    assert logs[0]["what"] == "one-of-many"
    assert isinstance(logs[0]["exc_info"], ZeroDivisionError)
    assert faults.pop("placer") == 3


@pytest.mark.parametrize(
    "fault", [MemoryError, LeadershipLost, KeyboardInterrupt, asyncio.CancelledError]
)
def test_a_fault_of_the_process_goes_on(fault: type[BaseException]) -> None:
    with pytest.raises(fault), quarantined("placer", "one-of-many"):
        raise fault


# Objects of the cluster.


def test_a_pod_that_raises_costs_no_other_and_strangers_the_holds_of_its_node(
    state: State, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    state.ledger.put(reservation("r", owners=("owner",), node="worker-1", cpu="2"))
    monkeypatch.setattr(
        PodObject, "value", poisoned(PodObject.value, lambda it: it.metadata.name == POISON)
    )
    view = pod_view(state)
    for each in (raw_pod("a"), raw_pod(POISON), raw_pod("b")):
        outcome(view.changed(each))
    assert [name.name for name in state.pods] == ["a", "b"]
    assert not allows(state)
    assert allows(state, name="owner")
    assert judge_bind(pod("stranger", cpu="1"), "worker-2", state, NOW).refusal is None
    outcome(view.deleted(raw_pod(POISON)))
    assert allows(state)
    assert faults.pop("watch") == 2


def test_a_pod_in_doubt_closes_no_node_without_holds(
    state: State, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    monkeypatch.setattr(PodObject, "value", poisoned(PodObject.value, lambda _: True))
    outcome(pod_view(state).changed(raw_pod(POISON)))
    assert allows(state)
    assert faults.pop("watch") == 1


def test_a_pod_in_doubt_that_a_new_list_does_not_show_is_none_any_more(
    state: State, faults: Faults
) -> None:
    state.ledger.put(reservation("r", owners=("owner",), node="worker-1", cpu="2"))
    view = pod_view(state)
    outcome(view.changed(raw_pod("odd", cpu="?")))
    assert not allows(state)  # A malformed pod counts as much as one that raises an error.
    view.list_began()
    outcome(view.list_ended(0))
    assert allows(state)
    assert not faults


def test_a_node_that_raises_takes_no_strangers_until_it_is_read(
    state: State, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    state.ledger.put(reservation("r", owners=("owner",), node="worker-1", cpu="2"))
    view = node_view(state)
    shown = raw(
        {"metadata": {"name": "worker-1"}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}}
    )
    with monkeypatch.context() as patch:
        patch.setattr(NodeObject, "value", poisoned(NodeObject.value, lambda _: True))
        outcome(view.changed(shown))
    assert not allows(state)
    assert allows(state, name="owner")
    outcome(view.changed(shown))
    assert allows(state)
    assert faults.pop("watch") == 1


# Entries of a store.


def test_an_entry_that_raises_costs_no_other_and_is_told(
    reporting: ReportingStore, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    monkeypatch.setattr(
        spec_codec, "read", poisoned(spec_codec.read, lambda _, at, *__: at.key == POISON)
    )
    reporting.put(a=spec("x"), poison=spec("y"), z=spec("z"))
    assert held(reporting.state, "worker-1") == 2000
    assert len(reporting.said) == 1
    assert "fault in reserver (ZeroDivisionError" in reporting.said[0]
    assert dict(reporting.store.problem_counts()) == {("shop", "store"): 1}
    assert faults.pop("store") == 1


def test_an_entry_whose_edit_raises_keeps_what_it_held(
    reporting: ReportingStore, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    reporting.put(poison=spec("x", cpu="3"))
    with monkeypatch.context() as patch:
        patch.setattr(spec_codec, "read", poisoned(spec_codec.read, lambda *_: True))
        reporting.put(poison=spec("x", cpu="1"))
    assert held(reporting.state, "worker-1") == 3000
    reporting.put(poison=spec("x", cpu="2"))
    assert held(reporting.state, "worker-1") == 2000
    assert dict(reporting.store.problem_counts()) == {("shop", "store"): 0}
    assert faults.pop("store") == 1


def test_an_entry_that_cannot_be_settled_costs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed: list[Any] = []
    state = State(failed=lambda at, exc: failed.append((at.key, type(exc))))
    state.node_seen(node("worker-1", cpu="8"))
    state.ledger.advance(NOW)
    for key in ("a", POISON, "z"):
        one = reservation(key, owners=(key,), node="worker-1", cpu="1")
        state.ledger.put(replace(one, expires_at=NOW + 5))
    monkeypatch.setattr(
        state.ledger,
        "_hold",
        poisoned(state.ledger._hold, lambda entry: entry.reservation.ref.key == POISON),
    )
    state.ledger.advance(NOW + 6)
    assert held(state, "worker-1") == 1000  # The faulty entry is reported, and still holds.
    assert failed == [(POISON, ZeroDivisionError)]


def test_a_reservation_object_that_raises_keeps_what_it_held_and_is_told(
    monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    said: list[str] = []
    state = state_of(node("worker-1", cpu="8"), now=NOW)
    report = lambda _, problem: said.append(str(problem))  # noqa: E731
    objects = ObjectCache(state.ledger, lambda: NOW, report, lambda _: None, home="home")
    objects.put(made(revision=1))
    before = held(state, "worker-1")
    patched = poisoned(read_object, lambda *_: True)
    monkeypatch.setattr(objects_module, "read_object", patched)
    objects.put(made(revision=2, slots=3))
    assert held(state, "worker-1") == before > 0
    assert len(said) == 1
    assert faults.pop("store") >= 1
