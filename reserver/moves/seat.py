"""Writes the Reservation that is the seat of a move."""

from __future__ import annotations

import json

from reserver.cluster import quantity
from reserver.cluster.live_migration import TARGET_LABEL, migrates
from reserver.k8s.objects.objects import encode
from reserver.k8s.objects.times import show_moment
from reserver.moves import podmove
from reserver.moves.effects import HoldSeat
from reserver.moves.model import Move
from reserver.reservations.enums import Policy
from reserver.reservations.owner import NOBODY, OwnerRule
from reserver.reservations.reservation import Ref
from reserver.stores.codec.demands import placement
from reserver.stores.object.codec import MOST_CLAIMS, PLACEMENT_ANNOTATION, VOLUMES_ANNOTATION
from reserver.stores.object.edits import manifest


def seat(move: Move, hold: HoldSeat, pod: bytes) -> dict[str, object]:
    """Return the Reservation to be created for a move; whoever deletes the PodMove deletes it.

    Args:
        move: whose seat it is.
        hold: what it holds.
        pod: the pod that leaves, as the API server has it.

    Raises:
        InvalidInput: the pod demands what the move's target does not have.
    """
    wanted = json.loads(hold.placement.text or "{}")
    own = placement(pod, leaves="", node="", selector={})
    annotations = {PLACEMENT_ANNOTATION: encode(own).decode()}
    if hold.volume_claims:
        annotations[VOLUMES_ANNOTATION] = ",".join(hold.volume_claims[:MOST_CLAIMS])
    spec = {
        "owners": [_owner(hold.owner), *_copy(hold), *_target(hold.owner)],
        "resources": {name: quantity.show(name, amount) for name, amount in hold.resources.items()},
        "placement": placement(
            pod, leaves=hold.avoid, node=hold.node, selector=wanted.get("nodeSelector", {})
        ),
        "policy": Policy.REQUIRE,
        "expiresAt": show_moment(hold.expires_at),
    }
    owner = podmove.owner(move.name.name, move.uid)
    owner |= {"controller": True, "blockOwnerDeletion": False}
    ref, text = Ref.of_object(*hold.seat), encode(spec).decode()
    made = manifest(ref, text, {}, owner=owner)
    made["metadata"]["annotations"] = annotations
    return made


def _copy(hold: HoldSeat) -> list[dict[str, object]]:
    """Return the copy of the pod, which claims the seat by its name before the pod goes."""
    return [{"pod": {"name": hold.copy}}] if hold.copy else []


def _target(rule: OwnerRule) -> list[dict[str, object]]:
    """Return whom a virtual machine migrates to, who claims the seat before the pod goes."""
    if rule.replaces == NOBODY or not migrates(rule.controller):
        return []
    made = {"matchExpressions": [{"key": TARGET_LABEL, "operator": "Exists"}]}
    return [
        {
            "controller": {"kind": rule.controller.kind, "name": rule.controller.name},
            "selector": made,
        }
    ]


def _owner(rule: OwnerRule) -> dict[str, object]:
    """Return who may claim, as an entry of ``owners``."""
    entry: dict[str, object] = {"pod": {"name": rule.pod}} if rule.pod else {}
    if rule.replaces == NOBODY:
        return entry
    return {
        **entry,
        "controller": {"kind": rule.controller.kind, "name": rule.controller.name},
        "replaces": {"uid": rule.replaces.uid, "existing": sorted(rule.replaces.existing)},
    }
