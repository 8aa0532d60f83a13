"""PodMoves as commands and rounds of rebalancing write them, and which pods they have under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from reserver.cluster.pod import PodName
from reserver.migration.move import ENDED, Mode
from reserver.wire.k8s import names
from reserver.wire.k8s.objects import Metadata, WireStruct, decode
from reserver.wire.migration.podmove import KIND
from reserver.wire.spec.object import API_VERSION

PROFILE, STRATEGY = "reserver.io/rebalance-profile", "reserver.io/rebalance-strategy"
"""Labels of a PodMove that a round of rebalancing has written: who asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What several PodMoves have in common.

    Attributes:
        timeout: as a duration; empty for the default.
        grace_period_s: what pods get to end, in seconds; None for their own.
        group: name and size; None for none.
        keep_s: how long they stay after their end, in seconds; None for ever.
    """

    timeout: str = ""
    grace_period_s: int | None = None
    group: tuple[str, int] | None = None
    keep_s: int | None = None


def manifest(
    pod: PodName,
    terms: Terms,
    *,
    uid: str = "",
    to: str = "",
    mode: Mode = Mode.RESERVE_FIRST,
    metadata: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return a PodMove as it is written; without metadata the API server names it like the pod."""
    spec: dict[str, Any] = {"pod": {"name": pod.name}}
    if uid:
        spec["pod"]["uid"] = uid
    if to:
        spec["to"] = {"node": to}
    if mode is not Mode.RESERVE_FIRST:
        spec["mode"] = mode
    if terms.timeout:
        spec["timeout"] = terms.timeout
    if terms.grace_period_s is not None:
        spec["deleteOptions"] = {"gracePeriodSeconds": terms.grace_period_s}
    if terms.group is not None and mode is Mode.RESERVE_FIRST:
        spec["group"] = {"name": terms.group[0], "size": terms.group[1]}
    if terms.keep_s is not None:
        spec["ttlSecondsAfterFinished"] = terms.keep_s
    about = {**(metadata or {"generateName": f"{pod.name[:57]}-"}), "namespace": pod.namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": about, "spec": spec}


def labels_of(profile: str, strategy: str) -> dict[str, str]:
    """Return the labels that say who asked for a move.

    A policy may name its profiles as it likes: what cannot be a label's value is left out.
    """
    said = {PROFILE: profile} if names.is_label_value(profile) else {}
    return {**said, STRATEGY: strategy}


class OpenMove(NamedTuple):
    """A PodMove that has not ended.

    Attributes:
        pod: that is to leave.
        uid: of the pod; empty if nobody has looked yet.
        is_rebalance: a round of rebalancing has written it.
    """

    pod: PodName
    uid: str
    is_rebalance: bool


class _Metadata(Metadata, frozen=True):
    labels: dict[str, str] | None = None


class _Pod(WireStruct, frozen=True):
    name: str = ""
    uid: str = ""


class _Spec(WireStruct, frozen=True):
    pod: _Pod = _Pod()


class _Status(WireStruct, frozen=True):
    phase: str = ""
    pod_uid: str = msgspec.field(default="", name="podUID")


class _Item(WireStruct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _List(WireStruct, frozen=True):
    metadata: Metadata = Metadata()
    items: tuple[_Item, ...] = ()


class Page(NamedTuple):
    """Some of the PodMoves of a list.

    Attributes:
        open: those that have not ended.
        following: asks for the next page; empty if there is none.
    """

    open: tuple[OpenMove, ...]
    following: str


def read_open(raw: bytes) -> Page:
    """Return the PodMoves of a list that have not ended.

    Raises:
        InvalidInput: it is no such list.
    """
    found = decode(_List, raw)
    still = (item for item in found.items if item.status.phase not in ENDED)
    return Page(tuple(map(_open, still)), found.metadata.continue_)


def _open(item: _Item) -> OpenMove:
    pod = PodName(item.metadata.namespace, item.spec.pod.name)
    uid = item.status.pod_uid or item.spec.pod.uid
    return OpenMove(pod, uid, is_rebalance=STRATEGY in (item.metadata.labels or {}))
