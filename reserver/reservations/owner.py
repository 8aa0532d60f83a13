"""Owner rules, which match pods by controller or labels, and the succession of replacements."""

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
"""The key of a rule, among the keys of each pod that the rule may match."""

_HASH = "pod-template-hash"
"""The label whose value ends the name of a Deployment's ReplicaSet (generateReplicaSetName in
pkg/controller/deployment/sync.go)."""

_OF_CRON_JOB = re.compile(r"(.+)-[0-9]{8,9}")
"""The name of a CronJob's Job: it ends in the minute that it was due (getJobName in
pkg/controller/cronjob/utils.go)."""

_GROUP = "PodGroup"
"""The kind of the object that pods name in ``spec.schedulingGroup`` (docs/adr/0051)."""

REQUEST = "ProvisioningRequest"
"""The kind of the object that pods name in an annotation (docs/adr/0052)."""

MOST_EXISTING = 100
"""Most pods that a rule may exclude by their UIDs."""


class Replaced(NamedTuple):
    """The pod whose replacement may claim; no such pod if the UID is empty (docs/adr/0033).

    Attributes:
        uid: the leaving pod's UID.
        existing: the UIDs of pods that existed before it left: at most `MOST_EXISTING`.
    """

    uid: str = ""
    existing: frozenset[str] = frozenset()


NOBODY = Replaced()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRule:
    """A rule for pods that may claim a reservation: a pod has to meet each field.

    Attributes:
        namespace: the pods' namespace.
        pod: the pod's name; empty for any.
        controller: the pods' controller (the controlling ownerReference), its owner, their
            PodGroup, or their ProvisioningRequest (`makers`).
        selector: the selector of the pods' labels.
        replaces: the pod whose replacement may claim: neither that pod itself nor pods that
            existed before it left may.
    """

    namespace: str
    pod: str = ""
    controller: Controller = NO_CONTROLLER
    selector: Selector = EVERYTHING
    replaces: Replaced = NOBODY

    def matches(self, pod: Pod) -> bool:
        """Return whether a pod meets the rule."""
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
        """Whether each pod with the key meets the rule, and so may claim."""
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
    """Yield the PodGroup, the ProvisioningRequest, the controller and its owner of a pod.

    The Deployment or CronJob that owns the controller follows from names, as their controllers
    build them: so a new ReplicaSet or Job is recognized at once, before any watch shows it.
    """
    if pod.group:
        yield Controller(_GROUP, pod.group)
    if pod.request:
        yield Controller(REQUEST, pod.request)
    controller = pod.controller
    if controller == NO_CONTROLLER:
        return
    yield controller
    if controller.kind == "ReplicaSet":
        ending = f"-{pod.labels.get(_HASH)}"
        if len(controller.name) > len(ending) and controller.name.endswith(ending):
            yield Controller("Deployment", controller.name.removesuffix(ending))
    elif controller.kind == "Job" and (match := _OF_CRON_JOB.fullmatch(controller.name)):
        yield Controller("CronJob", match[1])


def home(named: Iterable[PodName], rules: Sequence[OwnerRule]) -> str:
    """Return the namespace of the owners: of the first rule, or else of the first named pod."""
    return rules[0].namespace if rules else min(named).namespace


def named(pod: PodName) -> Key:
    """Return the key of the rules that name a pod."""
    return ("pod", *pod)


_REMEMBERED = 20_000
"""Most leaving pods that are remembered over all namespaces: a few minutes' worth."""


class ReplacementStanding(Enum):
    """The standing of a pod that an owner rule matches: whether it may claim now."""

    MAY_CLAIM = auto()
    MAY_NOT = auto()
    UNKNOWN = auto()
    """The watch has not yet shown the pod, or the deletion of the pod that it replaces."""


class Succession:
    """The revisions at which unbound pods were first shown, and at which other pods left."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin without pods; the snapshot contains the bound pods."""
        self._snapshot = snapshot
        self._known: dict[str, int] = {}
        self._left = FairMemory[str, int](_REMEMBERED)

    def seen(self, pod: Pod, before: Pod | None, *, listed: bool) -> None:
        """Record a pod that a watch or a list shows.

        Args:
            before: the pod as shown before; None if new.
            listed: a list shows the pod, so that it may have changed long before.
        """
        if not pod.node:
            self._known.setdefault(pod.uid, pod.revision)
            return
        self._known.pop(pod.uid, None)
        if pod.terminating:
            was_there_at = before.revision if before else 0
            self._leaves(pod, was_there_at if listed else pod.revision)

    def gone(self, pod: Pod) -> None:
        """Record a pod's deletion; `pod` is its last version."""
        self._known.pop(pod.uid, None)
        if pod.node:
            self._leaves(pod, pod.revision)

    def _leaves(self, pod: Pod, since: int) -> None:
        """Record the revision since which a pod leaves, if new."""
        if pod.uid not in self._left:
            self._left.put(pod.name.namespace, pod.uid, since)

    def knows(self, pod: Pod) -> bool:
        """Return whether an unbound pod was shown."""
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
