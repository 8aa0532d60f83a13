"""A SchedPatch, and its merge into a pod.

A patch is merged whole or not at all, and only narrows: the pod keeps its own constraints and gets
the patch's. So the order of patches matters only if two exclude each other: the first one wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import msgspec

from reserver.cluster.labels import Labels, Selector
from reserver.cluster.quantity import shorten

Json = Mapping[str, Any]
"""A JSON object."""


class PatchName(NamedTuple):
    """Namespace and name of a SchedPatch."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """The scheduling fields of a pod that patches change, as JSON.

    Attributes:
        node_selector: ``spec.nodeSelector``.
        affinity: ``spec.affinity``.
        tolerations: ``spec.tolerations``.
    """

    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Json = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedPatch:
    """A valid SchedPatch.

    Attributes:
        name: namespace and name; it patches pods of this namespace only.
        uid: distinguishes it from an earlier patch of the same name.
        selector: the selector of the pods' labels.
        max_count: the most pods that it ever patches.
        injected: the fields that it adds to a pod.
        expires_at: its expiry, unix seconds; None for never.
    """

    name: PatchName
    uid: str
    selector: Selector
    max_count: int
    injected: Scheduling
    expires_at: float | None = None

    def is_over(self, now: float) -> bool:
        """Return whether the patch has expired at `now` (unix seconds)."""
        return self.expires_at is not None and now >= self.expires_at

    def matches(self, labels: Labels, now: float) -> bool:
        """Return whether the patch applies to pods with these labels at `now` (unix seconds)."""
        return not self.is_over(now) and self.selector.matches(labels)


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_AFFINITY = "nodeAffinity"
KINDS = (NODE_AFFINITY, "podAffinity", "podAntiAffinity")
_TERMS = "nodeSelectorTerms"
_ENCODE = msgspec.json.Encoder(order="sorted").encode

MOST_TERMS = 64
"""Most node selector terms, and terms of each other list, of a pod after a merge."""

MOST_TOLERATIONS = 128
"""Most tolerations of a pod after a merge."""

MOST_REQUIREMENTS = 256
"""Most requirements of one node selector term after a merge."""

MOST_BYTES = 16_384
"""Most bytes of a pod's scheduling fields after a merge, as JSON; also the limit for reading a pod.

The API server bounds only the pod's size, at a megabyte. Comparing so many entries would take
seconds, so a pod beyond a limit gets no patch that adds to them. The size of a merge is computed
before the merge, as the numbers of terms multiply.
"""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The reason for which a patch cannot be merged into a pod.

    Attributes:
        field: the field of the pod's spec.
        problem: the contradiction in that field.
    """

    field: str
    problem: str

    def __str__(self) -> str:
        """Return one line."""
        return f"spec{self.field and '.'}{self.field}: {self.problem}"


class _Conflicting(Exception):
    """Carries a conflict out of a merge."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.conflict = Conflict(field, problem)


def merged(pod: Scheduling, injected: Scheduling) -> Scheduling | Conflict:
    """Return a pod's scheduling fields merged with a patch's, or the conflict."""
    try:
        _check_size(size(pod) + size(injected), "")
        found = Scheduling(
            node_selector=_selector(pod.node_selector, injected.node_selector),
            affinity=_affinity(pod.affinity, injected.affinity),
            tolerations=tuple(
                _joined(pod.tolerations, injected.tolerations, "tolerations", MOST_TOLERATIONS)
            ),
        )
        _check_size(size(found), "")
    except _Conflicting as exc:
        return exc.conflict
    return found


def size(said: Scheduling) -> int:
    """Return the length of scheduling fields as JSON, in bytes."""
    return len(_ENCODE((said.node_selector, said.affinity, said.tolerations)))


def _check_size(found: int, path: str) -> None:
    if found > MOST_BYTES:
        raise _Conflicting(path, f"{found} bytes would be more than {MOST_BYTES}")


def _selector(pod: Mapping[str, str], injected: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in injected.items():
        if pod.get(key, value) != value:
            problem = f"{shorten(pod[key])!r} is demanded already, not {value!r}"
            raise _Conflicting(f"nodeSelector.{key}", problem)
    return {**pod, **injected}


def _affinity(pod: Json, injected: Json) -> Json:
    found = dict(pod)
    for kind in KINDS:
        before, added = pod.get(kind) or {}, injected.get(kind) or {}
        parts = {**before}
        for name in (REQUIRED, PREFERRED):
            path = f"affinity.{kind}.{name}"
            if not added.get(name):
                continue
            if kind == NODE_AFFINITY and name == REQUIRED:
                parts[name] = _both(before.get(name), added[name], path)
            else:
                parts[name] = _joined(before.get(name) or (), added[name], path, MOST_TERMS)
        if parts:
            found[kind] = parts
    return found


def _both(pod: Json | None, injected: Json, path: str) -> Json:
    """Return node selector terms, each of one term of the pod and one of the patch."""
    if pod is None:
        return injected
    here, there = pod.get(_TERMS) or (), injected.get(_TERMS) or ()
    if len(here) * len(there) > MOST_TERMS:
        problem = f"{len(here)} times {len(there)} alternatives are more than {MOST_TERMS}"
        raise _Conflicting(path, problem)
    _check_size(len(there) * len(_ENCODE(here)) + len(here) * len(_ENCODE(there)), path)
    # A term without requirements matches no node; merged with another it would be ignored.
    pairs = [(one, other) for one, other in product(filter(any_of, here), filter(any_of, there))]
    if not pairs:
        raise _Conflicting(path, "no node meets it as it is")
    return {**pod, _TERMS: [_narrowed(one, other, path) for one, other in pairs]}


def any_of(term: Json) -> bool:
    """Return whether a node selector term has requirements."""
    return bool(term.get("matchExpressions") or term.get("matchFields"))


def _narrowed(one: Json, other: Json, path: str) -> Json:
    parts = {}
    for name in ("matchExpressions", "matchFields"):
        both = _joined(one.get(name) or (), other.get(name) or (), path, MOST_REQUIREMENTS)
        if both:
            parts[name] = both
    return parts


def _joined(pod: Sequence[Any], injected: Sequence[Any], path: str, most: int) -> Sequence[Any]:
    """Return the pod's entries, then the patch's entries that the pod does not have."""
    if not injected:
        return pod
    if len(pod) > most:
        raise _Conflicting(path, f"{len(pod)} entries are more than {most} already")
    known = set(map(_ENCODE, pod))  # Comparing all pairs would be quadratic.
    both = [*pod, *(each for each in injected if _ENCODE(each) not in known)]
    if len(both) > most:
        raise _Conflicting(path, f"{len(both)} entries would be more than {most}")
    return both
