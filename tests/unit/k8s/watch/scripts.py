"""Scripts of answers of the API server, and a reflector that reads them."""

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from reserver.base.pacer import Steps
from reserver.k8s.objects.objects import Metadata, PartialObject, metadata_of
from reserver.k8s.watch.object_view import ObjectView
from reserver.k8s.watch.reflector import Reflector
from tests.unit.k8s.fakes import PatientClient

PATH = "/api/v1/pods"


class Recorded(ObjectView[PartialObject]):
    """A view that records its changes."""

    def __init__(self) -> None:
        super().__init__(PartialObject, lambda *_: None, lambda _: None, known=tuple)
        self.told: list[str] = []

    def list_began(self, seen: int = 0) -> None:
        self.seen_up_to = seen

    def listed(self, item: PartialObject | msgspec.Raw) -> Steps:
        yield
        self.told.append(f"listed {_name(item)}")

    def list_ended(self, _: int) -> Steps:
        yield
        self.told.append("end")

    def changed(self, item: PartialObject | msgspec.Raw) -> Generator[None, None, Metadata]:
        yield
        self.told.append(f"changed {_name(item)}")
        return metadata_of(item)

    def deleted(self, item: PartialObject | msgspec.Raw) -> Generator[None, None, Metadata]:
        yield
        self.told.append(f"deleted {_name(item)}")
        return metadata_of(item)


def _name(item: PartialObject | msgspec.Raw) -> str:
    return metadata_of(item).name


def thing(name: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": version}}


def page(*names: str, version: str = "10", more: str = "") -> dict[str, Any]:
    items = [thing(name) for name in names]
    return {"metadata": {"resourceVersion": version, "continue": more}, "items": items}


def event(kind: str, name: str, version: str) -> dict[str, Any]:
    return {"type": kind, "object": thing(name, version)}


class Played:
    """A reflector that has read a script to its end."""

    def __init__(self, client: PatientClient, view: Recorded, reflector: Reflector) -> None:
        self.client, self.told, self.reflector = client, view.told, reflector

    @property
    def calls(self) -> list[str]:
        """Return each call, with its resourceVersion or its continue token."""
        asked = []
        for request in self.client.requests:
            params = request.params or {}
            on = params.get("resourceVersion") or params.get("continue")
            asked.append(f"{request.verb} {on}" if on else request.verb)
        return asked


async def play(
    *script: Any,
    selector: dict[str, str] | None = None,
    timer: Callable[[], float] = time.monotonic,
) -> Played:
    client, view = PatientClient(*script), Recorded()
    reflector = Reflector(client, PATH, view, selector, timer=timer)
    await run(reflector, client)
    return Played(client, view, reflector)


async def run(reflector: Reflector, client: PatientClient) -> None:
    """Run a reflector until the end of the script."""
    task = asyncio.create_task(reflector.run())
    waiting = asyncio.create_task(client.played.wait())
    done, _ = await asyncio.wait([task, waiting], timeout=2, return_when="FIRST_COMPLETED")
    waiting.cancel()
    task.cancel()
    if task in done:
        task.result()
