"""MaintenanceWindows: their forms, their refusals, and the marks on nodes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from reserver.base.schedule import MOST_CRON
from reserver.cluster.node import LIFECYCLE, NodeCondition
from reserver.errors import InvalidInput
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.schedules import ScheduleFields
from reserver.maintenance import codec
from reserver.maintenance.codec import WindowObject, read_object
from reserver.maintenance.decide import NodeGoal, NodeLifecycle, NodeProgress
from reserver.maintenance.model import (
    DEFAULT_DRAIN_S,
    REASON,
    MostUnavailable,
    NodePhase,
    ObservedNode,
    Window,
    WindowPhase,
    WindowUse,
    read_uses,
    show_uses,
)
from reserver.maintenance.node_writes import conditions, is_due
from reserver.maintenance.observe import KnownWindows, observed

CRD = Path(__file__).parents[3] / "scheduler-config/components/maintenance/crd.yaml"
SPEC = {"start": "2030-01-01T22:00:00+01:00", "end": "2030-01-02T00:00:00Z", "nodes": ["a"]}

NIGHTLY = {"cron": "0 22 * * *", "duration": "2h", "timeZone": "Europe/Berlin"}
YEARLY = NIGHTLY | {"cron": "0 22 1 1 *"}
TIMELESS = {"start": None, "end": None}


def item(name: str = "w", revision: int = 1, **spec: Any) -> WindowObject:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(revision)}
    return decode(WindowObject, encode({"metadata": metadata, "spec": SPEC | spec}))


def read(**spec: Any) -> Window:
    return read_object(item(**spec))


def test_a_window_says_when_and_which_nodes() -> None:
    window = read()
    assert window.period.end - window.period.start == 3 * 3600
    assert (window.drain_s, window.most_unavailable) == (DEFAULT_DRAIN_S, MostUnavailable(1))
    assert window.key == f"uid-w.{int(window.period.start)}"
    assert window.has("a", {})
    assert not window.has("b", {"zone": "a"})
    zone = read(nodeSelector={"matchExpressions": [{"key": "zone", "operator": "Exists"}]})
    assert zone.has("b", {"zone": "a"})
    assert read(nodes=[], nodeSelector={}).has("b", {})
    assert read(maxUnavailable="10%").most_unavailable.of(50) == 5
    assert read(maxUnavailable="10%").most_unavailable.of(5) == 1


def test_a_window_that_comes_again_is_at_each_moment_the_one_under_way_or_the_next() -> None:
    until = {"until": "2030-01-03T12:00:00+01:00"}
    window = read(**TIMELESS, schedule=NIGHTLY | until)
    assert codec.phase_of(window, read().period.start) is WindowPhase.OVER
    start, end = read().period.start, read().period.start + 7_200
    for now in (start - 3_600, start, end - 1):
        assert window.at(now).period == (start, end)
        assert window.at(now).key == f"uid-w.{int(start)}"
    following = window.at(end)
    assert following.period == (start + 86_400, end + 86_400)
    assert following.key != window.at(start).key
    last = window.at(following.period.end)
    assert codec.phase_of(last, following.period.end) is WindowPhase.OVER
    assert codec.show_status(last, following.period.end, (), 1).start == ""
    assert read().at(end) == read()


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("spec.start", {"start": None}),
        ("spec.end", {"end": None}),
        ("spec.schedule", {"schedule": NIGHTLY}),
        ("spec.schedule.cron", TIMELESS | {"schedule": NIGHTLY | {"cron": "nightly"}}),
        ("spec.schedule.duration", TIMELESS | {"schedule": NIGHTLY | {"duration": "59s"}}),
        ("spec.schedule.duration", TIMELESS | {"schedule": NIGHTLY | {"duration": "25h"}}),
        ("spec.schedule.duration", TIMELESS | {"schedule": YEARLY | {"duration": "721h"}}),
        ("spec.schedule.timeZone", TIMELESS | {"schedule": NIGHTLY | {"timeZone": "Mars"}}),
        (
            "spec.schedule.until",
            TIMELESS | {"schedule": NIGHTLY | {"until": "1970-01-01T00:00:00Z"}},
        ),
        ("spec.schedule", TIMELESS | {"schedule": NIGHTLY | {"lead": "1h"}}),
        ("spec.schedule", TIMELESS | {"schedule": [NIGHTLY]}),
        ("spec.nodes", {"nodes": []}),
        ("spec.nodes[0]", {"nodes": ["A b"]}),
        ("spec.nodes", {"nodes": ["a"] * (codec.MOST_NODES + 1)}),
        ("spec.start", {"start": "tomorrow"}),
        ("spec.end", {"end": "2030-01-01T21:00:00Z"}),
        ("spec.end", {"end": "2030-02-01T00:00:00Z"}),
        ("spec.drainBefore", {"drainBefore": "1 hour"}),
        ("spec.drainBefore", {"drainBefore": "169h"}),
        ("spec.maxUnavailable", {"maxUnavailable": 0}),
        ("spec.maxUnavailable", {"maxUnavailable": "0%"}),
        ("spec.maxUnavailable", {"maxUnavailable": "101%"}),
        ("spec.maxUnavailable", {"maxUnavailable": "some"}),
        ("spec.maxUnavailable", {"maxUnavailable": True}),
        ("spec.nodeSelector", {"nodeSelector": {"matchLabels": {str(n): "" for n in range(17)}}}),
        (
            "spec.nodeSelector.matchExpressions",
            {"nodeSelector": {"matchExpressions": [{"key": "zone", "operator": "In"}]}},
        ),
        (
            "spec.nodeSelector.matchExpressions[0]",
            {
                "nodeSelector": {
                    "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"] * 65}]
                }
            },
        ),
        ("spec", {"unknown": 1}),
        ("spec", {"nodes": ["a" * 300_000]}),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_path(path: str, spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as found:
        read(**spec)
    assert found.value.path == path
    assert found.value.remedy


def test_the_schema_states_the_same_bounds() -> None:
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    spec, status = schema["spec"]["properties"], schema["status"]["properties"]
    assert set(spec) == {field.encode_name for field in _fields(codec._Spec)}
    assert spec["nodes"]["maxItems"] == codec.MOST_NODES
    assert status["nodes"]["maxItems"] == codec.MOST_SHOWN
    selector = spec["nodeSelector"]["properties"]
    assert selector["matchLabels"]["maxProperties"] == codec.MOST_TERMS
    assert selector["matchExpressions"]["maxItems"] == codec.MOST_TERMS
    values = selector["matchExpressions"]["items"]["properties"]["values"]
    assert values["maxItems"] == codec.MOST_VALUES
    assert spec["maxUnavailable"]["default"] == 1
    assert set(status) == {field.encode_name for field in _fields(codec.WindowStatusObject)}
    schedule = spec["schedule"]["properties"]
    assert set(schedule) == {field.encode_name for field in _fields(ScheduleFields)}
    assert schedule["cron"]["maxLength"] == MOST_CRON


def _fields(kind: Any) -> Any:
    return msgspec.structs.fields(kind)


def test_a_status_lists_first_what_is_being_maintained() -> None:
    progress = [NodeProgress(f"n{n:04}", NodePhase.WAITING, "too many") for n in range(500)]
    progress.append(NodeProgress("z", NodePhase.DRAINING, "1 pod is left"))
    window = read()
    start, end = window.period
    status = codec.show_status(window, start, progress, 3)
    assert status.phase == WindowPhase.ACTIVE
    assert (status.start, status.end) == ("2030-01-01T21:00:00Z", "2030-01-02T00:00:00Z")
    assert len(status.nodes) == codec.MOST_SHOWN
    assert status.nodes[0].name == "z"
    assert (status.message, status.progress) == ("500 Waiting, 1 Draining", "0/501")
    assert codec.show_status(window, 0.0, (), 1).message == "no node is selected"
    assert codec.show_status(window, end, (), 1).phase == WindowPhase.OVER


def test_windows_beyond_the_bound_are_refused_and_an_old_answer_changes_nothing() -> None:
    windows = KnownWindows(lambda: None)
    for number in range(codec.MOST_WINDOWS + 1):
        windows.put(item(f"w{number}", revision=5))
    refused = [known for known in windows if known.problem]
    assert [known.metadata.name for known in refused] == [f"w{codec.MOST_WINDOWS}"]
    windows.put(item("w0", revision=4, nodes=["b"]))
    assert next(iter(windows)).window == read_object(item("w0"))
    windows.put(item("w0", revision=6, start=""))
    unread = {known.metadata.name for known in windows if known.window is None}
    assert unread == {"w0", f"w{codec.MOST_WINDOWS}"}


def test_a_node_says_who_has_it_in_hand_and_nonsense_is_ignored() -> None:
    uses = {"b.2": WindowUse.DONE, "a.1": WindowUse.CORDONED}
    assert show_uses(uses) == "cordoned:a.1 done:b.2"
    annotations = {"reserver.io/maintenance": f"{show_uses(uses)} what: ever:x cordoned: "}
    ready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    raw = {
        "metadata": {"name": "a", "annotations": annotations},
        "status": {"conditions": [ready, {"type": "DiskPressure", "status": "False"}]},
    }
    node = decode(NodeObject, encode(raw)).value()
    assert read_uses(node) == uses
    assert set(node.conditions) == {"Ready"}
    found = observed(node, None)
    assert (found.holder, found.is_ready) == ("a.1", False)
    assert found.not_ready_since == 1_893_456_000.0
    odd = {"type": "Ready", "status": "False", "lastTransitionTime": "x"}
    strange = decode(NodeObject, encode({"status": {"conditions": [odd]}})).value()
    assert observed(strange, None).not_ready_since is None


OURS = {"type": "Drained", "status": "True", "reason": REASON, "message": "w"}
THEIRS = {"type": "DrainInProgress", "status": "True", "reason": "Kubectl", "x": 1}
READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "h"}


def test_conditions_of_others_stay_and_those_that_are_ours_come_and_go() -> None:
    every = NodeLifecycle(frozenset(LIFECYCLE), "w")
    after = conditions([READY, THEIRS, OURS], every, 0.0)
    assert after[:2] == [READY, THEIRS]
    assert [each["type"] for each in after[2:]] == [
        "MaintenancePlanned",
        "Drained",
        "MaintenanceInProgress",
    ]
    assert {each["lastTransitionTime"] for each in after[2:]} == {"1970-01-01T00:00:00Z"}
    assert conditions(after, every, 99.0) == after
    assert conditions(after, NodeLifecycle(), 0.0) == [READY, THEIRS]
    lifted = THEIRS | {"status": "False"}
    assert len(conditions([lifted], NodeLifecycle(frozenset({"DrainInProgress"}), "w"), 0.0)) == 1


def test_a_node_is_written_only_if_it_differs() -> None:
    goal = NodeGoal(
        {"a": WindowUse.CORDONED}, cordon=True, lifecycle=NodeLifecycle(frozenset({"Drained"}), "w")
    )
    seen = ObservedNode(
        name="n",
        is_cordoned=True,
        uses={"a": WindowUse.CORDONED},
        conditions={"Drained": NodeCondition("True", REASON)},
    )
    assert not is_due(goal, seen)
    assert is_due(goal._replace(cordon=False), seen)
    assert is_due(goal._replace(uses={}), seen)
    assert is_due(goal._replace(lifecycle=NodeLifecycle()), seen)
    both = goal._replace(lifecycle=NodeLifecycle(frozenset({"Drained", "DrainInProgress"})))
    assert is_due(both, seen)
    theirs = ObservedNode(name="n", conditions={"Drained": NodeCondition("True", "other")})
    assert not is_due(NodeGoal({}, None, NodeLifecycle(frozenset({"Drained"}))), theirs)
