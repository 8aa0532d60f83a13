"""Reads the entries of stores in the three forms of docs/reservations.md, and Reservations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from hack.promises.amounts import Amounts, amounts, duration, moment
from hack.promises.owners import Rule, read_owners
from hack.promises.pods import Pod
from hack.promises.series import Course, Series, read_schedule

DEFAULT_TTL = "24h"
_MOST_REFILLED = 1000
_NODES = "nodes"
"""The resource of a slot that is a whole node."""
_ANY_NUMBER = 10**9
_SHORT = ("pod", "namespace", "cpu", "mem", "expire")
_LONG = ("reservingPod", "reservingPodNamespace", "cpuMilli", "memMilli", "expireAt")
_SPEC_FIELDS = frozenset(
    (
        *("owners", "resources", "slots", "node", "startsAt", "expiresAt", "ttl", "policy"),
        *("reusable", "refill", "refillUpTo", "placement", "placements", "preemptible", "priority"),
        *("requestId", "origin", "releaseIfIdle", "schedule", "lend", "nodes"),
    )
)


class _Loader(yaml.SafeLoader):
    """YAML without times: 2030-01-31T10:00:00Z stays the text that was written."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Ref(NamedTuple):
    """The place of an entry.

    Attributes:
        configmap: ``namespace/name``; for a Reservation the namespace alone.
        key: the data key, or the Reservation's name.
        item: in a list, the owner as ``namespace/name``; the text of a broken entry.
    """

    configmap: str
    key: str
    item: str = ""

    def __str__(self) -> str:
        """Return the name that claims and messages use."""
        item = f"[{self.item}]" if self.item else ""
        return f"{self.configmap}/{self.key}{item}"


