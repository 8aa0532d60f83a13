"""Runs all controllers after each change of the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import structlog

from reserver_demo.apiserver.deletion import DeleteOptions, delete
from reserver_demo.apiserver.registry import Registry
from reserver_demo.apiserver.resources import RESOURCES
from reserver_demo.apiserver.status import Json, StatusError
from reserver_demo.apiserver.store import Key
from reserver_demo.clock import rfc3339, wait_for
from reserver_demo.controllers import budgets, deployments, jobs, replicasets
from reserver_demo.controllers.effects import Change, Create, Delete, Effect
from reserver_demo.controllers.made_pods import controller_uid

_OWNERS = ("deployments", "replicasets", "jobs")
_OWNED = ("replicasets", "pods")
_MOST_ROUNDS = 20
_LOOK_AGAIN_S = 1.0
"""Most seconds between two passes, for Jobs with ttlSecondsAfterFinished."""

log = structlog.get_logger()


class Controllers:
    """The controllers of one API server."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._resources = {resource.plural: resource for resource in RESOURCES}
        self._seen = registry.store.revision

    async def run(self) -> None:
        """Run the controllers until cancelled."""
        store = self._registry.store
        while True:
            store.written.clear()
            self.settle()
            await wait_for(store.written, self._registry.clock, _LOOK_AGAIN_S)

    def settle(self) -> None:
        """Run all controllers until they change nothing more."""
        store = self._registry.store
        for _ in range(_MOST_ROUNDS):
            before = store.revision
            self._collect_garbage()
            for effect in self._effects():
                self._carry_out(effect)
            if store.revision == before:
                return

    def _effects(self) -> Iterator[Effect]:
        """Yield the writes of all controllers; each controller sees the writes before its own."""
        clock = self._registry.clock
        now = rfc3339(clock.now())
        for deployment in self._all("deployments"):
            yield from deployments.reconciled(deployment, self._owned_by(deployment), now)
        for replica_set in self._all("replicasets"):
            yield from replicasets.reconciled(replica_set, self._owned_by(replica_set, "pods"))
        for job in self._all("jobs"):
            yield from jobs.reconciled(job, self._owned_by(job, "pods"), clock.now())
        if found := self._all("poddisruptionbudgets"):
            wanting = [*self._all("replicasets"), *self._all("jobs")]
            scales = {
                each["metadata"]["uid"]: each["spec"].get(
                    "replicas", each["spec"].get("parallelism")
                )
                for each in wanting
            }
            for budget in found:
                yield from budgets.reconciled(budget, self._all("pods"), scales, now)

    def _all(self, plural: str) -> list[Json]:
        return list(self._registry.contents(plural))

    def _owned_by(self, owner: Json, plural: str = "replicasets") -> list[Json]:
        uid = owner["metadata"]["uid"]
        return [each for each in self._all(plural) if controller_uid(each) == uid]

    def _collect_garbage(self) -> None:
        """Delete the dependents of owners deleted since the last pass."""
        store = self._registry.store
        gone = {uid for plural in _OWNERS for uid in self._deleted(plural)}
        self._seen = store.revision
        if not gone:
            return
        for plural in _OWNED:
            for stored in store.collection(plural).items():
                if controller_uid(stored.content) in gone:
                    self._carry_out(Delete(plural, stored.key))

    def _deleted(self, plural: str) -> Iterator[str]:
        """Yield the UIDs of deleted objects; none if the history is too short."""
        with suppress(StatusError):
            for change in self._registry.store.collection(plural).changes_after(self._seen):
                if change.deleted:
                    yield change.after.content["metadata"]["uid"]

    def _carry_out(self, effect: Effect) -> None:
        """Write an effect; a refused write is repeated after the next change."""
        resource = self._resources[effect.plural]
        try:
            match effect:
                case Create(_, body):
                    namespace = body["metadata"]["namespace"]
                    self._registry.create(resource, namespace, resource.decode(body).value)
                case Delete(_, key):
                    delete(self._registry, resource, key, DeleteOptions())
                case Change(_, key, fields, subresource):
                    self._change(effect.plural, key, fields, subresource)
        except StatusError as error:
            log.warning("controller_refused", what=effect.plural, why=str(error))

    def _change(self, plural: str, key: Key, fields: Json, subresource: str) -> None:
        resource = self._resources[plural]
        self._registry.update(
            resource,
            key,
            lambda old: resource.decode(old | fields).value,
            subresource=subresource,
            manager="kube-controller-manager",
        )
