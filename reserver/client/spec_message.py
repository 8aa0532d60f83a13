"""Converts the spec of a reservation to and from the contract's message."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from google.protobuf import json_format

from reserver.client.values import Controller, OwnerRule, PodOwner, Requirement, Spec
from reserver.reservations.terms import Policy
from reserver.v1 import reservation_pb2 as pb

_STRATEGY = "STRATEGY_"


def write_spec(spec: Spec) -> pb.ReservationSpec:
    """Return what a reservation asks for, as it is sent."""
    written = pb.ReservationSpec(
        owners=map(_write_owner, spec.owners),
        node=spec.node,
        resources=dict(spec.resources),
        slots=spec.slots,
        policy=f"POLICY_{spec.policy.name}",
        reusable=spec.reusable,
        preemptible=spec.preemptible,
        priority=spec.priority,
    )
    if spec.starts_at is not None:
        written.starts_at.FromDatetime(spec.starts_at)
    if spec.expires_at is not None:
        written.expires_at.FromDatetime(spec.expires_at)
    if spec.ttl is not None:
        written.ttl.FromTimedelta(spec.ttl)
    if spec.placement is not None:
        placement = dict(spec.placement)
        if "strategy" in placement:
            placement["strategy"] = f"{_STRATEGY}{placement['strategy'].upper()}"
        json_format.ParseDict(placement, written.placement)
        written.placement.SetInParent()  # An empty one says: anywhere.
    return written


def read_spec(found: pb.ReservationSpec, home: str = "") -> Spec:
    """Return what a reservation asks for that was received.

    Args:
        found: the message.
        home: the namespace of owners that do not say theirs.
    """
    return Spec(
        owners=tuple(read_owner(each, home) for each in found.owners),
        node=found.node,
        resources=dict(found.resources),
        slots=found.slots or 1,
        starts_at=found.starts_at.ToDatetime(UTC) if found.HasField("starts_at") else None,
        expires_at=found.expires_at.ToDatetime(UTC) if found.HasField("expires_at") else None,
        ttl=found.ttl.ToTimedelta() if found.HasField("ttl") else None,
        policy=Policy.REQUIRE if found.policy == pb.POLICY_REQUIRE else Policy.PREFER,
        reusable=found.reusable,
        preemptible=found.preemptible,
        priority=found.priority if found.HasField("priority") else None,
        placement=_read_placement(found.placement) if found.HasField("placement") else None,
    )


def whole(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return a value with whole numbers, which a Struct does not tell from fractions."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
    return written


def read_owner(found: pb.Owner, home: str) -> PodOwner | OwnerRule:
    """Return who may claim a reservation; `home` is their namespace if they do not say it."""
    if not (found.HasField("controller") or found.HasField("selector")):
        return PodOwner(found.pod.namespace or home, found.pod.name)
    namespaces = (found.pod.namespace, found.controller.namespace, found.selector.namespace)
    controller = Controller(found.controller.kind, found.controller.name)
    return OwnerRule(
        namespace=next(filter(None, namespaces), home),
        pod=found.pod.name,
        controller=controller if found.HasField("controller") else None,
        match_labels=dict(found.selector.match_labels),
        match_expressions=tuple(
            Requirement(each.key, each.operator, tuple(each.values))
            for each in found.selector.match_expressions
        ),
    )


def _read_placement(found: pb.Placement) -> dict[str, Any]:
    placement: dict[str, Any] = whole(json_format.MessageToDict(found))
    if "strategy" in placement:
        placement["strategy"] = placement["strategy"].removeprefix(_STRATEGY).lower()
    return placement
