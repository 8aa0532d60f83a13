"""An etcd, and a view of one collection in it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from reserver.errors import ApiError
from reserver.k8s.objects.objects import PartialObject
from reserver.k8s.watch.back_in_time import compare
from reserver.k8s.watch.object_view import Key, ObjectView
from reserver.k8s.watch.reflector import Reflector
from tests.unit.k8s.fakes import Request, ScriptedClient, refused

PODS = "/api/v1/pods"
STORES = "/api/v1/namespaces/shop/configmaps"


class Etcd(ScriptedClient):
    """Answers reads of single objects.

    Attributes:
        objects: the resourceVersion of each, by its path.
        fault: the error that answers each read.
        answers: set while etcd answers.
        frozen: the reason to stop all writes.
    """

    def __init__(self, objects: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.objects = dict(objects or {})
        self.fault: ApiError | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self.frozen = ""

    def freeze(self, why: str) -> None:
        self.frozen = why

    async def _next(self, request: Request) -> Any:
        self.requests.append(request)
        await self.answers.wait()
        if self.fault is not None:
            raise self.fault
        if request.path not in self.objects:
            raise refused(404)
        return {"metadata": {"resourceVersion": str(self.objects[request.path])}}


class World:
    """A view of one collection, and etcd.

    Attributes:
        known: the resourceVersions of the objects in the view.
    """

    def __init__(self, known: dict[Key, int], etcd: Mapping[Key, int], path: str = PODS) -> None:
        self.known = known
        kind = "configmaps" if path == STORES else "pods"
        self.etcd = Etcd(
            {f"/api/v1/namespaces/{space}/{kind}/{name}": at for (space, name), at in etcd.items()}
        )
        view = ObjectView(
            PartialObject,
            seen=lambda *_: None,
            gone=lambda _: None,
            known=lambda: self.known,
            revision_of=lambda key: self.known.get(key, 0),
        )
        self.reflector = Reflector(self.etcd, path, view)
        self.reflector.distrust = self.doubted  # type: ignore[method-assign]
        self.shows_what_was_missed: Callable[[], object] = lambda: None

    def doubted(self, seconds: float) -> None:  # noqa: ARG002
        """Show the missed changes, as a watch that catches up."""
        self.shows_what_was_missed()
        self.reflector._lag.end()

    async def compare(self) -> None:
        await compare(self.etcd, self.reflector)
