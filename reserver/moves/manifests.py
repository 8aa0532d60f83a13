"""Writes the PodMoves of commands and rounds, and the seats of moves; reads lists of PodMoves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from reserver.cluster import quantity
from reserver.cluster.pod import TARGET_LABEL, PodName, migrates
from reserver.errors import InvalidInput
from reserver.k8s.objects import names
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.times import show_moment
from reserver.moves import podmove
from reserver.moves.effects import HoldSeat
from reserver.moves.model import ALONE, Move, MoveGroup
from reserver.moves.phases import MoveMode, MovePhase, MoveReason
from reserver.moves.podmove import (
    DeleteOptionsObject,
    MovedPodObject,
    MoveGroupObject,
    MoveList,
    SpecObject,
    TargetObject,
    read_object,
)
from reserver.reservations.enums import Policy
from reserver.reservations.owner import NOBODY, OwnerRule
from reserver.reservations.reservation import Ref
from reserver.stores.codec.demands import placement
from reserver.stores.object import edits
from reserver.stores.object.codec import PLACEMENT_ANNOTATION, VOLUMES_ANNOTATION

PROFILE, STRATEGY = "reserver.io/rebalance-profile", "reserver.io/rebalance-strategy"
"""Labels of a PodMove of a rebalancing round: its profile and strategy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFields:
    """The fields that several PodMoves share.

    Attributes:
        timeout: a duration; empty for the default.
        grace_period_s: the pods' grace period, in seconds; None for their own.
        group: the group of all PodMoves; `ALONE` for none.
        keep_s: seconds that they stay after their end; None for ever.
        urgent: whether they ignore move windows.
        mode: the mode of PodMoves without their own.
    """

    timeout: str = ""
    grace_period_s: int | None = None
    group: MoveGroup = ALONE
    keep_s: int | None = None
    urgent: bool = False
    mode: MoveMode = MoveMode.RESERVE_FIRST


def manifest(  # noqa: PLR0913 - the fields of a PodMove
    pod: PodName,
    terms: SharedFields,
    *,
    uid: str = "",
    after: str = "",
    to: str = "",
    mode: MoveMode | None = None,
    metadata: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return the manifest of a PodMove; without metadata its name is generated from the pod's.

    It follows the PodMove `after`, if not empty, and has the shared mode unless `mode` is given.
    """
    grace_s, group, mode = terms.grace_period_s, terms.group, mode or terms.mode
    spec = SpecObject(
        pod=MovedPodObject(pod.name, uid, after),
        to=TargetObject(to) if to else None,
        mode=mode,
        timeout=terms.timeout or None,
        delete_options=None if grace_s is None else DeleteOptionsObject(grace_s),
        group=MoveGroupObject(*group) if group.name and mode is not MoveMode.EVICT_ONLY else None,
        urgent=terms.urgent,
        ttl_seconds_after_finished=terms.keep_s,
    )
    about = {**(metadata or {"generateName": f"{pod.name[:57]}-"}), "namespace": pod.namespace}
    return podmove.manifest(spec, about)


def labels_of(profile: str, strategy: str) -> dict[str, str]:
    """Return the labels with the profile and the strategy of a move.

    A profile's name that is not a valid label value is left out.
    """
    said = {PROFILE: profile} if names.is_label_value(profile) else {}
    return {**said, STRATEGY: strategy}


class OpenMove(NamedTuple):
    """A PodMove that has not ended.

    Attributes:
        name: of the PodMove.
        pod: the pod to move.
        uid: the pod's UID; empty if not observed yet.
        is_rebalance: whether it has the label of a rebalancing round; a tenant may write it, too.
    """

    name: PodName
    pod: PodName
    uid: str
    is_rebalance: bool


_NOT_ITS_OWN = {MoveReason.GROUP_FAILED, MoveReason.PLAN_OUTDATED}
"""Reasons of failures that are not the move's own: the next round plans it anew."""


class FailedMove(NamedTuple):
    """A PodMove that has failed for a reason of its own.

    Attributes:
        pod: the pod to move.
        uid: the pod's UID.
        at: the failure, unix seconds.
    """

    pod: PodName
    uid: str
    at: float


class MovePage(NamedTuple):
    """A page of a list of PodMoves.

    Attributes:
        open: the open PodMoves.
        failed: the PodMoves that have failed, except for `_NOT_ITS_OWN` reasons.
        following: the continue token of the next page; empty for the last page.
    """

    open: tuple[OpenMove, ...]
    failed: tuple[FailedMove, ...]
    following: str


def read_page(raw: bytes) -> MovePage:
    """Return the PodMoves of a list for a rebalancing round.

    Raises:
        InvalidInput: `raw` is not a list of PodMoves.
    """
    found = decode(MoveList, raw)
    still, failed = list[OpenMove](), list[FailedMove]()
    for item in found.items:
        try:
            move = read_object(item)
        except InvalidInput:
            continue  # An invalid PodMove is not carried out.
        status, pod = move.status, move.pod
        uid = status.uid or move.spec.uid
        if not move.is_over:
            is_rebalance = STRATEGY in (item.metadata.labels or {})
            still.append(OpenMove(move.name, pod, uid, is_rebalance=is_rebalance))
        elif status.phase is MovePhase.FAILED and status.reason not in _NOT_ITS_OWN:
            failed.append(FailedMove(pod, uid, status.finished_at or 0.0))
    return MovePage(tuple(still), tuple(failed), found.metadata.continue_)


def seat(move: Move, hold: HoldSeat, pod: bytes) -> dict[str, object]:
    """Return the Reservation to create for a move; it is deleted with the PodMove, its owner.

    Args:
        move: the move of the seat.
        hold: the fields of the seat.
        pod: the JSON of the pod whose constraints the seat gets.

    Raises:
        InvalidInput: the pod's constraints contradict the move's target.
    """
    wanted = json.loads(hold.placement.text or "{}")
    own = placement(pod, leaves="", node="", selector={})
    annotations = {PLACEMENT_ANNOTATION: encode(own).decode()}
    if hold.volume_claims:
        annotations[VOLUMES_ANNOTATION] = ",".join(hold.volume_claims)
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
    made = edits.manifest(ref, text, {}, owner=owner)
    made["metadata"]["annotations"] = annotations
    return made


def _copy(hold: HoldSeat) -> list[dict[str, object]]:
    """Return the owner entry of the pod's copy, which may claim the seat before the pod goes."""
    return [{"pod": {"name": hold.copy}}] if hold.copy else []


def _target(rule: OwnerRule) -> list[dict[str, object]]:
    """Return the owner entry of a virtual machine's migration target."""
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
    """Return an owner rule as an entry of ``owners``."""
    entry: dict[str, object] = {"pod": {"name": rule.pod}} if rule.pod else {}
    if rule.replaces == NOBODY:
        return entry
    return {
        **entry,
        "controller": {"kind": rule.controller.kind, "name": rule.controller.name},
        "replaces": {"uid": rule.replaces.uid, "existing": sorted(rule.replaces.existing)},
    }
