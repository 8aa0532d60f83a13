"""Writers of both kinds of stores, each with an API server that plays a script."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from reserver.base.pacer import outcome
from reserver.k8s.objects.objects import ConfigMapObject, Metadata, decode
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.stores.cache import Cache
from reserver.stores.codec import document, spec_codec
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.configmap.writer import ConfigMapWriter
from reserver.stores.edits import Deletion, Edit
from reserver.stores.entries import Entries
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import ReservationObject
from reserver.stores.object.edits import Abandonment
from reserver.stores.object.writer import ObjectWriter
from reserver.stores.writer import Patience, Writer
from tests.builders import NOW, held, node, state_of
from tests.unit.k8s.fakes import AT_ONCE, NO_ANSWER, OVERTAKEN, ScriptedClient, refused

HOME = "reserver-system"
LABELS = {"reserver.io/store": "true"}


def text(key: str, cpu: int = 1) -> str:
    """Return the spec of a reservation for a writer."""
    owner = {"pod": {"name": f"owner-{key}", "namespace": "shop"}}
    spec = {"owners": [owner], "resources": {"cpu": cpu}, "node": "worker-1", "ttl": 0}
    return json.dumps({**spec, "origin": f"{HOME}/{key}#token-{key}"})


def configmap(version: int, data: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    """Return a ConfigMap as the API server shows it."""
    metadata = {"name": "reservations", "namespace": HOME, "resourceVersion": str(version)}
    return {"metadata": metadata | {"labels": labels or LABELS}, "data": data or {}}


def item(key: str, version: int = 1, *, spec: str = "", **metadata: Any) -> dict[str, Any]:
    """Return an object as the API server shows it, with the defaults of the schema."""
    whole = {"name": key, "namespace": HOME, "uid": f"uid-{key}", "resourceVersion": str(version)}
    said = json.loads(spec or text(key)) | {"slots": 1, "policy": "Prefer"}
    return {"metadata": whole | metadata, "spec": said}


class Desk(ABC):
    """A writer on a store, with an API server that plays a script.

    Attributes:
        written: the answers of an API server that has written `a` as version 7.
        taken: the answers of an API server that has another object of that name.
        unsure: the answers when the answer to the write of `a` was lost.
        unsure_taken: as `unsure`, but with another object of that name.
        changed: the answers of an API server that has changed `a` as version 9.
        forestalled: the answers when another client changed or removed `a` before.
    """

    written: ClassVar[tuple[Any, ...]]
    taken: ClassVar[tuple[Any, ...]]
    unsure: ClassVar[tuple[Any, ...]]
    unsure_taken: ClassVar[tuple[Any, ...]]
    changed: ClassVar[tuple[Any, ...]]
    forestalled: ClassVar[tuple[Any, ...]]

    store: Cache[Any, Any]
    writer: Writer[Any]

    def __init__(self, *script: Any) -> None:
        self.client = ScriptedClient(*script)
        self.state: State = state_of(node("worker-1", cpu="4"))
        self.touched: list[Ref] = []

    @abstractmethod
    def ref(self, key: str) -> Ref:
        """Return the ref of a reservation."""

    @abstractmethod
    def shows(self, version: int, **cpus: int) -> None:
        """Show the whole collection by the watch: reservations by name, with their CPUs."""

    def insert(
        self,
        *keys: str,
        text: Callable[[str], str] = text,
        size: int = 0,
        namespace: str = HOME,
    ) -> Any:
        ref = self.writer.new_ref(dict.fromkeys(keys, size))._replace(namespace=namespace)
        texts = {key: text(key) for key in keys}
        entries = {
            key: Entries((spec_codec.read(document.parse(each), ref._replace(key=key), NOW),))
            for key, each in texts.items()
        }
        return self.writer.insert(ref, texts, entries, {})

    def edit(self, value: str | None, key: str = "a") -> asyncio.Task[bool]:
        """Begin to change or remove a stored reservation."""
        seen, _ = self.store.latest(self.ref(key)) or ("", None)
        return asyncio.create_task(self.writer.edit(Edit(self.ref(key), seen, value, "changed")))

    @property
    def is_waiting(self) -> bool:
        """Whether a task waits for an event of a watch."""
        return bool(self.store._awaited._conditions)

    @property
    def held(self) -> int:
        """The CPUs that are held."""
        return held(self.state, "worker-1") // 1000


class KeyDesk(Desk):
    """Writes ConfigMaps; the watch first shows version 3 of an empty one."""

    written = (configmap(7, {"a": text("a")}),)
    taken = (OVERTAKEN, configmap(8, {"a": "theirs"}))
    unsure = (NO_ANSWER, OVERTAKEN, configmap(8, {"a": text("a")}))
    unsure_taken = (NO_ANSWER, *taken)
    changed = (configmap(9),)
    forestalled = (OVERTAKEN,)

    store: ConfigMapCache
    writer: ConfigMapWriter

    def __init__(
        self, tasks: asyncio.TaskGroup, *script: Any, patience: Patience = AT_ONCE
    ) -> None:
        super().__init__(*script)
        self.store = ConfigMapCache(
            self.state.ledger, lambda: NOW, lambda *_: None, self.touched.append
        )
        self.writer = ConfigMapWriter(self.client, self.store, HOME, tasks, patience)
        self.show(3, {})

    def ref(self, key: str) -> Ref:
        return Ref(HOME, "reservations", key)

    def show(self, version: int, data: dict[str, str], configmap_: str = "reservations") -> None:
        metadata = Metadata(configmap_, HOME, "u", str(version))
        outcome(self.store.put(ConfigMapObject(metadata, data)))

    def shows(self, version: int, **cpus: int) -> None:
        self.show(version, {key: text(key, cpu) for key, cpu in cpus.items()})


class ItemDesk(Desk):
    """Writes objects."""

    written = (item("a", 7),)
    taken = (refused(409),)
    unsure = (NO_ANSWER, refused(409), NO_ANSWER, item("a", 7))
    unsure_taken = (NO_ANSWER, refused(409), item("a", 7, spec=text("a", cpu=3)))
    changed = (item("a", 9),)
    forestalled = (refused(404), refused(404))

    store: ObjectCache
    writer: ObjectWriter

    def __init__(
        self, tasks: asyncio.TaskGroup, *script: Any, patience: Patience = AT_ONCE
    ) -> None:
        super().__init__(*script)
        self.store = ObjectCache(
            self.state.ledger, lambda: NOW, lambda *_: None, self.touched.append, home=HOME
        )
        self.writer = ObjectWriter(self.client, self.store, HOME, tasks, patience)

    def ref(self, key: str) -> Ref:
        return Ref.of_object(HOME, key)

    def show(self, *items: dict[str, Any]) -> None:
        for each in items:
            self.store.put(decode(ReservationObject, json.dumps(each).encode()))

    def gone(self, *keys: str) -> None:
        for key in keys:
            self.store.drop((HOME, key))

    def shows(self, version: int, **cpus: int) -> None:
        self.gone(*{key for _, key in self.store.names()} - cpus.keys())
        self.show(*(item(key, version, spec=text(key, cpu)) for key, cpu in cpus.items()))

    def due(self, key: str) -> Deletion | Abandonment | None:
        return self.store.due_edit(self.ref(key), NOW)

    @property
    def set_id(self) -> str:
        """The name of the set under way."""
        (body,) = [r.body for r in self.client.requests if r.verb == "create"][:1]
        return str(body["metadata"]["labels"]["reserver.io/set"])
