"""Readers of SchedPatches, and of what API servers ask webhooks."""

from __future__ import annotations

from hack.fuzz.checks import SEEN, Fault
from hack.fuzz.shapes import METADATA, Document
from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.pod_annotations import MARKS_ANNOTATION
from reserver.patches import codec, status_codec
from reserver.patches.book import Book, NewPod, PatchEntry
from reserver.patches.model import Conflict, Scheduling, merged
from reserver.patches.slots import PatchSlots
from reserver.webhook import review

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TERM: Document = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
_NEAR: Document = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
_SCHEDULING: Document = {
    "nodeSelector": {"disk": "ssd"},
    "affinity": {
        "nodeAffinity": {
            _REQUIRED: {"nodeSelectorTerms": [_TERM, _TERM]},
            _PREFERRED: [{"weight": 5, "preference": _TERM}],
        },
        "podAntiAffinity": {
            _REQUIRED: [_NEAR],
            _PREFERRED: [{"weight": 100, "podAffinityTerm": _NEAR}],
        },
    },
    "tolerations": [
        {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    ],
}

PATCH: Document = {
    "metadata": METADATA | {"creationTimestamp": "2030-01-01T00:00:00Z", "generation": 2},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}, **_TERM},
        "maxCount": 3,
        "ttl": "1h",
        **_SCHEDULING,
    },
    "status": {
        "observedGeneration": 2,
        "patchedPods": 2,
        "slots": {
            "spent": "0-1,4",
            "stocks": [{"by": "one/0", "slots": "2", "revoked": True}],
        },
        "conditions": [
            {
                "type": "Active",
                "status": "True",
                "reason": "Patching",
                "message": "",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
                "observedGeneration": 2,
            }
        ],
    },
}

ADMISSION: Document = {
    "request": {
        "uid": "u",
        "namespace": "shop",
        "dryRun": False,
        "object": {
            "metadata": {
                "generateName": "web-",
                "labels": {"app": "web"},
                "annotations": {MARKS_ANNOTATION: '["fast/uid/3"]'},
            },
            "spec": _SCHEDULING,
        },
    }
}

_INJECTED = Scheduling(
    node_selector={"disk": "ssd", "zone": "a"},
    affinity=_SCHEDULING["affinity"],
    tolerations=({"key": "spot", "operator": "Exists"},),
)


def read_patch(raw: bytes) -> object:
    """Read a SchedPatch and its status, hand out a slot, say so, and patch a pod twice with it."""
    item = decode(codec.PatchObject, raw)
    before = status_codec.read_status(item.status)
    record = status_codec.read_record(before)
    try:
        patch = codec.read_object(item)
    except InvalidInput as exc:
        encode(status_codec.show_invalid(exc, before, item.metadata, SEEN))
        raise
    entry = PatchEntry(patch, PatchSlots("two", patch.max_count))
    entry.slots.recorded(record, item.metadata.revision, SEEN, inherits=True)
    wanted = entry.slots.wanted(SEEN, is_over=False)
    shown = status_codec.show_status(entry, wanted, before, item.metadata, SEEN)
    if status_codec.read_record(decode(status_codec.PatchStatus, encode(shown))) != wanted:
        raise Fault(f"a record is not what was written: {shown}")
    encode(status_codec.patch_body(shown, item.metadata))
    once = merged(Scheduling(), patch.injected)
    if isinstance(once, Conflict) or len(wanted.spent) > patch.max_count + len(record.spent):
        raise Fault(f"does not fit a pod that says nothing: {once}")
    return shown


def read_admission(raw: bytes) -> object:
    """Read what an API server asks about a pod, patch it, and answer."""
    asked = review.read_request(raw)
    created = decode(review.CreatedPod, asked.object)
    pod: NewPod = created.value(asked.namespace)
    verdict = Book("one", lambda _: None).decide(pod, SEEN, is_dry_run=bool(asked.dry_run))
    found = merged(pod.scheduling, _INJECTED)
    operations = review.json_patch(created, pod, verdict)
    return review.answer(asked.uid, [str(found)], operations)
