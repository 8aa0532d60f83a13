"""AdmissionReviews of admission.k8s.io/v1: requests of API servers, and answers of webhooks."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

import msgspec

from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects.constraints import Affinity
from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import Metadata, WireStruct, decode, decode_part, encode
from reserver.k8s.objects.pod_annotations import MARKS_ANNOTATION
from reserver.k8s.objects.requests import Actuated, Requesting, request
from reserver.patches.book import NewPod, PatchVerdict, read_marks, show_marks
from reserver.patches.model import Scheduling
from reserver.printable import printable
from reserver.scheduling.resize import Subject

API_VERSION = "admission.k8s.io/v1"

_MOST_UID = 253
_WARNING_CHARACTERS = 240
"""Most characters of a warning; an API server passes on 256 (k8s.io/api/admission/v1)."""

_MESSAGE_CHARACTERS = 4_096
"""Most characters of a refusal, which may repeat names of any length."""


class _Kind(WireStruct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class ReviewRequest(WireStruct, frozen=True):
    """The request of an AdmissionReview."""

    uid: Annotated[str, msgspec.Meta(max_length=_MOST_UID)]  # The answer repeats it.
    kind: _Kind = _Kind()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = ""
    dry_run: bool | None = None
    object: msgspec.Raw = msgspec.Raw()
    old_object: msgspec.Raw = msgspec.Raw()


class _Review(WireStruct, frozen=True):
    request: ReviewRequest | None = None


class _PodMetadata(WireStruct, frozen=True):
    name: str = ""
    generate_name: str = ""
    labels: msgspec.Raw = msgspec.Raw()
    annotations: dict[str, str] | None = None


class _PodSpec(WireStruct, frozen=True):
    node_name: str = ""
    node_selector: msgspec.Raw = msgspec.Raw()
    affinity: msgspec.Raw = msgspec.Raw()
    tolerations: msgspec.Raw = msgspec.Raw()


class _SubjectMetadata(WireStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _SubjectSpec(WireStruct, frozen=True):
    node_name: str = ""


class _Subject(WireStruct, frozen=True):
    metadata: _SubjectMetadata = _SubjectMetadata()
    spec: _SubjectSpec = _SubjectSpec()


class _ResizedPod(WireStruct, frozen=True):
    MOST_BYTES = POD.object_bytes

    spec: Requesting = Requesting()
    status: Actuated = Actuated()


class CreatedPod(WireStruct, frozen=True):
    """A new pod on the wire."""

    MOST_BYTES = POD.object_bytes

    metadata: _PodMetadata = _PodMetadata()
    spec: _PodSpec = _PodSpec()

    def value(self, namespace: str) -> NewPod:
        """Return the pod as a value, in the namespace of the request.

        Raises:
            InvalidInput: a part is too long, or malformed.
        """
        metadata, spec = self.metadata, self.spec
        labels, affinity = bytes(metadata.labels), bytes(spec.affinity)
        selector, tolerations = bytes(spec.node_selector), bytes(spec.tolerations)
        _check_part("metadata.labels", labels)
        _check_part("spec", selector, affinity, tolerations)
        decode_part(Affinity, affinity, "spec.affinity")  # A merge relies on its shape.
        tolerated = decode_part(list[dict[str, Any]], tolerations, "spec.tolerations")
        return NewPod(
            namespace=namespace,
            name=metadata.name or metadata.generate_name,
            labels=decode_part(dict[str, str], labels, "metadata.labels") or {},
            scheduling=Scheduling(
                node_selector=decode_part(dict[str, str], selector, "spec.nodeSelector") or {},
                affinity=decode_part(dict[str, Any], affinity, "spec.affinity") or {},
                tolerations=tuple(tolerated or ()),
            ),
            marks=read_marks((metadata.annotations or {}).get(MARKS_ANNOTATION)),
        )


def _check_part(path: str, *parts: bytes) -> None:
    """Refuse parts of a pod that are too long in total to be compared with patches.

    Raises:
        InvalidInput: at `path`.
    """
    size = sum(map(len, parts))
    if size > POD.part_bytes:
        problem = f"{size} bytes are too many for patches"
        raise InvalidInput(path, problem, f"keep it under {POD.part_bytes}")


def read_request(body: bytes) -> ReviewRequest:
    """Return the request of an AdmissionReview.

    Raises:
        InvalidInput: the body is not an AdmissionReview with a request.
    """
    request = decode(_Review, body).request
    if request is None:
        raise InvalidInput("request", "is missing", "send an AdmissionReview of " + API_VERSION)
    return request


def subject(asked: ReviewRequest) -> Subject:
    """Return name, UID, node and revision of the pod of a resize.

    Raises:
        InvalidInput: the request is not a resize of a bound pod.
    """
    with under("request.oldObject"):
        before = decode(_Subject, asked.old_object)
    with under("request.object"):
        after = decode(_Subject, asked.object)
    metadata, node = before.metadata, before.spec.node_name
    name = PodName(metadata.namespace, metadata.name)
    is_one = metadata.uid == after.metadata.uid and node == after.spec.node_name
    is_named = name == (asked.namespace, asked.name or name.name)
    if not node or not is_one or not is_named:
        raise InvalidInput(
            "request.oldObject",
            "is not the pod that is resized, on its node",
            "send what an API server sends of pods/resize",
        )
    revision = Metadata(resource_version=metadata.resource_version).revision
    return Subject(name, metadata.uid, node, revision)


def resized(asked: ReviewRequest) -> Mapping[str, int]:
    """Return a pod's requests after a resize: the maximum of the new spec and the status.

    The status is from before the resize. Its conditions are dropped: the kubelet may have found an
    earlier resize infeasible, but checks this one anew.

    Raises:
        InvalidInput: a part is malformed.
    """
    pod = decode(_ResizedPod, asked.object)
    return request(pod.spec, msgspec.structs.replace(pod.status, conditions=None))


def answer(uid: str, warnings: Sequence[str] = (), patch: Sequence[Any] = ()) -> bytes:
    """Return an answer that allows the request.

    Args:
        uid: the UID of the request.
        warnings: the warnings for the client.
        patch: the JSON patch of the object.
    """
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(encode(patch)).decode()
    if warnings:
        response["warnings"] = [*map(_warning, warnings)]
    return _answer(response)


def _warning(text: str) -> str:
    shown = printable(shorten(text, _WARNING_CHARACTERS))
    return shorten(shown, _WARNING_CHARACTERS)


def refusal(uid: str, message: str) -> bytes:
    """Return an answer that refuses the request."""
    status = {
        "code": int(HTTPStatus.FORBIDDEN),
        "reason": "Forbidden",
        "message": printable(shorten(message, _MESSAGE_CHARACTERS)),
    }
    return _answer({"uid": uid, "allowed": False, "status": status})


def json_patch(pod: CreatedPod, before: NewPod, verdict: PatchVerdict) -> list[dict[str, Any]]:
    """Return the JSON patch for a new pod; empty if no SchedPatch changes the pod."""
    parts = (
        ("nodeSelector", before.scheduling.node_selector, verdict.scheduling.node_selector),
        ("affinity", before.scheduling.affinity, verdict.scheduling.affinity),
        ("tolerations", before.scheduling.tolerations, verdict.scheduling.tolerations),
    )
    found: list[dict[str, Any]] = [
        {"op": "add", "path": f"/spec/{name}", "value": after}
        for name, was, after in parts
        if was != after
    ]
    annotations = pod.metadata.annotations
    path = f"/metadata/annotations/{MARKS_ANNOTATION.replace('/', '~1')}"
    if verdict.marks:
        text = show_marks(verdict.marks)
        if annotations is None:
            value: Any = {MARKS_ANNOTATION: text}
            found.append({"op": "add", "path": "/metadata/annotations", "value": value})
        elif annotations.get(MARKS_ANNOTATION) != text:
            found.append({"op": "add", "path": path, "value": text})
    elif annotations is not None and MARKS_ANNOTATION in annotations:
        found.append({"op": "remove", "path": path})  # Copied from a pod that was patched.
    return found


def _answer(response: dict[str, Any]) -> bytes:
    return encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
