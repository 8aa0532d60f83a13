"""A pod that says more than is read: its request is unknown, so nobody relies on it."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from reserver.base.pacer import outcome
from reserver.errors import InvalidInput
from reserver.extender.cluster_watches import pod_view
from reserver.extender.protocol import decode_filter, decode_preempt
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import ReadEvent, decode, read_event_of
from reserver.k8s.objects.pods import PodObject
from reserver.scheduling.bind import judge_bind
from reserver.scheduling.state import State
from tests.builders import NOW, node, pod, reservation, state_of
from tests.listening import Recorded

Written = dict[str, Any]


def containers(number: int, **requests: str) -> list[Written]:
    asked = requests or {"cpu": "1m"}
    return [{"name": f"c{n}", "resources": {"requests": asked}} for n in range(number)]


def written(spec: Written, phase: str = "Running", **status: Any) -> bytes:
    metadata = {"name": "large", "namespace": "evil", "uid": "u", "resourceVersion": "7"}
    whole = {"metadata": metadata, "spec": {"nodeName": "worker-1", **spec}}
    return json.dumps(whole | {"status": {"phase": phase, **status}}).encode()


def resources(number: int) -> list[Written]:
    return containers(1, **{f"example.com/r{n:05}": "1" for n in range(number)})


BEYOND: dict[str, tuple[bytes, str]] = {
    "containers": (written({"containers": containers(POD.containers + 1)}), "spec.containers"),
    "init containers": (
        written({"initContainers": [{}] * (POD.containers + 1)}),
        "spec.initContainers",
    ),
    "statuses": (
        written({}, containerStatuses=[{"name": "c"}] * (POD.containers + 1)),
        "status.containerStatuses",
    ),
    "statuses of init containers": (
        written({}, initContainerStatuses=[{"name": "c"}] * (POD.containers + 1)),
        "status.initContainerStatuses",
    ),
    "resources": (written({"containers": resources(3_500)}), "spec"),
    "containers times resources": (
        written({"containers": containers(500, **{f"r{n}": "1" for n in range(20)})}),
        "spec",
    ),
    "overhead": (written({"overhead": {f"example.com/r{n}": "1" for n in range(4_000)}}), "spec"),
    "names": (written({"containers": [{"name": "c" * 70_000}]}), "spec"),
    "resource claims": (
        written({}, nodeAllocatableResourceClaimStatuses=[{"mapping": [{}] * 9_000}] * 3),
        "spec",
    ),
    "all": (written({"containers": [{"args": ["x" * POD.object_bytes]}]}), ""),
}


@pytest.mark.parametrize("what", BEYOND)
def test_a_pod_beyond_a_bound_is_not_read_and_told_which(what: str) -> None:
    raw, path = BEYOND[what]
    with pytest.raises(InvalidInput) as refusal:
        decode(PodObject, raw).value()
    assert refusal.value.path == path
    assert "too m" in refusal.value.problem


def test_a_pod_at_the_bound_is_read() -> None:
    said = decode(PodObject, written({"containers": containers(POD.containers)})).value()
    assert said.requests == {"cpu": POD.containers, "pods": 1}


@pytest.fixture
def state() -> State:
    state = state_of(node("worker-1", cpu="8"), node("worker-2", cpu="8"), now=NOW)
    state.ledger.put(reservation("r", owners=("owner",), node="worker-1", cpu="2"))
    return state


def allows(state: State, name: str, on: str = "worker-1") -> bool:
    return judge_bind(pod(name, cpu="1"), on, state, NOW).refusal is None


def take(state: State, raw: bytes) -> None:
    """Take a pod as a watch shows it."""
    line = b'{"type":"MODIFIED","object":' + raw + b"}"
    view = pod_view(state)
    with capture_logs():
        outcome(view.changed(read_event_of(ReadEvent[PodObject], line).object))


@pytest.mark.parametrize("what", BEYOND)
def test_beside_it_nobody_takes_what_is_held_but_who_it_is_held_for(
    what: str, state: State
) -> None:
    take(state, BEYOND[what][0])
    assert not allows(state, "stranger")
    assert allows(state, "owner")
    assert allows(state, "stranger", "worker-2")


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": containers(POD.containers + 1)},
        {"containers": [{"args": ["x" * POD.object_bytes]}]},
    ],
)
@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_once_it_has_finished_nobody_is_kept_away(phase: str, spec: Written, state: State) -> None:
    """A kubelet fails a pod without room for it; the object stays."""
    take(state, written(spec))
    assert not allows(state, "stranger")
    take(state, written(spec, phase))
    assert allows(state, "stranger")


def test_it_frees_nobody_again_and_again(state: State) -> None:
    heard = Recorded()
    state.unreadable._listener = heard
    for _ in range(3):
        take(state, BEYOND["containers"][0])
    assert not heard.freed


@pytest.mark.parametrize("read", [decode_filter, decode_preempt], ids=["Filter", "Preempt"])
def test_a_call_for_it_is_refused(read: Callable[[bytes], object]) -> None:
    large = msgspec.Raw(BEYOND["all"][0])
    call = msgspec.json.encode({"Pod": large, "NodeNames": ["worker-1"]})
    with pytest.raises(InvalidInput, match=r"Pod: .* bytes are too many"):
        read(call)
    names = ["n" * 250] * 5_000  # So many names may be as long as a pod that is.
    small = msgspec.json.encode({"Pod": {"metadata": {"name": "a", "namespace": "b"}}})
    assert read(small[:-1] + b',"NodeNames":' + msgspec.json.encode(names) + b"}")
