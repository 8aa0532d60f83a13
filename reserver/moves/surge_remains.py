"""Removes the remains of moves whose pods were to surge: copies, and marks of pods that stay.

A move may end, or be deleted, at any moment, and Reserver with it. So this follows from the pods:
each names its move in an annotation, and is tidied once that has no more use for it.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from reserver.base.quarantine import quarantined
from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, Fault, InvalidInput
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pod_annotations import SURGE_ANNOTATION
from reserver.k8s.work_queue import WorkQueue
from reserver.moves.index import MoveIndex
from reserver.moves.model import Move
from reserver.moves.phases import SURGE_PHASES
from reserver.moves.podmove import MoveObject, path, read_object
from reserver.moves.surge_object import SurgingPod
from reserver.moves.surge_writes import pods, tidy

_LOOK_AGAIN_S = 5.0


class SurgeRemains:
    """The pods that say that they surge, and those of them that no move needs.

    Attributes:
        queue: of those that are to be looked at.
    """

    def __init__(self, client: ApiClient, moves: MoveIndex) -> None:
        """Begin without pods."""
        self._client = client
        self._moves = moves
        self._of_move: defaultdict[PodName, set[PodName]] = defaultdict(set)
        self.queue = WorkQueue[PodName]("surges")

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        """Take a pod that has changed."""
        was = before.surge if before is not None else ""
        now = after.surge if after is not None else ""
        if before is not None and was and was != now:
            self._of_move[_move_of(before)].discard(before.name)
            if not self._of_move[_move_of(before)]:
                del self._of_move[_move_of(before)]
        if after is not None and now and not after.terminating:
            self._of_move[_move_of(after)].add(after.name)
            self.queue.add(after.name)

    def touched(self, move: PodName) -> None:
        """Note that a PodMove was written, or is gone."""
        for pod in self._of_move.get(move, ()):
            self.queue.add(pod)

    async def work(self, names: list[PodName]) -> None:
        """Look at pods; what fails is tried later."""
        for name in names:
            with quarantined("move", str(name), partial(self._spoiled, name)):
                try:
                    await self._look(name)
                except ApiError as exc:
                    if exc.is_absent:
                        self.queue.discard(name)
                    else:
                        self.queue.failed(name, exc)

    async def _look(self, name: PodName) -> None:
        pod = decode(SurgingPod, await self._client.get(f"{pods(name.namespace)}/{name.name}"))
        said = pod.annotations.get(SURGE_ANNOTATION, "")
        self.queue.succeeded(name)
        if not said or pod.metadata.deletion_timestamp is not None:
            return
        move_name, _, uid = said.rpartition("/")
        of = PodName(name.namespace, move_name)
        known = self._moves.get(of)
        if known is not None and known.move is not None and _needs(known.move, uid):
            return
        if await self._is_needed(of, uid):  # Its watch may be behind.
            self.queue.add(name, _LOOK_AGAIN_S)
            return
        await tidy(self._client, name, pod)

    async def _is_needed(self, of: PodName, uid: str) -> bool:
        if not of.name:
            return False
        try:
            move = read_object(decode(MoveObject, await self._client.get(path(of))))
        except InvalidInput:
            return False
        except ApiError as exc:
            if exc.is_absent:
                return False
            raise
        return _needs(move, uid)

    def _spoiled(self, name: PodName, fault: Fault) -> None:
        self.queue.failed(name, what=str(fault))


def _move_of(pod: Pod) -> PodName:
    return PodName(pod.name.namespace, pod.surge.rpartition("/")[0])


def _needs(move: Move, uid: str) -> bool:
    return move.uid == uid and move.status.phase in SURGE_PHASES
