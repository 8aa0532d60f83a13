"""Owners that match pods by controller or labels, and so may claim; and which pods replace one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from reserver.base.fairness import FairMemory
from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName
from reserver.cluster.snapshot import Snapshot

Key = tuple[str, ...]
"""What finds a rule, given a pod that it may match."""

_HASH = "pod-template-hash"
"""The label whose value ends the name of a Deployment's ReplicaSet (generateReplicaSetName in
pkg/controller/deployment/sync.go)."""

_OF_CRON_JOB = re.compile(r"(.+)-[0-9]{8,9}")
"""The name of a CronJob's Job: it ends in the minute that it was due (getJobName in
pkg/controller/cronjob/utils.go)."""

_GROUP = "PodGroup"
"""The kind of what pods name in ``spec.schedulingGroup`` (docs/adr/0051)."""

REQUEST = "ProvisioningRequest"
"""The kind of what pods name in an annotation (docs/adr/0052)."""

MOST_EXISTING = 100
"""How many pods a rule may exclude by their UIDs."""


class Replaced(NamedTuple):
    """The pod whose replacement may claim; without a UID there is none (docs/adr/0033).

    Attributes:
        uid: of the pod that is to go.
        existing: UIDs of pods that were there before it went: at most `MOST_EXISTING`.
    """

    uid: str = ""
    existing: frozenset[str] = frozenset()


NOBODY = Replaced()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRule:
    """Pods that may claim a reservation: those that meet everything it says.

    Attributes:
        namespace: of the pods.
        pod: their name; empty for any.
        controller: their controller (the controlling ownerReference), what made that, their
            PodGroup, or their ProvisioningRequest (`makers`).
        selector: their labels.
        replaces: the pod that they come after: it may not claim itself, nor may those that were
            there before it went.
    """

    namespace: str
    pod: str = ""
    controller: Controller = NO_CONTROLLER
    selector: Selector = EVERYTHING
    replaces: Replaced = NOBODY

    def matches(self, pod: Pod) -> bool:
        """Return whether a pod may claim."""
        return (
            pod.name.namespace == self.namespace
            and self.pod in {"", pod.name.name}
            and (self.controller == NO_CONTROLLER or self.controller in makers(pod))
            and self.selector.matches(pod.labels)
            and pod.uid != self.replaces.uid
            and pod.uid not in self.replaces.existing
        )

    def key(self) -> Key:
        """Return one of the keys that `keys` yields for every pod that matches."""
        if self.pod:
            return ("pod", self.namespace, self.pod)
        if self.controller != NO_CONTROLLER:
            return ("controller", self.namespace, *self.controller)
        for term in self.selector.requirements:
            if term.operator == "In" and len(term.values) == 1:
                return ("label", self.namespace, term.key, *term.values)
        return ("any", self.namespace)

    @property
    def is_its_key(self) -> bool:
        """Whether each pod that has the key matches, and may claim: nothing else is asked of it."""
        terms = self.selector.requirements
        conditions = (self.pod != "") + (self.controller != NO_CONTROLLER) + len(terms)
        is_found = not terms or self.key()[0] == "label"
        return conditions <= 1 and is_found and self.replaces == NOBODY


def keys(pod: Pod) -> Iterator[Key]:
    """Yield the keys of all rules that may match a pod: few, however many rules there are."""
    namespace, name = pod.name
    yield ("pod", namespace, name)
    for maker in makers(pod):
        yield ("controller", namespace, *maker)
    for label, value in pod.labels.items():
        yield ("label", namespace, label, value)
    yield ("any", namespace)


def makers(pod: Pod) -> Iterator[Controller]:
    """Yield the controller of a pod, what made that, its PodGroup, and its ProvisioningRequest.

    The Deployment or CronJob that made its controller follows from names, as these controllers give
    them: a new ReplicaSet or Job belongs to it at once, and not when some watch has shown it.
    """
    if pod.group:
        yield Controller(_GROUP, pod.group)
    if pod.request:
        yield Controller(REQUEST, pod.request)
    made_by = pod.controller
    if made_by == NO_CONTROLLER:
        return
    yield made_by
    if made_by.kind == "ReplicaSet":
        ending = f"-{pod.labels.get(_HASH)}"
        if len(made_by.name) > len(ending) and made_by.name.endswith(ending):
            yield Controller("Deployment", made_by.name.removesuffix(ending))
    elif made_by.kind == "Job" and (match := _OF_CRON_JOB.fullmatch(made_by.name)):
        yield Controller("CronJob", match[1])


def home(named: Iterable[PodName], rules: Sequence[OwnerRule]) -> str:
    """Return the namespace of pods that may claim: of those that are matched first, if any are."""
    return rules[0].namespace if rules else min(named).namespace


def named(pod: PodName) -> Key:
    """Return the key of what names a pod."""
    return ("pod", *pod)


_REMEMBERED = 20_000
"""How many pods that left are remembered of all namespaces: those of the last minutes."""


class ReplacementStanding(Enum):
    """Whether a pod that an owner rule matches may claim now."""

    MAY_CLAIM = auto()
    MAY_NOT = auto()
    UNKNOWN = auto()
    """The watch has yet to show the pod, or that the one before it leaves."""


class Succession:
    """Since when pods that wait for a node are known, and since when others leave theirs."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin without pods; the snapshot has those that are on nodes."""
        self._snapshot = snapshot
        self._known: dict[str, int] = {}
        self._left = FairMemory[str, int](_REMEMBERED)

    def seen(self, pod: Pod, before: Pod | None, *, listed: bool) -> None:
        """Take a pod as a watch shows it, or a list.

        Args:
            before: as it was shown before; None if it was not.
            listed: a list shows it, so that it may have changed long before.
        """
        if not pod.node:
            self._known.setdefault(pod.uid, pod.revision)
            return
        self._known.pop(pod.uid, None)
        if pod.terminating:
            was_there_at = before.revision if before else 0
            self._leaves(pod, was_there_at if listed else pod.revision)

    def gone(self, pod: Pod) -> None:
        """Note that a pod is gone, which was shown like this last."""
        self._known.pop(pod.uid, None)
        if pod.node:
            self._leaves(pod, pod.revision)

    def _leaves(self, pod: Pod, since: int) -> None:
        """Note since which revision a pod leaves, if that is not known."""
        if pod.uid not in self._left:
            self._left.put(pod.name.namespace, pod.uid, since)

    def knows(self, pod: Pod) -> bool:
        """Return whether a pod that is on no node was shown."""
        return pod.uid in self._known

    def standing(self, rule: OwnerRule, pod: Pod) -> ReplacementStanding:
        """Return whether a pod that a rule matches may claim now."""
        leaves = rule.replaces.uid
        if not leaves:
            return ReplacementStanding.MAY_CLAIM
        since = self._known.get(pod.uid)
        counted = self._snapshot.counted(leaves)
        if counted is not None and not counted.pod.terminating:
            return ReplacementStanding.UNKNOWN if since is None else ReplacementStanding.MAY_NOT
        was_there = since is not None and since < self._left.get(leaves, 0)
        return ReplacementStanding.MAY_NOT if was_there else ReplacementStanding.MAY_CLAIM
