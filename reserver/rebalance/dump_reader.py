"""Reads the objects of a cluster, one by one, into a `ClusterState`.

An unreadable object is left out and named. Objects of other kinds are ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec

from reserver.cluster.budgets import Budget, unread
from reserver.cluster.labels import Labels
from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.cluster.storage import Storage, StorageClass, Volume
from reserver.errors import Fault, InvalidInput, sparing
from reserver.k8s.objects.budgets import TOO_LARGE, BudgetObject
from reserver.k8s.objects.nodes import NamespaceObject
from reserver.k8s.objects.objects import WireStruct, decode
from reserver.k8s.objects.pod_annotations import move_window
from reserver.k8s.objects.storage import ClaimObject, StorageClassObject, VolumeObject
from reserver.rebalance.cluster_state import Amounts, ClusterState, ListedNode, ListedPod
from reserver.rebalance.dump_objects import (
    Raw,
    read_node,
    read_node_metrics,
    read_pod_metrics,
    read_priority_class,
)
from reserver.rebalance.dump_pods import read_pod

MOST_OBJECTS = 1_000_000
"""Objects of one dump that are read."""

MOST_BYTES = 2_097_152
"""The length of one object; etcd takes 1.5 MiB."""

MOST_NAMED = 1_000
"""Broken objects that are named; the others are counted."""

REMEDY = "write what `kubectl get nodes,pods,namespaces,pdb,pvc -A -o json` writes"
_KIND = re.compile(rb'\s*\{\s*(?:"apiVersion"\s*:\s*"[^"\\]*"\s*,\s*)?"kind"\s*:\s*"([A-Za-z]+)"')
"""The beginning of every object that the API server or kubectl writes."""

K = TypeVar("K")
V = TypeVar("V")
N = TypeVar("N", ListedNode, ListedPod, Budget, Volume, StorageClass)


class Broken(NamedTuple):
    """An object that could not be read.

    Attributes:
        what: kind, namespace and name, as far as they could be read, or the line.
        error: the invalid field.
    """

    what: str
    error: InvalidInput


@dataclass(frozen=True, kw_only=True)
class Dump:
    """The content of a dump.

    Attributes:
        inventory: what could be read.
        broken: the first of what could not.
        broken_count: how many could not.
        passed_over: how many objects there were of kinds that nobody asks for.
    """

    inventory: ClusterState
    broken: tuple[Broken, ...] = ()
    broken_count: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)


class _Named(WireStruct, frozen=True):
    name: str = ""
    namespace: str = ""


class AnyObject(WireStruct, frozen=True):
    """Any object, or a List of them."""

    kind: str = ""
    metadata: _Named = _Named()
    items: list[msgspec.Raw] | None = None


class DumpReading:
    """The state of reading a dump."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._nodes: dict[str, ListedNode] = {}
        self._pods: dict[PodName, ListedPod] = {}
        self._namespaces: dict[str, Labels] = {}
        self._move_windows: dict[str, str] = {}
        self._priority_classes: dict[str, int] = {}
        self._budgets: dict[PodName, Budget] = {}
        self._storage = Storage()
        self._claim_classes: dict[PodName, str] = {}
        self._node_usage: dict[str, Amounts] = {}
        self._pod_usage: dict[PodName, tuple[Amounts, ...]] = {}
        self._broken: list[Broken] = []
        self._broken_count = 0
        self._passed_over: Counter[str] = Counter()
        self._count = 0
        self._takers: dict[str, Callable[[Raw], None]] = {
            "Node": _into(self._nodes, _named(read_node)),
            "Pod": _into(self._pods, _named(read_pod)),
            "Namespace": self._take_namespace,
            "PriorityClass": _into(self._priority_classes, read_priority_class),
            "PodDisruptionBudget": _into(self._budgets, _named(_budget)),
            "PersistentVolumeClaim": self._take_claim,
            "PersistentVolume": _into(self._storage.volumes, _named(_volume)),
            "StorageClass": _into(self._storage.classes, _named(_storage_class)),
            "NodeMetrics": _into(self._node_usage, read_node_metrics),
            "PodMetrics": _into(self._pod_usage, read_pod_metrics),
        }

    def take(self, place: str, raw: Raw) -> None:
        """Take an object or a List.

        Raises:
            InvalidInput: it is the whole dump, and cannot be read; or there are too many objects.
        """
        kind = _kind_of(raw)
        if kind in self._takers:
            self._take_object(place, kind, raw)
            return
        try:
            found = decode(AnyObject, raw)
        except InvalidInput as exc:
            if place == "the dump":
                raise InvalidInput(exc.path, exc.problem, REMEDY) from exc
            self._name(place, exc)
            return
        if found.items is None:
            self._take_object(place, found.kind, raw)
            return
        kind = found.kind.removesuffix("List")
        for number, item in enumerate(found.items, start=1):
            self._take_item(f"{place}, item {number}", kind, item)

    def result(self) -> Dump:
        """Return the cluster and the unreadable objects."""
        inventory = ClusterState(
            nodes=dict(sorted(self._nodes.items())),
            pods=tuple(pod for _, pod in sorted(self._pods.items())),
            namespaces=self._namespaces,
            move_windows=self._move_windows,
            priority_classes=self._priority_classes,
            budgets=tuple(budget for _, budget in sorted(self._budgets.items())),
            storage=self._storage,
            claim_classes=self._claim_classes,
            node_usage=self._node_usage,
            pod_usage=self._pod_usage,
        )
        return Dump(
            inventory=inventory,
            broken=tuple(self._broken),
            broken_count=self._broken_count,
            passed_over=self._passed_over,
        )

    def _take_item(self, place: str, kind: str, raw: msgspec.Raw) -> None:
        found = _kind_of(raw) or kind  # Those of a PodList do not repeat it.
        if not found:
            try:
                found = decode(AnyObject, raw).kind
            except InvalidInput as exc:
                self._name(place, exc)
                return
        self._take_object(place, found, raw)

    def _take_object(self, place: str, kind: str, raw: Raw) -> None:
        self._count += 1
        if self._count > MOST_OBJECTS:
            problem = f"the dump has more than {MOST_OBJECTS} objects"
            raise InvalidInput("", problem, "dump fewer kinds, or fewer namespaces")
        taker = self._takers.get(kind)
        if taker is None:
            self._passed_over[kind] += 1
            return
        with sparing(lambda exc: self._name(_what(place, kind, raw), exc)):
            size = memoryview(raw).nbytes
            if size > MOST_BYTES:
                raise InvalidInput(
                    "",
                    f"{size} bytes are too many",
                    f"leave it out; {MOST_BYTES} are the most",
                )
            taker(raw)

    def _name(self, what: str, exc: Exception) -> None:
        self._broken_count += 1
        if len(self._broken) < MOST_NAMED:
            fault = Fault("", f"{type(exc).__name__}: {exc}", "this is a bug, please report it")
            self._broken.append(Broken(what, exc if isinstance(exc, InvalidInput) else fault))

    def _take_namespace(self, raw: Raw) -> None:
        metadata = decode(NamespaceObject, raw).metadata
        _put(self._namespaces, metadata.name, metadata.labels or {})
        if window := move_window(metadata.annotations or {}):
            self._move_windows[metadata.name] = window

    def _take_claim(self, raw: Raw) -> None:
        found = decode(ClaimObject, raw)
        claim = found.value()
        _put(self._storage.claims, claim.name, claim)
        self._claim_classes[claim.name] = found.spec.storage_class_name or ""


