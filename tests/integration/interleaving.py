"""Reservers on one store, whose requests and watches advance one at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from reserver.errors import ApiError
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.objects.objects import encode
from reserver.stores.writer import StoreEdits
from tests.builders import NOW
from tests.unit.k8s.fakes import patched, refused
from tests.unit.stores.desks import HOME, ItemDesk

Item = dict[str, Any]


class Server:
    """The Reservations of a cluster, and their history.

    Attributes:
        items: the Reservations of Reserver's namespace, by name.
        others: Reservations of another namespace with the same names and label; never written.
        events: all changes of either namespace, in order.
    """

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.others: dict[str, Item] = {}
        self.events: list[tuple[str, Item]] = []

    def carry_out(self, verb: str, path: str, body: Any) -> bytes:
        """Carry out a request as the API server does, at once."""
        assert f"/namespaces/{HOME}/" in path
        body, key = json.loads(encode(body)), path.rpartition("/")[2]
        there = self.items.get(key)
        if verb == "create":
            key = body["metadata"]["name"]
            if key in self.items:
                raise refused(409)
            self._mirror(key, body)
            return self._put(key, body, uid=f"uid-{len(self.events)}")
        if there is None:
            raise refused(404)
        if verb == "get":
            return encode(there)
        if verb == "patch":
            return self._put(key, patched(there, body))
        wanted = {"uid": there["metadata"]["uid"], "resourceVersion": self._version(there)}
        if body["preconditions"] != wanted:
            raise refused(409)
        del self.items[key]
        self.events.append(("DELETED", there))
        return b"{}"

    def _put(self, key: str, after: Item, **more: str) -> bytes:
        version = {"resourceVersion": str(len(self.events) + 1), "namespace": HOME}
        spec = after["spec"] | {"slots": 1, "policy": "Prefer"}
        made = {**after, "metadata": {**after["metadata"], **version, **more}, "spec": spec}
        self.items[key] = made
        self.events.append(("MODIFIED", made))
        return encode(made)

    def _mirror(self, key: str, body: Item) -> None:
        """Add a Reservation of the same name and set label in another namespace."""
        labels = body["metadata"]["labels"]
        metadata = {"name": key, "namespace": "shop", "uid": f"shop-{key}", "labels": labels}
        spec = {name: each for name, each in body["spec"].items() if name != "origin"}
        version = {"resourceVersion": str(len(self.events) + 1)}
        self.others[key] = {"metadata": metadata | version, "spec": spec}
        self.events.append(("MODIFIED", self.others[key]))

    @staticmethod
    def _version(there: Item) -> str:
        return str(there["metadata"]["resourceVersion"])


class Reserver(ApiClient):
    """A Reserver whose requests and watch events advance when a test takes their turns."""

    def __init__(self, server: Server, tasks: asyncio.TaskGroup) -> None:
        self.api = server
        self.desk = ItemDesk(tasks)
        self.desk.writer.client = self.desk.client = self  # type: ignore[assignment]
        self.pending: list[tuple[asyncio.Future[bytes], tuple[str, str, Any]]] = []
        self.shown = 0
        self.writing: asyncio.Task[Any] | None = None
        self.cleaning = tasks.create_task(self._clean())

    def start(self) -> None:
        """List all Reservations, and take back unfinished sets."""
        self.shown = len(self.api.events)
        self.desk.show(*self.api.items.values(), *self.api.others.values())
        self.desk.store.abandon_unfinished()

    def insert(self, keys: str) -> None:
        self.writing = self.desk.insert(*keys)

    def turns(self) -> Iterator[Callable[[], None]]:
        """Yield the possible next steps."""
        for index in range(len(self.pending)):
            yield partial(self._answer, index)
        if self.shown < len(self.api.events):
            yield self.see

    def die(self, *, is_lost: bool) -> None:
        """End; requests in flight are lost, or carried out all the same."""
        for _, request in () if is_lost else self.pending:
            with suppress(ApiError):
                self.api.carry_out(*request)
        self.pending.clear()
        self.cleaning.cancel()
        if self.writing is not None:
            self.writing.cancel()

    def _answer(self, index: int) -> None:
        answer, request = self.pending.pop(index)
        try:
            answer.set_result(self.api.carry_out(*request))
        except ApiError as exc:
            answer.set_exception(exc)

    def see(self) -> None:
        verb, item = self.api.events[self.shown]
        self.shown += 1
        if verb == "DELETED":
            self.desk.gone(item["metadata"]["name"])
        else:
            self.desk.show(item)

    async def _clean(self) -> None:
        """Do as the cleaner does: apply the due edit of each touched Reservation."""
        apply = StoreEdits(self)
        while True:
            touched, self.desk.touched[:] = tuple(dict.fromkeys(self.desk.touched)), ()
            for ref in touched:
                edit = self.desk.store.due_edit(ref, NOW)
                if edit is not None:
                    await apply.edit(edit)
            await asyncio.sleep(0)

    async def _asked(self, verb: str, path: str, body: Any = None) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.pending.append((answer, (verb, path, body)))
        return await answer

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:  # noqa: ARG002
        return await self._asked("get", path)

    async def create(self, path: str, body: object) -> bytes:
        return await self._asked("create", path, body)

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:  # noqa: ARG002
        return await self._asked("patch", path, body)

    async def delete(self, path: str, options: object) -> bytes:
        return await self._asked("delete", path, options)
