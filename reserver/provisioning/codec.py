"""The codec of ProvisioningRequests of autoscaling.x-k8s.io/v1, and of their conditions.

Upstream's types: provisioningrequest/autoscaling.x-k8s.io/v1/types.go in
k8s.io/autoscaler/cluster-autoscaler/apis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import TENANT, Int32, check_count, check_number
from reserver.k8s.objects.objects import (
    Condition,
    CustomResource,
    Metadata,
    WireStruct,
    decode,
    decode_or_none,
)
from reserver.k8s.objects.objects import ConditionWriter as Saying
from reserver.k8s.objects.pod_annotations import PROVISIONING_CLASS
from reserver.k8s.objects.times import parse_duration
from reserver.provisioning.model import (
    DEFAULT_VALID_S,
    MOST_POD_SETS,
    MOST_VALID_S,
    ConditionChange,
    Kind,
    PodSet,
    ProvisioningRequest,
)

API_VERSION = "autoscaling.x-k8s.io/v1"
KIND = "ProvisioningRequest"
COLLECTION = f"/apis/{API_VERSION}/provisioningrequests"
"""The path of all ProvisioningRequests of a cluster."""

MOST_BYTES = 16_384
"""Most bytes of a spec: 32 podSets with the longest names are shorter."""

_VALID_FOR, _NO_RETRY = "validFor", "noRetry"
_MOST_CONDITIONS = 32
_MOST_SAID = 1_000
"""Most characters of a written message."""


class _Template(WireStruct, frozen=True):
    name: str = ""


class _PodSet(WireStruct, frozen=True):
    pod_template_ref: _Template = _Template()
    count: Int32 = 0


class _Spec(WireStruct, frozen=True):
    pod_sets: tuple[_PodSet, ...] = ()
    provisioning_class_name: str = ""
    parameters: dict[str, str] | None = None


class _Class(WireStruct, frozen=True):
    provisioning_class_name: str = ""


class _Status(WireStruct, frozen=True):
    conditions: list[Condition] | None = None


class RequestObject(CustomResource, frozen=True):
    """A ProvisioningRequest on the wire."""

    @property
    def name(self) -> PodName:
        """Namespace and name."""
        return PodName(self.metadata.namespace, self.metadata.name)

    @property
    def is_ours(self) -> bool:
        """Whether the request has Reserver's class."""
        written = decode_or_none(_Class, self.spec)
        return written is not None and written.provisioning_class_name == PROVISIONING_CLASS

    def conditions(self) -> tuple[Condition, ...]:
        """Return the first conditions of the status, Reserver's before those of others.

        Empty without any, or if they are invalid.
        """
        status = decode_or_none(_Status, self.status) or _Status()
        found = sorted(status.conditions or (), key=lambda each: each.type not in set(Kind))
        return tuple(found[:_MOST_CONDITIONS])


def path(name: PodName) -> str:
    """Return the path of a ProvisioningRequest."""
    return f"/apis/{API_VERSION}/namespaces/{name.namespace}/provisioningrequests/{name.name}"


def owner_reference(request: ProvisioningRequest) -> dict[str, object]:
    """Return the owner reference by which a request's Reservations are deleted with it."""
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": request.name.name}
    return {**owner, "uid": request.uid, "controller": True, "blockOwnerDeletion": False}


def read_object(item: RequestObject) -> ProvisioningRequest:
    """Return a ProvisioningRequest of Reserver's class with its conditions.

    An invalid request has a `problem`. Its podSets are kept if they are valid: the names of its
    Reservations follow from them, and these may have been written by a newer version.
    """
    request = ProvisioningRequest(
        name=item.name, uid=item.metadata.uid, said=_said(item.conditions())
    )
    try:
        check_number(len(item.spec), "", MOST_BYTES, "bytes")
        spec = decode(_Spec, item.spec)
        request = replace(request, pod_sets=tuple(_pod_sets(spec.pod_sets)))
        valid_s, retries = _parameters(spec.parameters or {})
    except InvalidInput as exc:
        return replace(request, problem=str(of_request(exc.under("spec"))))
    return replace(request, valid_s=valid_s, retries=retries)


def of_request(error: InvalidInput, path: str = "") -> InvalidInput:
    """Return an error of a reservation's field in the terms of a request.

    Args:
        path: the field of the request; empty to keep the error's path.
    """
    remedy = error.remedy.replace("several reservations", "several requests")
    return InvalidInput(path or error.path, error.problem, remedy)


def _pod_sets(written: Sequence[_PodSet]) -> Iterator[PodSet]:
    check_count(written, "podSets", MOST_POD_SETS)
    if not written:
        raise InvalidInput("podSets", "is empty", "name a PodTemplate, and how many pods come")
    for index, each in enumerate(written):
        path = f"podSets[{index}]"
        name = each.pod_template_ref.name
        names.check_subdomain(name, f"{path}.podTemplateRef.name", "a PodTemplate's name")
        if not 1 <= each.count <= TENANT.slots:
            remedy = f"write 1 to {TENANT.slots}, or several podSets"
            raise InvalidInput(f"{path}.count", f"{each.count} is out of range", remedy)
        yield PodSet(name, each.count)


def _parameters(written: Mapping[str, str]) -> tuple[float, bool]:
    """Return the seconds for which a booking is valid, and whether the request waits for room."""
    for name in written.keys() - {_VALID_FOR, _NO_RETRY}:
        problem = f"{PROVISIONING_CLASS} has no such parameter"
        remedy = f"remove it; there are {_VALID_FOR} and {_NO_RETRY}"
        raise InvalidInput(f"parameters.{shorten(name)}", problem, remedy)
    no_retry = written.get(_NO_RETRY, "false")
    if no_retry not in {"true", "false"}:
        problem = f"{shorten(no_retry)!r} is neither true nor false"
        raise InvalidInput(f"parameters.{_NO_RETRY}", problem, 'write "true" or "false"')
    return _valid_s(written.get(_VALID_FOR)), no_retry == "false"


def _valid_s(text: str | None) -> float:
    if text is None:
        return DEFAULT_VALID_S
    path = f"parameters.{_VALID_FOR}"
    with under(path):
        seconds = parse_duration(text)
    if not 1 <= seconds <= MOST_VALID_S:
        raise InvalidInput(path, f"{shorten(text)} is out of range", "write 1s to 720h")
    return seconds


def _said(conditions: Iterable[Condition]) -> dict[Kind, ConditionChange]:
    ours = {kind.value: kind for kind in Kind}
    return {
        ours[each.type]: ConditionChange(
            ours[each.type], each.reason, each.message, each.status == "True"
        )
        for each in conditions
        if each.type in ours
    }


def show_conditions(
    said: Mapping[Kind, ConditionChange], before: Iterable[Condition], generation: int, now: float
) -> list[Condition]:
    """Return the conditions to write at `now` (unix seconds).

    Conditions of other kinds, from other clients, stay.
    """
    before = tuple(before)
    saying = Saying(before, generation, now)
    ours = [
        saying.condition(each.kind, each.reason, each.message[:_MOST_SAID], holds=each.holds)
        for each in said.values()
    ]
    return [*(each for each in before if each.type not in set(Kind)), *ours]


def status_patch(metadata: Metadata, conditions: list[Condition]) -> dict[str, object]:
    """Return the merge patch that writes conditions, with the read version as precondition."""
    version = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    return {"metadata": version, "status": {"conditions": conditions}}
