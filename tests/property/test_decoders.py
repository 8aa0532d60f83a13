"""Whatever is sent or written: it is read, or refused with InvalidInput, and nothing else."""

import functools
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref
from reserver.wire import document, edits
from reserver.wire.extender import decode_bind, decode_filter
from reserver.wire.nodes import NodeObject
from reserver.wire.objects import ConfigMapObject, decode, encode
from reserver.wire.pods import PodObject
from reserver.wire.storage import ClaimObject, StorageClassObject, VolumeObject
from reserver.wire.store import Entries, read_key
from reserver.wire.watch import ObjectList, PartialObject, Status, WatchEvent

SEEN = 1_900_000_000.0

numbers = st.integers() | st.floats() | st.sampled_from([0, -1, 2**53, 2**64, 10**30, 1e308])
quantities = st.from_regex(r"[+-]?[0-9]{0,5}\.?[0-9]{0,3}([numkMGTPE]i?|[eE][+-]?[0-9]{1,3})?")
moments = st.sampled_from(
    ["2030-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1h", "9" * 9 + "h"]
)
texts = st.text(max_size=12) | quantities | moments | st.sampled_from(["a", "Require", ""])
scalars = st.none() | st.booleans() | numbers | texts
anything = scalars | st.lists(scalars, max_size=3) | st.dictionaries(texts, scalars, max_size=3)

Path = tuple[str | int, ...]


def paths(shape: object) -> list[Path]:
    """Return the way to each value in a document."""
    found: list[Path] = [()]
    if isinstance(shape, dict | list):
        fields = shape.items() if isinstance(shape, dict) else enumerate(shape)
        found += [(key, *rest) for key, value in fields for rest in paths(value)]
    return found


