"""Collects the content of the demo's screen from Reserver's state, and pods from the API server."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reserver.cluster.headroom import Int64s
from reserver.cluster.quantity import show
from reserver.k8s.objects.objects import ObjectList, decode
from reserver.k8s.objects.pods import PodObject
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver_demo.view import NodeRow, PodRow, ReservationRow


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = msgspec.field(default_factory=list)


class _Refused(msgspec.Struct, frozen=True):
    """The conditions of a pod, with the scheduler's refusal."""

    status: _Status = _Status()


def node_rows(state: State) -> Iterator[NodeRow]:
    """Yield each node's CPU, by name."""
    snapshot = state.snapshot
    for name in sorted(snapshot.node_names()):
        row = snapshot.row(name)
        column = snapshot.columns.get("cpu")
        if row is not None and column is not None:
            cells = (snapshot.allocatable, snapshot.requested, snapshot.held)
            allocatable, used, held = (_cell(layer, row, column) for layer in cells)
            yield NodeRow(name=name, allocatable=allocatable, used=used, held=held)


def reservation_rows(state: State, now: float) -> Iterator[ReservationRow]:
    """Yield the reservations with their remaining time at `now` (unix seconds)."""
    for reservation, phase in state.ledger:
        holds = ", ".join(
            f"{show(name, amount)} {name}"
            for name, amount in reservation.resources.items()
            if name != "pods"
        )
        expires_at = reservation.expires_at
        yield ReservationRow(
            name=_short(reservation.ref),
            owner=", ".join(sorted(map(str, reservation.owners))),
            node=reservation.node,
            holds=holds,
            phase=phase.value,
            left_s=None if expires_at is None else expires_at - now,
        )


def pod_rows(pods: bytes) -> Iterator[PodRow]:
    """Yield the pods of an encoded list, with the reasons for which they are pending."""
    for raw in decode(ObjectList, pods).items or ():
        pod = decode(PodObject, raw).value()
        conditions = decode(_Refused, raw).status.conditions
        refusals = (c.message for c in conditions if c.type == "PodScheduled" and c.message)
        yield PodRow(
            name=str(pod.name),
            cpu=pod.requests.get("cpu", 0),
            node=pod.node,
            why="" if pod.node else next(refusals, ""),
        )


def _short(ref: Ref) -> str:
    return f"{ref.key}[{ref.item}]" if ref.item else ref.key


def _cell(layer: Int64s, row: int, column: int) -> int:
    return int(layer[row, column])