Parts = tuple[tuple[str, int], ...]
"""Slots by node."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The content of an entry; equal entries are the same reservation.

    Attributes:
        node: the node that it holds capacity of; empty for a broken entry, which holds nothing, and
            for an entry that Reserver places.
        owners: the pods that it names, as ``namespace/name``.
        rules: the rules of its other owners.
        resources: resources of one slot.
        slots: the number of pods that may claim it.
        reusable: a slot is free again after its pod has gone.
        refill_up_to: claimed slots are replaced up to this number of slots; 0: no refill.
        release_if_idle: seconds without a pod until the release; 0: never.
        starts: unix seconds, 0 for at once.
        expires: unix seconds, None without an expiry.
        ttl_s: lifetime in seconds from its first sight; None for ever, or with `expires`.
        require: owners may land on no other node.
        yields_above: pods of a higher priority may take its room; None: no pod may.
        lends_below: recallable pods of a lower priority may borrow its room; None: no pod may.
        series: the series of a recurring entry; None for others.
        course: the skipped part of the series; not compared.
        origin: the ref that its claims name, if the entry was moved here.
        placement: the nodes that Reserver may choose, as JSON.
        placements: slots by node that Reserver has chosen; not compared.
        broken: the text of an unreadable entry.
    """

    node: str = ""
    owners: frozenset[str] = frozenset()
    rules: frozenset[Rule] = frozenset()
    resources: Amounts = field(default_factory=dict, hash=False)
    slots: int = 1
    reusable: bool = False
    refill_up_to: int = 0
    release_if_idle: float = 0.0
    starts: float = 0.0
    expires: float | None = None
    ttl_s: float | None = None
    require: bool = False
    yields_above: int | None = None
    lends_below: int | None = None
    series: Series | None = None
    course: Course = field(default=Course(), compare=False)
    origin: str = ""
    placement: str = ""
    placements: Parts = field(default=(), compare=False)
    broken: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether its slots are whole nodes, for any number of pods."""
        return _NODES in self.resources

    @property
    def most_placed(self) -> int:
        """The most slots of the entry."""
        return self.refill_up_to or self.slots

    @property
    def most_slots(self) -> int:
        """The most pods with a slot at the same time."""
        return _ANY_NUMBER if self.is_whole else self.most_placed

    def lends_to(self, pod: Pod) -> bool:
        """Return whether a pod may borrow from this entry."""
        return self.lends_below is not None and pod.may_borrow and pod.priority < self.lends_below


@lru_cache(maxsize=100_000)
def read_key(configmap: str, key: str, text: str) -> dict[Ref, Entry]:
    """Return the entries of one data key; an unreadable text becomes a broken entry."""
    ref = Ref(configmap, key)
    try:
        document = _parse(text)
    except yaml.YAMLError:
        return {ref: Entry(broken=text)}
    if document is None:
        return {}
    if isinstance(document, list):
        return dict(_read_list(ref, document))
    try:
        return {ref: _spec(document, configmap.partition("/")[0])}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {ref: Entry(broken=text)}


def read_parts(written: Any) -> Parts:  # noqa: ANN401 - whatever YAML can hold
    """Return where an entry says that it was placed."""
    return tuple((str(part["node"]), int(part["slots"])) for part in written or ())


def _parse(text: str) -> Any:  # noqa: ANN401 - whatever YAML can hold
    try:
        return json.loads(text)
    except ValueError:
        return yaml.load(text, _Loader)  # noqa: S506 - derived from SafeLoader


def _read_list(ref: Ref, items: list[Any]) -> Iterator[tuple[Ref, Entry]]:
    seen = set()
    for item in items:
        text = json.dumps(item, sort_keys=True, default=str)
        try:
            entry = _item(item, ref.key)
        except (ValueError, TypeError, KeyError):
            entry = Entry(broken=text)
        owner = "".join(entry.owners)
        if owner in seen:  # Only the first of those for one pod counts.
            entry, owner = Entry(broken=text), ""
        seen.add(owner)
        yield ref._replace(item=owner or text), entry


def _item(item: dict[str, Any], node: str) -> Entry:
    pod, namespace, cpu, memory, expiry = _LONG if "reservingPod" in item else _SHORT
    held = {"cpu": _whole(item[cpu]), "memory": _whole(item[memory])}
    if not any(held.values()):
        raise ValueError("holds nothing")
    return Entry(
        node=node,
        owners=frozenset({f"{item[namespace]}/{item[pod]}"}),
        resources={**held, "pods": 1},
        expires=moment(item[expiry]),
    )


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not an amount")
    return value


def _spec(document: dict[str, Any], namespace: str) -> Entry:
    if set(document) - _SPEC_FIELDS:
        raise ValueError("says what is not known")
    names, rules = read_owners(document["owners"], namespace)
    expires, ttl_s = document.get("expiresAt"), duration(str(document.get("ttl", DEFAULT_TTL)))
    nodes = document.get("nodes")
    resources = {_NODES: 1} if nodes else {"pods": 1, **amounts(document["resources"])}
    node, placement = document.get("node") or "", document.get("placement")
    slots = _whole(nodes["count"] if nodes else document.get("slots", 1))
    if min(resources.values()) < 0 or not slots or (node and placement is not None):
        raise ValueError("names a node and a placement, or has no slot, or less than nothing in it")
    starts = moment(document["startsAt"]) if document.get("startsAt") else 0.0
    series, course = None, Course()
    if document.get("schedule") is not None:
        series, course = read_schedule(document["schedule"], starts)
        starts, expires, ttl_s = 0.0, None, 0.0
    return Entry(
        node=node,
        placement=json.dumps([placement, nodes], sort_keys=True) if placement or nodes else "",
        placements=() if node else read_parts(document.get("placements")),
        owners=names,
        rules=rules,
        resources=resources,
        slots=slots,
        reusable=_flag(document, "reusable") or _flag(document, "refill") or bool(nodes),
        refill_up_to=_refill_up_to(document, slots),
        release_if_idle=duration(str(document.get("releaseIfIdle") or "0")),
        starts=starts,
        expires=None if expires is None else moment(expires),
        ttl_s=None if expires is not None else ttl_s or None,
        require=document.get("policy") == "Require",
        yields_above=_yields_above(document),
        lends_below=_lends_below(document),
        series=series,
        course=course,
        origin=str(document.get("origin") or "").partition("#")[0],
    )


def _refill_up_to(document: dict[str, Any], slots: int) -> int:
    is_refilled, most = _flag(document, "refill"), document.get("refillUpTo")
    if is_refilled and document.get("node"):
        raise ValueError("replaces slots on a node that it names")
    if most is None:
        return max(slots, _MOST_REFILLED) if is_refilled else 0
    if not is_refilled or _whole(most) < slots:
        raise ValueError("limits what it does not replace, or to less than it has")
    return _whole(most)


def _yields_above(document: dict[str, Any]) -> int | None:
    preemptible, priority = _flag(document, "preemptible"), document.get("priority")
    if priority is not None and not (preemptible and isinstance(priority, int)):
        raise ValueError("has a priority that is none, or means nothing")
    return priority or 0 if preemptible else None


def _lends_below(document: dict[str, Any]) -> int | None:
    lend = document.get("lend")
    if lend is None:
        return None
    if set(lend) - {"belowPriority"} or document.get("preemptible"):
        raise ValueError("lends on terms that are not known, or what may be taken as well")
    return _integer(lend.get("belowPriority", 0))


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is no number")  # noqa: TRY004 - one error for bad input
    return value


def _flag(document: dict[str, Any], name: str) -> bool:
    value = document.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{name}: {value!r} is neither true nor false")  # noqa: TRY004
    return value
