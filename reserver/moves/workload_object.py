"""Reads controllers of pods: their desired replicas, and their failures to create pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reserver.cluster.quantity import shorten
from reserver.k8s.objects.limits import Int32
from reserver.k8s.objects.objects import WireStruct, decode

PATHS: Mapping[str, str] = {
    "ReplicaSet": "/apis/apps/v1/namespaces/{namespace}/replicasets/{name}",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs/{name}",
}
"""The paths of controllers by kind; for other kinds their scale is read (`workloads.Scales`)."""

_MOST_SAID = 300
"""Most characters of a failure that a message repeats."""


class WantedPods(NamedTuple):
    """The desired pods of a controller.

    Attributes:
        replicas: the desired replicas; None if the object has no such field.
        failure: why it could not create a pod, in the API server's words; may be empty. Only
            ReplicaSets report it.
    """

    replicas: int | None
    failure: str = ""


class _Spec(WireStruct, frozen=True):
    replicas: Int32 | None = None


class _Condition(WireStruct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(WireStruct, frozen=True):
    conditions: list[_Condition] | None = None


class _Metadata(WireStruct, frozen=True):
    deletion_timestamp: str | None = None


class _Controller(WireStruct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def read_wanted(raw: bytes) -> WantedPods:
    """Return the desired pods of a controller: 0 for one that has ended, or is being deleted.

    Raises:
        InvalidInput: `raw` is malformed; the error carries the path.
    """
    found = decode(_Controller, raw)
    has_ended = any(
        each.type in {"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"}
        and each.status == "True"
        for each in found.status.conditions or ()
    )
    if has_ended or found.metadata.deletion_timestamp is not None:
        return WantedPods(0)
    failures = [
        each.message
        for each in found.status.conditions or ()
        if each.type == "ReplicaFailure" and each.status == "True"
    ]
    return WantedPods(found.spec.replicas, shorten(failures[0], _MOST_SAID) if failures else "")
