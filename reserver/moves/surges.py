"""Reads the objects that a surge depends on: the pod's ReplicaSet and Deployment, and the copy.

They are read for each step instead of watched: few pods surge at a time, and the copy is handed
over only in the version that was read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from reserver.cluster.pod import Controller, Pod, PodName
from reserver.cluster.snapshot import Snapshot
from reserver.errors import ApiError, InvalidInput, under
from reserver.k8s.client import ApiClient
from reserver.k8s.objects.objects import decode
from reserver.moves.model import Move
from reserver.moves.observation import ObservedSurge
from reserver.moves.phases import SURGE_PHASES, MovePhase
from reserver.moves.surge_object import DeploymentObject, ReplicaSetObject, SurgingPod, unfit_set
from reserver.moves.workloads import Workload

T = TypeVar("T", ReplicaSetObject, DeploymentObject, SurgingPod)


@dataclass(frozen=True, slots=True)
class Surges:
    """Reads workloads whose pods surge.

    Attributes:
        clock: unix seconds.
        workload: returns the controller of a move's pod; None without one.
        may_begin: returns whether it is a move's turn.
        is_on: whether surges are enabled.
    """

    client: ApiClient
    clock: Callable[[], float]
    workload: Callable[[Move], Workload | None]
    may_begin: Callable[[Move], bool]
    is_on: bool

    async def read(self, move: Move) -> ObservedSurge | None:
        """Return the workload of a move; None if the next step does not depend on it.

        Raises:
            ApiError: the API server does not answer.
        """
        is_its_turn = move.status.phase is MovePhase.PENDING and self.may_begin(move)
        matters = is_its_turn or move.status.phase in SURGE_PHASES
        owner = self.workload(move) if move.is_surging and matters else None
        if owner is None:
            return None
        if not self.is_on and not move.may_have_copy:
            return ObservedSurge(unfit="Reserver runs without featureGates.SurgeMoves")
        return await self._of(move, owner.controller)

    async def _of(self, move: Move, controller: Controller) -> ObservedSurge:
        if controller.kind != "ReplicaSet":
            said = f"{controller.kind} {controller.name} creates its pods one by one or once"
            return ObservedSurge(unfit=f"only pods of ReplicaSets surge, and {said}")
        try:
            return await self._read(move, controller)
        except InvalidInput as exc:
            return ObservedSurge(unfit=f"ReplicaSet {controller.name} cannot be read: {exc}")
        except ApiError as exc:
            if not exc.is_definite:
                raise
            return ObservedSurge(unfit=f"ReplicaSet {controller.name} cannot be judged: {exc}")

    async def _read(self, move: Move, controller: Controller) -> ObservedSurge:
        namespace = move.name.namespace
        sets = f"/apis/apps/v1/namespaces/{namespace}"
        found = await self._get(f"{sets}/replicasets/{controller.name}", ReplicaSetObject)
        if found is None:
            said = f"there is no ReplicaSet {controller.name}"
            return ObservedSurge(unfit=said, is_wanted=False)
        owner = found.metadata.controller
        unfit = unfit_set(found)
        if owner is not None and not unfit:
            deployment = await self._get(f"{sets}/deployments/{owner.name}", DeploymentObject)
            gone = f"there is no Deployment {owner.name}"
            unfit = gone if deployment is None else deployment.unfit()
        seen = ObservedSurge(
            unfit=unfit,
            is_wanted=found.spec.replicas > 0 and found.metadata.deletion_timestamp is None,
            template=found.spec.template,
            withheld=found.withheld(),
            owner=found.owner,
        )
        return (
            seen if move.status.phase is MovePhase.PENDING else await self._pods(move, found, seen)
        )

    async def _pods(
        self, move: Move, found: ReplicaSetObject, seen: ObservedSurge
    ) -> ObservedSurge:
        """Return a workload with the leaving pod and its copy."""
        leaving = await self._pod(move.pod)
        if leaving is not None and leaving.metadata.uid == move.status.uid:
            seen = replace(seen, leaving=leaving.as_leaving(move))
        if move.status.surged_at is not None:
            copy = await self._pod(PodName(move.name.namespace, move.copy_name))
            if copy is not None:
                seen = replace(seen, copy=copy.as_copy(move, found, self.clock()))
        return replace(seen, others=found.others_unready(seen.leaving))

    async def _pod(self, name: PodName) -> SurgingPod | None:
        path = f"/api/v1/namespaces/{name.namespace}/pods/{name.name}"
        return await self._get(path, SurgingPod)

    async def _get(self, path: str, kind: type[T]) -> T | None:
        """Return an object; None if absent."""
        try:
            with under("/".join(path.split("/")[-2:])):
                return decode(kind, await self.client.get(path))
        except ApiError as exc:
            if exc.is_absent:
                return None
            raise


def exclusive_volume(pod: Pod, snapshot: Snapshot) -> str:
    """Return why a copy could not use a pod's volumes at the same time; empty if it could."""
    for use in pod.volume_claims:
        claim = snapshot.storage.claims.get(PodName(pod.name.namespace, use.name))
        if not use.is_ephemeral and (claim is None or not claim.is_shared):
            return f"pods of two nodes cannot use its volume claim {use.name} at once"
    return ""