def exchanged(shape: object, path: Path, value: object) -> object:
    """Return a document with another value at a path; the same one without the path."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(shape, dict) and key in shape:
        return shape | {key: exchanged(shape[key], rest, value)}
    if isinstance(shape, list) and isinstance(key, int) and key < len(shape):
        return [*shape[:key], exchanged(shape[key], rest, value), *shape[key + 1 :]]
    return shape


@st.composite
def nearly(draw: st.DrawFn, shape: object) -> object:
    """Return a document in which up to three values were exchanged for anything."""
    ways = st.sampled_from(paths(shape))
    for path, value in draw(st.lists(st.tuples(ways, anything), max_size=3)):
        shape = exchanged(shape, path, value)
    return shape


AMOUNTS = {"cpu": "100m", "memory": "1Gi", "pods": 3, "nvidia.com/gpu": 1}
RESOURCES = {"requests": AMOUNTS, "limits": AMOUNTS}
TERM = {
    "labelSelector": {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}],
    },
    "namespaceSelector": {},
    "namespaces": ["shop"],
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "maxSkew": 1,
    "minDomains": 2,
    "matchLabelKeys": ["app"],
}
NODE_TERMS = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}],
        }
    ]
}
METADATA = {
    "name": "web-0",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "7",
    "annotations": {"reserver.io/claims": '["a"]', "pv.kubernetes.io/bind-completed": "yes"},
    "continue": "x",
    "labels": {"app": "web", "topology.kubernetes.io/zone": "a__b"},
    "ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": True}],
    "deletionTimestamp": "2030-01-01T00:00:00Z",
}
PORTS = [{"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "TCP"}]
CONTAINER = {"name": "web", "restartPolicy": "Always", "resources": RESOURCES, "ports": PORTS}
STATUS = {"name": "web", "allocatedResources": AMOUNTS, "resources": RESOURCES}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
POD = {
    "metadata": METADATA,
    "spec": {
        "nodeName": "worker-1",
        "priority": 7,
        "containers": [CONTAINER],
        "initContainers": [CONTAINER],
        "resources": RESOURCES,
        "overhead": AMOUNTS,
        "affinity": {
            "nodeAffinity": PREFERRED | {REQUIRED: NODE_TERMS},
            "podAffinity": PREFERRED,
            "podAntiAffinity": {REQUIRED: [TERM]},
        },
        "topologySpreadConstraints": [TERM],
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}, "ephemeral": {}}],
    },
    "status": {
        "phase": "Running",
        "nominatedNodeName": "worker-1",
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
        "containerStatuses": [STATUS],
        "initContainerStatuses": [STATUS],
        "allocatedResources": AMOUNTS,
        "resources": RESOURCES,
    },
}
NODE = {
    "metadata": METADATA,
    "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "unschedulable": True},
    "status": {"allocatable": AMOUNTS},
}
CLAIM = {
    "metadata": METADATA,
    "spec": {"volumeName": "pv", "storageClassName": "a", "accessModes": ["ReadWriteOncePod"]},
    "status": {"phase": "Bound"},
}
VOLUME = {"metadata": METADATA, "spec": {"nodeAffinity": {"required": NODE_TERMS}}}
CLASS = {"metadata": METADATA, "volumeBindingMode": "Immediate"}
CONFIGMAP = {"metadata": METADATA, "data": {"web": "x"}}
FILTER = {"Pod": POD, "NodeNames": ["worker-1"], "Nodes": None}
BIND = {"PodName": "a", "PodNamespace": "b", "PodUID": "c", "Node": "d"}
EVENT = {"type": "ADDED", "object": POD}
LIST = {"metadata": METADATA, "items": [POD]}
FAILURE = {"code": 410, "reason": "Expired", "message": "too old"}
ITEMS = [
    {"pod": "web-0", "namespace": "shop", "cpu": 1, "mem": 1, "expire": 1899999999},
    {
        "reservingPod": "a",
        "reservingPodNamespace": "b",
        "cpuMilli": 1,
        "memMilli": 1,
        "expireAt": "2030-01-01T00:00:00Z",
    },
]
SPEC = {
    "owners": [{"pod": {"name": "web-0", "namespace": "shop"}}],
    "resources": AMOUNTS,
    "node": "worker-1",
    "slots": 2,
    "startsAt": "2029-01-01T00:00:00Z",
    "expiresAt": "2030-01-01T00:00:00Z",
    "ttl": "1h",
    "policy": "Require",
    "reusable": False,
}


def read_pod(raw: bytes) -> object:
    return decode(PodObject, raw).value()


def read_node(raw: bytes) -> object:
    return decode(NodeObject, raw).value()


def read_configmap(raw: bytes) -> object:
    configmap = decode(ConfigMapObject, raw)
    for key, text in (configmap.data or {}).items():
        check(read_key(Ref("shop", "store", key), text, SEEN))
    return configmap


def read_filter(raw: bytes) -> object:
    pod, names = decode_filter(raw)
    assert all(isinstance(name, str) for name in names)
    return pod.value()


def read_event(raw: bytes) -> object:
    event = decode(WatchEvent, raw)
    kinds: tuple[type, ...] = (PodObject, NodeObject, ConfigMapObject, PartialObject, Status)
    for kind in kinds:
        try_to(functools.partial(decode, kind), event.object)
    return event.type


def read_list(raw: bytes) -> object:
    page = decode(ObjectList, raw)
    for item in page.items or ():
        try_to(lambda item: decode(PodObject, item).value(), item)
    return page.metadata.continue_


DECODERS: dict[str, tuple[Callable[[bytes], object], object]] = {
    "pod": (read_pod, POD),
    "node": (read_node, NODE),
    "claim": (lambda raw: decode(ClaimObject, raw).value(), CLAIM),
    "volume": (lambda raw: decode(VolumeObject, raw).value(), VOLUME),
    "storage class": (lambda raw: decode(StorageClassObject, raw).value(), CLASS),
    "configmap": (read_configmap, CONFIGMAP),
    "filter": (read_filter, FILTER),
    "bind": (decode_bind, BIND),
    "watch event": (read_event, EVENT),
    "list": (read_list, LIST),
    "status": (lambda raw: decode(Status, raw), FAILURE),
}
decoders = pytest.mark.parametrize(("read", "shape"), DECODERS.values(), ids=DECODERS.keys())


def try_to(read: Callable[[Any], object], raw: bytes | msgspec.Raw) -> None:
    try:
        read(raw)
    except InvalidInput as exc:
        check_refusal(exc)


def check_refusal(error: InvalidInput) -> None:
    assert error.problem
    assert error.remedy
    assert len(str(error)) < 2000
    encode(str(error))  # It ends up in an event, an answer or a log.


@decoders
@given(data=st.data())
def test_objects_that_are_nearly_right_are_read_or_refused(
    read: Callable[[bytes], object], shape: object, data: st.DataObject
) -> None:
    try_to(read, json.dumps(data.draw(nearly(shape))).encode())


@decoders
@given(data=st.data())
def test_objects_that_are_cut_or_changed_by_some_bytes_are_read_or_refused(
    read: Callable[[bytes], object], shape: object, data: st.DataObject
) -> None:
    raw = json.dumps(shape).encode()
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, len(raw)))
    try_to(read, raw[:start] + data.draw(st.binary(max_size=6)) + raw[end:])


@decoders
@given(raw=st.binary(max_size=200))
def test_bytes_are_read_or_refused(
    read: Callable[[bytes], object], shape: object, raw: bytes
) -> None:
    del shape
    try_to(read, raw)


specs = nearly(SPEC)
items = st.lists(st.sampled_from(ITEMS).flatmap(nearly), max_size=4)
yaml_texts = st.text(st.sampled_from("ab:-?&*!|>%@[]{},#'\"\\ \t\n0159.exn~<="), max_size=40)
written = st.one_of(
    (specs | items).map(json.dumps),
    specs.map(lambda spec: "---\n" + json.dumps(spec)),
    yaml_texts,
    st.text(max_size=40),
)
keys = st.sampled_from(["web", "worker-1", "Web", ""])


def check(entries: Entries) -> None:
    for problem in entries.problems:
        check_refusal(problem.error)
    for reservation in entries.reservations:
        assert reservation.owners
        assert reservation.node
        assert reservation.slots >= 1
        assert all(0 < amount <= 2**53 for amount in reservation.resources.values())


@given(key=keys, text=written)
def test_whatever_is_written_into_the_store_is_enforced_or_refused(key: str, text: str) -> None:
    check(read_key(Ref("shop", "store", key), text, SEEN))


@given(text=written, data=st.data())
def test_a_value_changed_by_some_characters_is_enforced_or_refused(
    text: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(text)))
    changed = text[:at] + data.draw(yaml_texts | st.text(max_size=4)) + text[at + 1 :]
    check(read_key(Ref("shop", "store", "web"), changed, SEEN))


@given(text=yaml_texts | st.text())
def test_text_is_a_value_or_is_refused(text: str) -> None:
    try_to(lambda raw: document.parse(raw.decode()), text.encode())


@given(written=items, after=st.sets(st.integers(0, 10)))
def test_removing_what_is_over_changes_nothing_else(written: list[Any], after: set[int]) -> None:
    ref = Ref("shop", "store", "worker-1")
    text = json.dumps(written)
    before = read_key(ref, text, SEEN)
    over = {r.ref for number, r in enumerate(before.reservations) if number in after}
    if not before.reservations:
        return
    edit = edits.remove(ref, text, lambda reservation: reservation.ref in over)
    if edit is None:
        assert not over
        return
    encode(edit.patch())
    entries = read_key(ref, edit.value or "[]", SEEN)
    assert entries.reservations == tuple(r for r in before.reservations if r.ref not in over)


@given(written=specs)
def test_a_stamp_changes_nothing_but_that_it_is_written_down(written: Any) -> None:
    ref = Ref("shop", "store", "web")
    for text in (json.dumps(written), "---\n" + json.dumps(written, indent=1)):
        before = read_key(ref, text, SEEN)
        if before.unstamped:
            edit = edits.stamp(ref, text, before.reservations[0])
            if edit is not None:
                encode(edit.patch())
                after = read_key(ref, edit.value or "", SEEN + 100_000)
                assert after.reservations == before.reservations
