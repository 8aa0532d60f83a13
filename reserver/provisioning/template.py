"""Builds the Reservation of a podSet from its PodTemplate."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from reserver.cluster import quantity
from reserver.errors import InvalidInput
from reserver.k8s.objects.limits import MOST_DESCRIPTION, TENANT, SpecLimits, check_bytes
from reserver.k8s.objects.objects import WireStruct, decode, encode
from reserver.k8s.objects.requests import Actuated, Amounts, ContainerSpec, Requesting, Resources
from reserver.k8s.objects.requests import request as effective
from reserver.k8s.objects.times import show_moment
from reserver.provisioning.codec import of_request
from reserver.provisioning.model import PodSet, ProvisioningRequest
from reserver.reservations.owner import REQUEST
from reserver.reservations.reservation import Ref
from reserver.stores.codec import spec_codec
from reserver.stores.codec.demands import placement


class _Amounts(WireStruct, frozen=True):
    requests: Amounts | None = None
    limits: Amounts | None = None

    def asked(self) -> Resources:
        """Return the requests, defaulted from the limits as in new pods.

        The API server does not default templates (SetDefaults_Pod in
        pkg/apis/core/v1/defaults.go).
        """
        return Resources({**(self.limits or {}), **(self.requests or {})})


class _Container(WireStruct, frozen=True):
    name: str = ""
    resources: _Amounts = _Amounts()
    restart_policy: str = ""

    def asking(self) -> ContainerSpec:
        """Return the container with its defaulted requests."""
        restarts = self.restart_policy
        return ContainerSpec(self.name, self.resources.asked(), restart_policy=restarts)


class _Spec(WireStruct, frozen=True):
    containers: tuple[_Container, ...] = ()
    init_containers: list[_Container] | None = None
    resources: _Amounts | None = None
    overhead: Amounts | None = None

    def asking(self) -> Requesting:
        """Return the parts of the effective request."""
        return Requesting(
            [each.asking() for each in self.containers],
            [each.asking() for each in self.init_containers or ()],
            self.resources.asked() if self.resources else None,
            self.overhead,
        )


class _Template(WireStruct, frozen=True):
    spec: _Spec = _Spec()


class _Object(WireStruct, frozen=True):
    MOST_BYTES = 262_144

    template: msgspec.Raw = msgspec.Raw(b"{}")


def pod_of(template: bytes, path: str) -> bytes:
    """Return the pod of a PodTemplate, both as JSON.

    Raises:
        InvalidInput: at `path` (`place`), the PodTemplate is too long, or malformed.
    """
    try:
        pod = bytes(decode(_Object, template).template)
        check_bytes(len(pod), TENANT.spec_bytes)
    except InvalidInput as exc:
        raise of_request(exc.under(path)) from exc
    return pod


def place(index: int, pod_set: PodSet) -> str:
    """Return the path of the PodTemplate of a request's podSet."""
    return f"spec.podSets[{index}], PodTemplate {pod_set.template}"


def document(
    request: ProvisioningRequest, pod_set: PodSet, pod: bytes, now: float
) -> dict[str, Any]:
    """Return the spec of the Reservation for a podSet, which begins at `now` (unix seconds).

    It is retained, so that its claims and its expiry stay visible until the request is deleted.

    Args:
        request: the request of the podSet.
        pod_set: the podSet.
        pod: the JSON of the pod of its PodTemplate (`pod_of`).
        now: unix seconds.

    Raises:
        InvalidInput: the template is invalid, or has constraints that no placement supports.
    """
    amounts = effective(decode(_Template, pod).spec.asking(), Actuated())
    where = placement(pod, leaves="", node="", selector={})
    spec: dict[str, Any] = {
        "owners": [{"controller": {"kind": REQUEST, "name": request.name.name}}],
        "resources": {name: quantity.show(name, amount) for name, amount in amounts.items()},
        "slots": pod_set.pods,
        "expiresAt": show_moment(now + request.valid_s),
        "retain": True,
        "description": f"for {REQUEST} {request.name.name}"[:MOST_DESCRIPTION],
    }
    return spec | ({"placement": where} if where else {})


def documents(
    request: ProvisioningRequest, pods: Sequence[bytes], now: float, limits: SpecLimits
) -> Generator[None, None, list[dict[str, Any]]]:
    """Return the specs of a request's Reservations in steps, smallest slots first.

    A pod claims the oldest reservation that covers it, so small pods do not take large slots.

    Args:
        pods: the JSON of the pod of each podSet's PodTemplate (`pod_of`).
        now: the start of the holds, unix seconds.
        limits: the limits on each spec.

    Raises:
        InvalidInput: room cannot be held for one podSet, or for all of them together.
    """
    found = []
    somewhere = Ref.of_object(request.name.namespace, request.name.name)
    for index, (pod_set, pod) in enumerate(zip(request.pod_sets, pods, strict=True)):
        yield
        try:
            written = document(request, pod_set, pod, now)
            check_bytes(len(encode(written)), limits.spec_bytes)
            found.append((spec_codec.read(written, somewhere, now, limits), written))
        except InvalidInput as exc:
            if exc.path == "slots":
                raise of_request(exc, f"spec.podSets[{index}].count") from exc
            raise of_request(exc.under(place(index, pod_set))) from exc
    try:
        spec_codec.check_set([one for one, _ in found])
    except InvalidInput as exc:
        raise of_request(exc, "spec.podSets") from exc
    found.sort(key=lambda each: sum(each[0].resources.values()))
    return [written for _, written in found]
