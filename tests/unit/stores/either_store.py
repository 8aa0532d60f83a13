"""A store of either kind, with the state behind it."""

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from reserver.base.pacer import outcome
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State
from reserver.stores.cache import Cache
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.entries import EntryProblem
from reserver.stores.object.cache import ObjectCache
from tests.builders import NOW, held, node, state_of
from tests.unit.stores.test_object_cache import made


class World(ABC):
    """A store, the state behind it, and its reports."""

    field: ClassVar[str] = ""
    store: Cache[Any, Any]

    def __init__(self) -> None:
        self.now = NOW
        self.state: State = state_of(node("worker-1", cpu="16"), now=0.0)
        self.reports: list[EntryProblem] = []
        self.touched: list[Ref] = []

    def _report(self, _: Metadata, problem: EntryProblem) -> None:
        self.reports.append(problem)

    @abstractmethod
    def put(
        self, key: str = "r", *, revision: int = 0, listed: bool = False, **changes: Any
    ) -> None:
        """Show a reservation of two CPUs for `owner`, with changes."""

    @abstractmethod
    def gone(self, key: str, *, revision: int = 2, listed: bool = False) -> None:
        """Show that the reservation is deleted."""

    @abstractmethod
    def ref(self, key: str = "r") -> Ref:
        """Return the ref of a key."""

    @property
    def held(self) -> int:
        return held(self.state, "worker-1") // 1000

    def is_to_go(self, key: str = "r", later: float = 0.0) -> bool:
        """Return whether the cleaner should remove the reservation; assert no other edit."""
        edit = self.store.due_edit(self.ref(key), self.now + later)
        assert edit is None or getattr(edit, "value", None) is None
        return edit is not None


class Keys(World):
    """ConfigMaps."""

    def __init__(self) -> None:
        super().__init__()
        self.data: dict[str, str] = {}
        self.store: ConfigMapCache = ConfigMapCache(
            self.state.ledger, lambda: self.now, self._report, self.touched.append
        )

    def ref(self, key: str = "r") -> Ref:
        return Ref("shop", "store", key)

    def put(
        self, key: str = "r", *, revision: int = 0, listed: bool = False, **changes: Any
    ) -> None:
        spec = {"owners": [{"pod": {"name": "owner"}}], "resources": {"cpu": "2"}}
        self.data[key] = json.dumps(spec | {"node": "worker-1", "ttl": 0} | changes)
        self._show(revision, listed=listed)

    def gone(self, key: str, *, revision: int = 2, listed: bool = False) -> None:
        self.data.pop(key, None)
        self._show(revision, listed=listed)

    def _show(self, revision: int, *, listed: bool) -> None:
        metadata = Metadata("store", "shop", "uid", str(revision))
        outcome(self.store.put(ConfigMapObject(metadata, dict(self.data)), listed=listed))


class Items(World):
    """Reservation objects."""

    field = "spec."

    def __init__(self) -> None:
        super().__init__()
        self.store: ObjectCache = ObjectCache(
            self.state.ledger, lambda: self.now, self._report, self.touched.append, home="home"
        )

    def ref(self, key: str = "r") -> Ref:
        return Ref.of_object("shop", key)

    def put(
        self, key: str = "r", *, revision: int = 0, listed: bool = False, **changes: Any
    ) -> None:
        spec: dict[str, Any] = {"owners": [{"pod": {"name": "owner"}}], "ttl": 0}
        self.store.put(made(key, revision=revision, **spec | changes), listed=listed)

    def gone(self, key: str, *, revision: int = 2, listed: bool = False) -> None:
        if listed:
            self.store.listed(revision)
        self.store.drop(("shop", key), revision)
