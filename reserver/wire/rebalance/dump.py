"""A dump of a cluster, as ``kubectl get nodes,pods,… -A -o json`` writes it, as an inventory.

It is a List in JSON or YAML, or several, or one JSON object a line. An object that cannot be read
costs itself and is named. Objects of kinds that nobody asks for are passed over.

Reading a large dump takes most of its time in Python's garbage collector unless the caller
disables it meanwhile.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from reserver.cluster.labels import Labels
from reserver.cluster.pod import PodName
from reserver.cluster.quantity import shorten
from reserver.cluster.storage import Storage
from reserver.errors import Fault, InvalidInput, sparing
from reserver.rebalance.inventory import Amounts, Budget, Inventory, ListedNode, ListedPod
from reserver.wire.k8s.nodes import NamespaceObject
from reserver.wire.k8s.objects import WireStruct, decode, encode
from reserver.wire.k8s.storage import ClaimObject, StorageClassObject, VolumeObject
from reserver.wire.rebalance.objects import (
    read_budget,
    read_claim_class,
    read_node,
    read_node_metrics,
    read_pod_metrics,
    read_priority_class,
)
from reserver.wire.rebalance.pods import read_pod
from reserver.wire.spec.document import parse

MOST_OBJECTS = 1_000_000
"""Objects of one dump that are read."""

MOST_BYTES = 2_097_152
"""The length of one object; etcd takes 1.5 MiB."""

MOST_YAML = 33_554_432
"""Characters of YAML, which takes a hundred times as long as JSON."""

MOST_NAMED = 1_000
"""Broken objects that are named; the others are counted."""

_REMEDY = "write what `kubectl get nodes,pods,namespaces,pdb,pvc -A -o json` writes"
_KIND = re.compile(rb'\s*\{\s*(?:"apiVersion"\s*:\s*"[^"\\]*"\s*,\s*)?"kind"\s*:\s*"([A-Za-z]+)"')
"""How all objects begin that the API server or kubectl has written."""

_DOCUMENT = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)

K = TypeVar("K")
V = TypeVar("V")


class Broken(NamedTuple):
    """An object that could not be read.

    Attributes:
        what: kind, namespace and name, as far as they are known, or the line.
        error: what is wrong with it.
    """

    what: str
    error: InvalidInput


@dataclass(frozen=True, kw_only=True)
class Dump:
    """What a dump says.

    Attributes:
        inventory: what could be read.
        broken: the first of what could not.
        broken_count: how many could not.
        passed_over: how many objects there were of kinds that nobody asks for.
    """

    inventory: Inventory
    broken: tuple[Broken, ...] = ()
    broken_count: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)


class _Named(WireStruct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Object(WireStruct, frozen=True):
    """Any object, or a List of them."""

    kind: str = ""
    metadata: _Named = _Named()
    items: list[msgspec.Raw] | None = None


def read_dump(raw: bytes) -> Dump:
    """Return what a dump says.

    Raises:
        InvalidInput: it is no dump at all.
    """
    reading = Reading()
    for place, document in _documents(raw):
        reading.take(place, document)
    return reading.result()


def read_lines(lines: Iterable[bytes]) -> Dump:
    """Return what a dump says that is one object a line, without having all of it in memory.

    Raises:
        InvalidInput: there are too many objects.
    """
    reading = Reading()
    for place, line in _numbered(lines):
        reading.take(place, line)
    return reading.result()


def is_one_a_line(lines: Iterable[bytes]) -> bool:
    """Return whether one of the first two lines is an object, and there are several lines."""
    heads = [line for _, line in islice(_numbered(lines), 2)]
    if len(heads) == 1 or not all(line[:1] == b"{" for line in heads[:1]):
        return False
    return any(line[:1] == b"{" and _is_json(line) for line in heads)


def _documents(raw: bytes) -> Iterator[tuple[str, bytes | msgspec.Raw]]:
    """Yield the JSON of each object or List, with where it is."""
    first = raw.lstrip()[:1]
    if not first:
        raise InvalidInput("", "the dump is empty", _REMEDY)
    if first == b"[":
        items = decode(list[msgspec.Raw], raw)
        yield from ((f"object {number}", item) for number, item in enumerate(items, start=1))
    elif is_one_a_line(_lines(raw)):
        yield from _numbered(_lines(raw))
    elif first == b"{":
        yield "the dump", raw
    else:
        yield from _yaml(raw)


def _lines(raw: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start) + 1 or len(raw)
        yield raw[start:end]
        start = end


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the lines that are not blank, with where they are."""
    for number, line in enumerate(map(bytes.strip, lines), start=1):
        if line:
            yield f"line {number}", line


def _is_json(line: bytes) -> bool:
    try:
        decode(_Object, line)
    except InvalidInput:
        return False
    return True


def _yaml(raw: bytes) -> Iterator[tuple[str, bytes]]:
    if len(raw) > MOST_YAML:
        problem = f"{len(raw)} bytes of YAML are too many"
        raise InvalidInput("", problem, f"keep it under {MOST_YAML}, or write JSON (-o json)")
    try:
        documents = _DOCUMENT.split(raw.decode())
        for number, document in enumerate(filter(str.strip, documents), start=1):
            yield f"document {number}", encode(parse(document, MOST_YAML))
    except UnicodeDecodeError as exc:
        raise InvalidInput("", f"the dump is not UTF-8: {exc.reason}", _REMEDY) from exc
    except InvalidInput as exc:
        raise InvalidInput(exc.path, exc.problem, _REMEDY) from exc