def _kind_of(raw: Raw) -> str:
    """Return the kind of an object that begins with it, as most do; empty for the others."""
    found = _KIND.match(memoryview(raw))
    return str(found[1], "ascii") if found else ""


def _what(place: str, kind: str, raw: Raw) -> str:
    try:
        metadata = decode(AnyObject, raw).metadata
    except InvalidInput:
        return place
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    return f"{kind} {shorten(name, 200)}"


def _into(known: dict[K, V], read: Callable[[Raw], tuple[K, V]]) -> Callable[[Raw], None]:
    """Return the function that reads an object and adds it to its kind."""
    return lambda raw: _put(known, *read(raw))


def _named(read: Callable[[Raw], N]) -> Callable[[Raw], tuple[Any, N]]:
    """Return what reads an object and its name."""

    def named(raw: Raw) -> tuple[Any, N]:
        value = read(raw)
        return value.name, value

    return named


def _budget(raw: Raw) -> Budget:
    if len(raw) > BudgetObject.MOST_BYTES:  # The rest of its namespace is planned with care.
        metadata = decode(AnyObject, raw).metadata
        return unread(PodName(metadata.namespace, metadata.name), TOO_LARGE)
    return decode(BudgetObject, raw).value()


def _volume(raw: Raw) -> Volume:
    return decode(VolumeObject, raw).value()


def _storage_class(raw: Raw) -> StorageClass:
    return decode(StorageClassObject, raw).value()


def _put(known: dict[K, V], key: K, value: V) -> None:
    if key in known:
        raise InvalidInput("", "is in the dump twice", "dump the cluster once")
    if not (key.name if isinstance(key, PodName) else key):
        raise InvalidInput("metadata.name", "is empty", "dump the cluster again")
    known[key] = value
