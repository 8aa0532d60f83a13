"""Who may claim a reservation without being named by it: pods that match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reserver.cluster.labels import EVERYTHING, Selector
from reserver.cluster.pod import NO_CONTROLLER, Controller, Pod, PodName

Key = tuple[str, ...]
"""What finds a rule, given a pod that it may match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRule:
    """Pods that may claim a reservation: those that meet everything it says.

    Attributes:
        namespace: of the pods.
        pod: their name; empty for any.
        controller: their controller (the controlling ownerReference).
        selector: their labels.
    """

    namespace: str
    pod: str = ""
    controller: Controller = NO_CONTROLLER
    selector: Selector = EVERYTHING

    def matches(self, pod: Pod) -> bool:
        """Return whether a pod may claim."""
        return (
            pod.name.namespace == self.namespace
            and self.pod in {"", pod.name.name}
            and self.controller in {NO_CONTROLLER, pod.controller}
            and self.selector.matches(pod.labels)
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


def keys(pod: Pod) -> Iterator[Key]:
    """Yield the keys of all rules that may match a pod: few, however many rules there are."""
    namespace, name = pod.name
    yield ("pod", namespace, name)
    if pod.controller != NO_CONTROLLER:
        yield ("controller", namespace, *pod.controller)
    for label, value in pod.labels.items():
        yield ("label", namespace, label, value)
    yield ("any", namespace)


def home(named: Iterable[PodName], rules: Sequence[OwnerRule]) -> str:
    """Return the namespace of pods that may claim: of those that are matched first, if any are."""
    return rules[0].namespace if rules else min(named).namespace


def named(pod: PodName) -> Key:
    """Return the key of what names a pod."""
    return ("pod", *pod)
