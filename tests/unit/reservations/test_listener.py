"""Changes are reported to each listener, in order, whatever another one raises."""

from __future__ import annotations

import inspect

import pytest

from reserver.errors import LeadershipLost
from reserver.reservations.listener import Listener, Listeners
from reserver.reservations.reservation import Ref
from tests.builders import pod, ref

POD = pod("web", cpu="1")
CHANGES: dict[str, tuple[object, ...]] = {
    "on_reservation_changed": (ref("r"),),
    "on_backing_changed": (ref("r"),),
    "on_capacity_freed": ("worker-1",),
    "on_node_changed": ("worker-1",),
    "on_occurrence_over": (ref("r"),),
    "on_pod_changed": (None, POD),
    "on_pod_patched": ("shop", "[]"),
    "on_pod_refused": (POD.uid,),
    "on_pod_assumed": (POD, "worker-1"),
}


class _All(Listener):
    """Records each change by its name."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, tuple[object, ...]]] = []


for _name in CHANGES:
    setattr(_All, _name, lambda self, *change, _name=_name: self.heard.append((_name, change)))


class _Some(Listener):
    """Reacts to reservations and nodes, as most listeners do."""

    def __init__(self, name: str, heard: list[str]) -> None:
        self.name, self.heard = name, heard

    def on_reservation_changed(self, ref: Ref) -> None:
        self.heard.append(f"{self.name} {ref.key}")

    def on_node_changed(self, node: str) -> None:
        self.heard.append(f"{self.name} {node}")


class _Broken(Listener):
    def __init__(self, exc: BaseException) -> None:
        self.exc = exc

    def on_node_changed(self, node: str) -> None:  # noqa: ARG002
        raise self.exc


def raising(_: object, exc: Exception) -> None:
    raise exc


def test_every_change_of_the_protocol_is_tried() -> None:
    methods = [name for name, _ in inspect.getmembers(Listener, inspect.isfunction)]
    assert sorted(CHANGES) == [name for name in methods if name.startswith("on_")]


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_reaches_its_own_method_once(change: str) -> None:
    listeners, one = Listeners(raising), _All()
    listeners.add(one)
    getattr(listeners, change)(*CHANGES[change])
    assert one.heard == [(change, CHANGES[change])]


def test_the_listeners_are_notified_in_the_order_in_which_they_were_added() -> None:
    listeners, heard = Listeners(raising), list[str]()
    for name in ("z", "a", "m"):
        listeners.add(_Some(name, heard))
    listeners.on_reservation_changed(ref("r"))
    assert heard == ["z r", "a r", "m r"]


def test_freed_capacity_is_a_changed_node_and_backing_a_changed_reservation_unless_overridden() -> (
    None
):
    listeners, heard, one = Listeners(raising), list[str](), _All()
    listeners.add(_Some("a", heard))
    listeners.add(one)
    listeners.on_capacity_freed("worker-1")
    listeners.on_backing_changed(ref("r"))
    assert heard == ["a worker-1", "a r"]
    assert [name for name, _ in one.heard] == ["on_capacity_freed", "on_backing_changed"]


def test_an_exception_of_one_costs_no_other_and_is_reported_with_the_change() -> None:
    failed: list[tuple[object, str]] = []
    listeners = Listeners(lambda what, exc: failed.append((what, str(exc))))
    heard: list[str] = []
    for each in (_Some("a", heard), _Broken(ValueError("no")), _Some("b", heard)):
        listeners.add(each)
    listeners.on_capacity_freed("worker-1")
    assert heard == ["a worker-1", "b worker-1"]
    assert failed == [("worker-1", "no")]


@pytest.mark.parametrize("exc", [LeadershipLost("gone"), MemoryError()])
def test_what_ends_the_process_is_raised_on(exc: Exception) -> None:
    listeners = Listeners(lambda *_: None)
    listeners.add(_Broken(exc))
    with pytest.raises(type(exc)):
        listeners.on_node_changed("worker-1")
