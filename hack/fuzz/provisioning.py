"""Readers of ProvisioningRequests and of the PodTemplates that they name."""

from __future__ import annotations

from hack.fuzz.checks import LONGEST, SEEN, Fault, check_refusal
from hack.fuzz.shapes import METADATA, POD, Document
from reserver.base.pacer import outcome
from reserver.errors import InvalidInput
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import TENANT
from reserver.k8s.objects.objects import decode, encode
from reserver.provisioning import codec, template
from reserver.provisioning.decide import BookingObservation, BookingState, NoBooking, advance
from reserver.provisioning.model import MOST_VALID_S, ConditionReason, ProvisioningRequest
from reserver.provisioning.observe import KnownRequests, refs
from reserver.stores.codec import spec_codec

_CONDITION: Document = {
    "type": "Provisioned",
    "status": "False",
    "reason": "CapacityIsNotFound",
    "message": "none",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
    "observedGeneration": 1,
}

REQUEST: Document = {
    "metadata": METADATA | {"name": "job", "uid": "0b5e1c9a-4d53", "generation": 2},
    "spec": {
        "provisioningClassName": "hold.reserver.io",
        "podSets": [
            {"podTemplateRef": {"name": "worker"}, "count": 2},
            {"podTemplateRef": {"name": "driver"}, "count": 1},
        ],
        "parameters": {"validFor": "1h30m", "noRetry": "true"},
    },
    "status": {"conditions": [_CONDITION, _CONDITION | {"type": "Theirs"}]},
    "template": {"spec": POD["spec"]},
}
"""A request and, which the API server never shows as one, the template of all its podSets."""


def read_request(raw: bytes) -> object:
    """Read a request, say what becomes of it at each step, and hold what its template asks for."""
    item = decode(codec.RequestObject, raw)
    known = KnownRequests(lambda _: None)
    known.put(item)
    for each in known:
        if each.request.problem:
            _check_told(each.request.problem)
        _check_said(each.request, item)
        if each.request.pod_sets:
            try_to_hold(each.request, raw)
    known.drop(item.name)
    return known.gone(item.name)


def try_to_hold(request: ProvisioningRequest, raw: bytes) -> None:
    """Write the reservations of a request, if all of them are valid."""
    counts = [each.pods for each in request.pod_sets]
    if request.valid_s > MOST_VALID_S or max(counts) > TENANT.slots:
        raise Fault(f"is held too long, or for too many: {request}")
    try:
        pod = template.pod_of(raw, template.place(0, request.pod_sets[0]))
        pods = [pod] * len(request.pod_sets)
        written = outcome(template.documents(request, pods, SEEN, TENANT))
    except InvalidInput as exc:
        check_refusal(exc)
        if not exc.path.startswith("spec.podSets"):
            raise Fault(f"names no podSet: {exc}") from exc
        return
    for ref, each in zip(refs(request), written, strict=True):
        names.check_subdomain(ref.key, "", "a name")
        if (
            spec_codec.read({**each, "origin": str(ref)}, ref, SEEN, TENANT).resources.get(
                "pods", 0
            )
            < 1
        ):
            raise Fault(f"holds no place for a pod: {each}")


def _check_said(request: ProvisioningRequest, item: codec.RequestObject) -> None:
    """Raise Fault unless all conditions can be written and are read again as they were."""
    sets = len(request.pod_sets)
    refusal = NoBooking(ConditionReason.CAPACITY_IS_NOT_FOUND, "no room")
    looks = (
        *(BookingObservation((hold,) * sets, "2030-01-01T00:00:00Z") for hold in BookingState),
        BookingObservation((BookingState.ABSENT,) * sets, refusal=refusal),
    )
    for seen in looks:
        said = advance(request, seen).said
        written = codec.show_conditions(said, item.conditions(), 2, SEEN)
        encode(codec.status_patch(item.metadata, written))
        again = {each.type: each.status == "True" for each in written}
        if any(again[kind] is not each.holds for kind, each in said.items()):
            raise Fault(f"conditions are not what was said: {written}")


def _check_told(problem: str) -> None:
    """Raise Fault unless a problem says where it is and what to do, and can be sent."""
    if not problem.startswith("spec") or "; " not in problem or len(problem) >= LONGEST:
        raise Fault(f"says too little, or too much: {problem[:LONGEST]}")
    encode(problem)
