"""Assembles the controller of PodMoves and its watches, if enabled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from reserver.cluster.pod import PodName
from reserver.extender.cluster_watches import attachable_view
from reserver.k8s.client import ApiClient
from reserver.k8s.events import Recorder
from reserver.k8s.objects.objects import POD, Metadata, ObjectKind
from reserver.k8s.watch.object_view import ObjectView
from reserver.k8s.watch.reflector import Reflector
from reserver.moves import podmove, podmove_group
from reserver.moves.controller import MoveController
from reserver.moves.index import KnownMove, MoveIndex
from reserver.moves.phases import MovePhase, MoveReason
from reserver.moves.podmove import MoveObject
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import API_VERSION

_POD_MOVE = ObjectKind(API_VERSION, podmove.KIND)
_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
_CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


def assembled(  # noqa: PLR0913 - its dependencies
    client: ApiClient,
    clock: Callable[[], float],
    state: State,
    objects: ObjectCache,
    recorder: Recorder,
    is_up_to_date: Callable[[], Awaitable[bool]],
    *,
    unsuited: Callable[[Ref, bool], None],
    may_surge: bool,
) -> MoveController:
    """Return the controller of PodMoves, whose seats are Reservation objects."""
    parts = (client, clock, state, objects, is_up_to_date)
    mover = MoveController(*parts, unsuited=unsuited, may_surge=may_surge)
    mover.subscribers.append(partial(_announce, recorder))
    return mover


def reflectors(client: ApiClient, mover: MoveController) -> Iterator[Reflector]:
    """Yield the watches of PodMoves, whose CRD may be missing, and of PodDisruptionBudgets."""
    yield Reflector(client, podmove.COLLECTION, _move_view(mover.moves), is_optional=True)
    yield Reflector(client, _BUDGETS, mover.arbitration.budgets.view())


def group_reflector(client: ApiClient, mover: MoveController) -> Reflector:
    """Return the watch of PodMoveGroups: while it shows none, groups that span namespaces wait."""
    return Reflector(client, podmove_group.COLLECTION, mover.groups.view(), is_optional=True)


def attachable(client: ApiClient, state: State) -> Reflector:
    """Return the watch of CSINodes for volume limits; without rights to it no limits count."""
    view = attachable_view(state.snapshot.storage)
    return Reflector(client, _CSI_NODES, view, is_optional=True)


def _move_view(moves: MoveIndex) -> ObjectView[MoveObject]:
    return ObjectView(
        MoveObject,
        seen=lambda item, _: moves.put(item),
        gone=lambda key: moves.drop(PodName(*key)),
        known=moves.names,
    )


def _announce(recorder: Recorder, known: KnownMove) -> None:
    """Write an event on a PodMove for its status, and on its pod for the eviction."""
    if known.has_begun:
        text = f"Reserver leaves the move and its seat as they are: {known.problem}"
        recorder.warn(known.metadata, MoveReason.INVALID_SPEC, text, _POD_MOVE)
        return
    said = known.said
    if said is None:
        return
    is_bad = said.phase is MovePhase.FAILED or said.reason == MoveReason.SEAT_LOST
    write = recorder.warn if is_bad else recorder.note
    write(known.metadata, said.reason or said.phase, said.message, _POD_MOVE)
    move = known.move
    if move is not None and said.phase is MovePhase.LANDING and not is_bad:
        namespace, name = move.pod
        pod = Metadata(name=name, namespace=namespace, uid=move.status.uid)
        seat = f"room for its replacement is held on {said.to}" if said.to else "no room is held"
        text = f"the PodMove {known.name.name} evicts it from {said.from_}: {seat}"
        recorder.note(pod, "Moved", text, POD)