class Reading:
    """What has been read so far."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._nodes: dict[str, ListedNode] = {}
        self._pods: dict[PodName, ListedPod] = {}
        self._namespaces: dict[str, Labels] = {}
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
        self._takers: dict[str, Callable[[bytes | msgspec.Raw], None]] = {
            "Node": self._take_node,
            "Pod": self._take_pod,
            "Namespace": self._take_namespace,
            "PriorityClass": self._take_priority_class,
            "PodDisruptionBudget": self._take_budget,
            "PersistentVolumeClaim": self._take_claim,
            "PersistentVolume": self._take_volume,
            "StorageClass": self._take_storage_class,
            "NodeMetrics": self._take_node_metrics,
            "PodMetrics": self._take_pod_metrics,
        }

    def take(self, place: str, raw: bytes | msgspec.Raw) -> None:
        """Take an object or a List.

        Raises:
            InvalidInput: it is the whole dump, and cannot be read; or there are too many objects.
        """
        kind = _kind_of(raw)
        if kind in self._takers:
            self._take_object(place, kind, raw)
            return
        try:
            found = decode(_Object, raw)
        except InvalidInput as exc:
            if place == "the dump":
                raise InvalidInput(exc.path, exc.problem, _REMEDY) from exc
            self._name(place, exc)
            return
        if found.items is None:
            self._take_object(place, found.kind, raw)
            return
        kind = found.kind.removesuffix("List")
        for number, item in enumerate(found.items, start=1):
            self._take_item(f"{place}, item {number}", kind, item)

    def result(self) -> Dump:
        """Return what has been read."""
        inventory = Inventory(
            nodes=dict(sorted(self._nodes.items())),
            pods=tuple(pod for _, pod in sorted(self._pods.items())),
            namespaces=self._namespaces,
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
                found = decode(_Object, raw).kind
            except InvalidInput as exc:
                self._name(place, exc)
                return
        self._take_object(place, found, raw)

    def _take_object(self, place: str, kind: str, raw: bytes | msgspec.Raw) -> None:
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
                    "", f"{size} bytes are too many", f"no object exceeds {MOST_BYTES}"
                )
            taker(raw)

    def _name(self, what: str, exc: Exception) -> None:
        self._broken_count += 1
        if len(self._broken) < MOST_NAMED:
            fault = Fault("", f"{type(exc).__name__}: {exc}", "this is a bug, please report it")
            self._broken.append(Broken(what, exc if isinstance(exc, InvalidInput) else fault))

    def _take_node(self, raw: bytes | msgspec.Raw) -> None:
        node = read_node(raw)
        _put(self._nodes, node.name, node)

    def _take_pod(self, raw: bytes | msgspec.Raw) -> None:
        pod = read_pod(raw)
        _put(self._pods, pod.name, pod)

    def _take_namespace(self, raw: bytes | msgspec.Raw) -> None:
        metadata = decode(NamespaceObject, raw).metadata
        _put(self._namespaces, metadata.name, metadata.labels or {})

    def _take_priority_class(self, raw: bytes | msgspec.Raw) -> None:
        _put(self._priority_classes, *read_priority_class(raw))

    def _take_budget(self, raw: bytes | msgspec.Raw) -> None:
        budget = read_budget(raw)
        _put(self._budgets, budget.name, budget)

    def _take_claim(self, raw: bytes | msgspec.Raw) -> None:
        claim = decode(ClaimObject, raw).value()
        _put(self._storage.claims, claim.name, claim)
        self._claim_classes[claim.name] = read_claim_class(raw)

    def _take_volume(self, raw: bytes | msgspec.Raw) -> None:
        volume = decode(VolumeObject, raw).value()
        _put(self._storage.volumes, volume.name, volume)

    def _take_storage_class(self, raw: bytes | msgspec.Raw) -> None:
        found = decode(StorageClassObject, raw).value()
        _put(self._storage.classes, found.name, found)

    def _take_node_metrics(self, raw: bytes | msgspec.Raw) -> None:
        _put(self._node_usage, *read_node_metrics(raw))

    def _take_pod_metrics(self, raw: bytes | msgspec.Raw) -> None:
        _put(self._pod_usage, *read_pod_metrics(raw))


def _kind_of(raw: bytes | msgspec.Raw) -> str:
    """Return the kind of an object that begins with it, as most do; empty for the others."""
    found = _KIND.match(memoryview(raw))
    return str(found[1], "ascii") if found else ""


def _what(place: str, kind: str, raw: bytes | msgspec.Raw) -> str:
    try:
        metadata = decode(_Object, raw).metadata
    except InvalidInput:
        return place
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    return f"{kind} {shorten(name, 200)}"


def _put(known: dict[K, V], key: K, value: V) -> None:
    if key in known:
        raise InvalidInput("", "it is in the dump twice", "dump the cluster at one moment")
    if not (key.name if isinstance(key, PodName) else key):
        raise InvalidInput("metadata.name", "is empty", "every object has a name")
    known[key] = value
