"""The owners of an entry: pods by name, by controller, by labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_FIELDS = frozenset(("pod", "controller", "selector", "replaces"))
_WITH_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


class Maker(NamedTuple):
    """The controlling ownerReference of a pod; empty without one."""

    kind: str = ""
    name: str = ""


class Traits(NamedTuple):
    """The properties of a pod that owner rules match; labels may change during its life."""

    namespace: str
    name: str
    maker: Maker = Maker()
    labels: frozenset[tuple[str, str]] = frozenset()
    uid: str = ""
    is_daemon: bool = False

    @property
    def made_by(self) -> tuple[Maker, Maker]:
        """Its maker, and the Deployment or CronJob that made that, going by its name."""
        stem, _, ending = self.maker.name.rpartition("-")
        if self.maker.kind == "ReplicaSet" and ("pod-template-hash", ending) in self.labels:
            return self.maker, Maker("Deployment", stem)
        if self.maker.kind == "Job" and ending.isdecimal() and len(ending) in {8, 9}:
            return self.maker, Maker("CronJob", stem)
        return self.maker, self.maker


class Term(NamedTuple):
    """One demand of a selector (apimachinery/pkg/labels/selector.go)."""

    key: str
    operator: str
    values: frozenset[str]

    def allows(self, value: str | None) -> bool:
        """Return whether a label may have this value; None: there is no such label."""
        if self.operator == "Exists":
            return value is not None
        if self.operator == "DoesNotExist":
            return value is None
        return (value in self.values) is (self.operator == "In")


class Rule(NamedTuple):
    """One owner that is more than a pod's name; empty parts demand nothing."""

    namespace: str
    name: str = ""
    maker: Maker = Maker()
    terms: frozenset[Term] = frozenset()
    replaces: str = ""
    existing: frozenset[str] = frozenset()

    def matches(self, pod: Traits) -> bool:
        """Return whether a pod meets all that it demands."""
        if self.namespace != pod.namespace or self.name not in {"", pod.name}:
            return False
        if pod.uid and pod.uid in {self.replaces, *self.existing}:
            return False
        labels = dict(pod.labels)
        return self.maker in {Maker(), *pod.made_by} and all(
            term.allows(labels.get(term.key)) for term in self.terms
        )


def traits(metadata: Mapping[str, Any]) -> Traits:
    """Return the traits in a pod's metadata."""
    controllers = (one for one in metadata.get("ownerReferences") or () if one.get("controller"))
    labels = frozenset((metadata.get("labels") or {}).items())
    said: Mapping[str, str] = next(controllers, {})
    maker = Maker(said.get("kind", ""), said.get("name", ""))
    is_daemon = (said.get("apiVersion"), maker.kind) == ("apps/v1", "DaemonSet")
    uid = metadata.get("uid", "")
    return Traits(metadata["namespace"], metadata["name"], maker, labels, uid, is_daemon)


def read_owners(
    written: list[dict[str, Any]], namespace: str
) -> tuple[frozenset[str], frozenset[Rule]]:
    """Return the pods that owners name, as ``namespace/name``, and what all others demand.

    Args:
        written: ``owners`` of an entry.
        namespace: of pods, where an owner does not say it.

    Raises:
        ValueError: it is not as docs/reservations.md has it; or TypeError, KeyError,
            AttributeError, if it has other shapes.
    """
    rules = [_rule(owner, namespace) for owner in written]
    if not rules:
        raise ValueError("names no owner")
    named = {rule for rule in rules if rule == Rule(rule.namespace, rule.name)}
    names = frozenset(f"{rule.namespace}/{rule.name}" for rule in named)
    return names, frozenset(rules) - named


def _rule(owner: Mapping[str, Any], namespace: str) -> Rule:
    parts = {name: part for name, part in owner.items() if part is not None}
    spaces = {_text(part["namespace"]) for part in parts.values() if part.get("namespace")}
    if not parts or parts.keys() - _FIELDS or len(spaces) > 1:
        raise ValueError(f"{owner!r} says nobody, or what is not known, or two namespaces")
    pod, controller, selector = (parts.get(name) for name in ("pod", "controller", "selector"))
    replaces = parts.get("replaces") or {}
    return Rule(
        spaces.pop() if spaces else namespace,
        _text(pod["name"]) if pod else "",
        Maker(_text(controller["kind"]), _text(controller["name"])) if controller else Maker(),
        frozenset() if selector is None else _terms(selector),
        replaces.get("uid", ""),
        frozenset(replaces.get("existing") or ()),
    )


def _terms(selector: Mapping[str, Any]) -> frozenset[Term]:
    equal = (selector.get("matchLabels") or {}).items()
    terms = {Term(key, "In", frozenset({value})) for key, value in equal}
    for expression in selector.get("matchExpressions") or ():
        operator, values = expression["operator"], frozenset(expression.get("values") or ())
        if _WITH_VALUES[operator] is not bool(values):
            raise ValueError(f"{operator} does not go with {sorted(values)}")
        terms.add(Term(expression["key"], operator, values))
    if not terms or not all(isinstance(value, str) for term in terms for value in term.values):
        raise ValueError("matches every pod, or compares labels with what is no text")
    return frozenset(terms)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a name")
    return value
