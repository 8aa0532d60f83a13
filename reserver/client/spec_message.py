"""Converts the spec of a reservation to and from the contract's message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC
from typing import Any

from reserver.client.values import Controller, OwnerRule, PodOwner, Replaced, Requirement, Spec
from reserver.reservations.enums import Policy
from reserver.stores.codec.contract import to_document, to_message
from reserver.v1 import reservation_pb2 as pb


def write_spec(spec: Spec) -> pb.ReservationSpec:
    """Return the message of a spec; a field needs a line here only if its type differs there."""
    said = {each.name: getattr(spec, each.name) for each in fields(spec)}
    placement = None
    if spec.placement is not None:  # An empty one says: anywhere.
        placement = to_message({"placement": dict(spec.placement)}).placement
    said |= {
        "owners": map(_write_owner, spec.owners),
        "resources": dict(spec.resources),
        "policy": f"POLICY_{spec.policy.name}",
        "placement": placement,
    }
    return pb.ReservationSpec(**said)


def read_spec(found: pb.ReservationSpec, home: str = "") -> Spec:
    """Return the spec in a message; a field needs a line here only if its type differs there.

    Args:
        found: the message.
        home: the namespace of owners that do not say theirs.
    """
    said = {
        each.name: _READ.get(each.name, _as_it_is)(getattr(found, each.name))
        for each in found.DESCRIPTOR.fields
        if not each.has_presence or found.HasField(each.name)
    }
    said["owners"] = tuple(read_owner(each, home) for each in found.owners)
    return Spec(**said)


def _write_owner(owner: PodOwner | OwnerRule) -> pb.Owner:
    if isinstance(owner, PodOwner):
        return pb.Owner(pod=pb.PodOwner(name=owner.name, namespace=owner.namespace))
    written = pb.Owner()
    if owner.pod:
        written.pod.CopyFrom(pb.PodOwner(name=owner.pod, namespace=owner.namespace))
    if owner.controller is not None:
        kind, name = owner.controller
        controller = pb.ControllerOwner(kind=kind, name=name, namespace=owner.namespace)
        written.controller.CopyFrom(controller)
    if owner.match_labels or owner.match_expressions:
        expressions = [
            pb.LabelSelectorRequirement(key=key, operator=operator, values=values)
            for key, operator, values in owner.match_expressions
        ]
        selector = pb.LabelSelector(
            match_labels=dict(owner.match_labels),
            match_expressions=expressions,
            namespace=owner.namespace,
        )
        written.selector.CopyFrom(selector)
    if owner.replaces is not None:
        uid, existing = owner.replaces
        written.replaces.CopyFrom(pb.ReplacedPod(uid=uid, existing=existing))
    return written


def read_owner(found: pb.Owner, home: str) -> PodOwner | OwnerRule:
    """Return who may claim a reservation; `home` is their namespace if they do not say it."""
    if not any(map(found.HasField, ("controller", "selector", "replaces"))):
        return PodOwner(found.pod.namespace or home, found.pod.name)
    namespaces = (found.pod.namespace, found.controller.namespace, found.selector.namespace)
    controller = Controller(found.controller.kind, found.controller.name)
    replaced = Replaced(found.replaces.uid, tuple(found.replaces.existing))
    return OwnerRule(
        namespace=next(filter(None, namespaces), home),
        pod=found.pod.name,
        controller=controller if found.HasField("controller") else None,
        match_labels=dict(found.selector.match_labels),
        match_expressions=tuple(
            Requirement(each.key, each.operator, tuple(each.values))
            for each in found.selector.match_expressions
        ),
        replaces=replaced if found.HasField("replaces") else None,
    )


def _read_placement(found: pb.Placement) -> dict[str, Any]:
    placement: dict[str, Any] = to_document(pb.ReservationSpec(placement=found)).get(
        "placement", {}
    )
    return placement


def _as_it_is(value: Any) -> Any:  # noqa: ANN401 - of whatever field
    return value


_READ: dict[str, Callable[[Any], Any]] = {
    "resources": dict,
    "slots": lambda slots: slots or 1,
    "starts_at": lambda moment: moment.ToDatetime(UTC),
    "expires_at": lambda moment: moment.ToDatetime(UTC),
    "ttl": lambda duration: duration.ToTimedelta(),
    "policy": lambda policy: Policy.REQUIRE if policy == pb.POLICY_REQUIRE else Policy.PREFER,
    "placement": _read_placement,
}
