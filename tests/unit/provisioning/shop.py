"""A namespace with ProvisioningRequests, on an API server in memory: they go on without clocks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar

from reserver.base.pacer import Pacer
from reserver.errors import ApiError
from reserver.k8s.client import JSON_PATCH, MERGE_PATCH
from reserver.k8s.objects.objects import encode
from reserver.k8s.work_queue import WorkQueue
from reserver.provisioning.codec import COLLECTION
from reserver.settings.serve import Settings
from reserver.stores.writer import Patience
from tests.unit.k8s.clocks import ManualTime, worked_off
from tests.unit.k8s.crashes import Crash
from tests.unit.k8s.fakes import always, patched
from tests.unit.moves.api_server import SEATS, Api, Document
from tests.unit.moves.world import World

REQUESTS = COLLECTION.replace("v1/", "v1/namespaces/shop/")
TEMPLATES = "/api/v1/namespaces/shop/podtemplates"
POD_SETS = {"worker": 3, "driver": 1, "store": 1}
"""Pods of one CPU in each podSet: there is room for six, two of them on worker-1."""

_COLLECTED_AFTER = 10
"""After so many rounds the garbage collector comes round; Reserver is expected to be faster."""


class SetApi(Api):
    """An API server with sets, which refuses the writes of a killed Reserver.

    Attributes:
        is_struck: whether Reserver was killed.
        refused: the path of objects that are never created.
    """

    is_struck = False
    refused = ""

    async def create(self, path: str, body: object) -> bytes:
        if self.refused and encode(body).decode().find(self.refused) >= 0:
            raise ApiError(403, "Forbidden", "a webhook says no")
        return await super().create(path, body)

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        if content_type == MERGE_PATCH:
            return await super().patch(path, body)
        assert content_type == JSON_PATCH
        there = patched(self._there(path), json.loads(encode(body)))
        return self._write(path, lambda: self.put(SEATS, there))

    def _write(self, path: str, carry_out: Any) -> bytes:
        if self.is_struck:
            raise Crash
        try:
            return super()._write(path, carry_out)
        except Crash:
            self.is_struck = True
            raise


class Tasks:
    """The state of a process, which ends with the process."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []

    def create_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        self._tasks.append(asyncio.create_task(work))
        return self._tasks[-1]

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


class Shop(World):
    """Two nodes with a pod, PodTemplates, and a Reserver that carries out ProvisioningRequests.

    Attributes:
        is_over: whether nothing is left to wait for.
        happens: called after each round.
    """

    collections: ClassVar = World.collections | {COLLECTION: REQUESTS}

    def __init__(self) -> None:
        super().__init__()
        self.api: SetApi = self._with_sets()
        self.tasks: Any = Tasks()
        self.time = ManualTime()
        self.is_over: Callable[[], bool] = lambda: self.holds("Provisioned")
        self.happens: Callable[[], object] = lambda: None
        for name in POD_SETS:
            container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
            template = {"spec": {"containers": [container]}}
            self.api.add(TEMPLATES, {"metadata": {"name": name}, "template": template})

    def _with_sets(self) -> SetApi:
        made = SetApi()
        made.objects = self.api.objects
        return made

    def settings(self) -> Settings:
        return Settings(provisioning_requests=True, default_quota=self.quota)

    def ask(self, **parameters: str) -> None:
        """Write a ProvisioningRequest."""
        pod_sets = [
            {"podTemplateRef": {"name": name}, "count": count} for name, count in POD_SETS.items()
        ]
        spec: Document = {"provisioningClassName": "hold.reserver.io", "podSets": pod_sets}
        metadata = {"name": "job", "namespace": "shop"}
        self.api.add(REQUESTS, {"metadata": metadata, "spec": spec | {"parameters": parameters}})

    @property
    def said(self) -> Mapping[str, tuple[str, str]]:
        """Status and reason of each condition of the request; nothing once it is gone."""
        conditions = [
            each
            for request in self.api.of(REQUESTS)
            for each in request.get("status", {}).get("conditions", ())
        ]
        return {each["type"]: (each["status"], each["reason"]) for each in conditions}

    def holds(self, kind: str) -> bool:
        return self.said.get(kind, ("",))[0] == "True"

    async def start(self) -> None:
        """Start Reserver after the last one has ended, as `background` does."""
        await self.tasks.end()
        self.api.is_struck = False
        await super().start()
        for queue in self.reserver.queues():
            queue._time = self.time
        for store in self.reserver.stores:
            store.writer.patience = Patience(0.0, 0.0, 0.0)
            store.cache.abandon_unfinished()

    async def round(self) -> None:
        """Run the watches and Reserver once; deletions come last."""
        self.watch()
        assembly = self.reserver
        assert assembly.features.provisioner is not None
        await self._pass(assembly.placer.look(assembly.state, Pacer()))
        for store in assembly.stores:
            await self._pass(store.statuses.write(assembly.state))
        await self._work_off(
            assembly.features.provisioner.run(), assembly.features.provisioner.queue
        )
        await self._work_off(assembly.cleaner.run(assembly.stores, always), assembly.cleaner.queue)

    async def settle(self, rounds: int = 40) -> Document:
        """Run until `is_over` holds in two successive rounds."""
        is_over_since = 0
        for number in range(rounds):
            await self.round()
            self.happens()
            if number == _COLLECTED_AFTER:
                self._collect_garbage()
            is_over_since = is_over_since + 1 if self.is_over() else 0
            if is_over_since == 2:
                return {}
            self.api.now += 1.0
            self.time.now += 1.0
        raise AssertionError(f"still {self.said} with {self.api.of(SEATS)}")

    def _collect_garbage(self) -> None:
        owners = {request["metadata"]["uid"] for request in self.api.of(REQUESTS)}
        for seat in self.api.of(SEATS):
            (owner,) = seat["metadata"]["ownerReferences"]
            if owner["uid"] not in owners:
                self.api.remove(f"{SEATS}/{seat['metadata']['name']}")

    async def _work_off(self, running: Coroutine[Any, Any, None], queue: WorkQueue[Any]) -> None:
        await worked_off(running, queue)
        await self._seen()

    async def _pass(self, one: Coroutine[Any, Any, object]) -> None:
        try:
            await one
        except BaseExceptionGroup as group:
            raise Crash from group
        await self._seen()

    async def _seen(self) -> None:
        """Let requests under way finish, and watches show their writes; Reserver may be killed."""
        await self.time.settle()
        if self.api.is_struck:
            raise Crash
        self.watch()


async def asked(prepare: Callable[[Shop], object] = lambda _: None, **parameters: str) -> Shop:
    """Return a shop whose request was written a moment ago."""
    shop = Shop()
    prepare(shop)
    await shop.start()
    shop.ask(**parameters)
    return shop
