"""Parses the owners of a reservation: pods by name, by controller or by labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from reserver.cluster.labels import EVERYTHING, NOTHING, Selector
from reserver.cluster.pod import NO_CONTROLLER, Controller, PodName
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import HOME, SpecLimits, check_count, check_number
from reserver.k8s.objects.selectors import checked_selector
from reserver.reservations.owner import MOST_EXISTING, NOBODY, OwnerRule, Replaced

_UID = re.compile(r"[-_.:A-Za-z0-9]{1,128}")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


class _Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Base of the parts of an owner; refuses unknown fields."""


class _Pod(_Strict):
    name: str
    namespace: str = ""


class _Controller(_Strict):
    kind: str
    name: str
    namespace: str = ""


class _Expression(_Strict):
    key: str
    operator: str
    values: list[str] = []


class _Selector(_Strict):
    match_labels: dict[str, str] = {}
    match_expressions: list[_Expression] = []
    namespace: str = ""


class _Replaced(_Strict):
    uid: str
    existing: list[str] = []


class OwnerEntry(_Strict):
    """One entry of ``owners``; a pod must meet all of its fields."""

    pod: _Pod | None = None
    controller: _Controller | None = None
    selector: _Selector | None = None
    replaces: _Replaced | None = None


class Owners(NamedTuple):
    """The owners of a reservation.

    Attributes:
        named: the pods of the entries with only a pod name.
        rules: the other entries.
    """

    named: frozenset[PodName]
    rules: tuple[OwnerRule, ...]


def read(
    entries: Sequence[OwnerEntry],
    namespace: str,
    limits: SpecLimits = HOME,
    closed: Sequence[str] = (),
) -> Owners:
    """Return the owners of a reservation.

    Args:
        entries: the entries as written.
        namespace: the default namespace of an entry.
        limits: the bounds on entries and labels, and whether other namespaces are allowed.
        closed: the namespaces of further entries that no pod may claim by (`newer_fields`).

    Raises:
        InvalidInput: there are no entries, or an entry is invalid; the error carries its path.
    """
    if not entries and not closed:
        raise InvalidInput("owners", "is empty", "name at least one pod that may claim it")
    check_count(entries, "owners", limits.owners)
    check_number(sum(map(_labels, entries)), "owners", limits.owner_labels, "labels in selectors")
    named: set[PodName] = set()
    rules: dict[OwnerRule, None] = {}
    index = 0
    try:  # One block for all entries, as there may be thousands.
        for index, entry in enumerate(entries):  # noqa: B007 - the error names it
            rule = _rule(entry, namespace, limits)
            if not limits.owners_anywhere and rule.namespace != namespace:
                problem = f"{rule.namespace!r} is not the reservation's own"
                remedy = f"write {namespace}, or reserve in Reserver's own namespace"
                raise InvalidInput("", f"namespace {problem}", remedy)
            if entry.controller is None and entry.selector is None and entry.replaces is None:
                named.add(PodName(rule.namespace, rule.pod))
            else:
                rules[rule] = None
    except InvalidInput as exc:
        raise exc.under(f"owners[{index}]") from exc
    for each in closed:
        rules[
            OwnerRule(namespace=each if limits.owners_anywhere else namespace, selector=NOTHING)
        ] = None
    return Owners(frozenset(named), tuple(rules))


def _labels(entry: OwnerEntry) -> int:
    """Return the number of label requirements of an entry."""
    selector = entry.selector
    return len(selector.match_labels) + len(selector.match_expressions) if selector else 0


def _rule(entry: OwnerEntry, namespace: str, limits: SpecLimits) -> OwnerRule:
    if entry.pod is None and entry.controller is None and entry.selector is None:
        raise InvalidInput("", "names closed", "write pod, controller or selector")
    return OwnerRule(
        namespace=_namespace(entry) or namespace,
        pod=_pod(entry.pod),
        controller=_controller(entry.controller),
        selector=_selector(entry.selector, limits),
        replaces=_replaced(entry.replaces),
    )


def _namespace(entry: OwnerEntry) -> str:
    found = ""
    parts = ("pod", entry.pod), ("controller", entry.controller), ("selector", entry.selector)
    for field, part in parts:
        if part is None or not part.namespace:
            continue
        names.check_label(part.namespace, f"{field}.namespace", "a namespace")
        if found not in {"", part.namespace}:
            problem = f"is not {found!r} as above: no pod is in both"
            raise InvalidInput(f"{field}.namespace", problem, "write one of them")
        found = part.namespace
    return found


def _pod(pod: _Pod | None) -> str:
    if pod is None:
        return ""
    names.check_subdomain(pod.name, "pod.name", "a pod's name")
    return pod.name


def _controller(controller: _Controller | None) -> Controller:
    if controller is None:
        return NO_CONTROLLER
    if not _KIND.fullmatch(controller.kind):
        problem = f"{shorten(controller.kind)!r} is not a kind"
        raise InvalidInput("controller.kind", problem, "write for example ReplicaSet")
    names.check_subdomain(controller.name, "controller.name", "a controller's name")
    return Controller(controller.kind, controller.name)


def _replaced(replaced: _Replaced | None) -> Replaced:
    if replaced is None:
        return NOBODY
    check_count(replaced.existing, "replaces.existing", MOST_EXISTING)
    paths = {f"replaces.existing[{n}]": uid for n, uid in enumerate(replaced.existing)}
    for path, uid in {"replaces.uid": replaced.uid, **paths}.items():
        if not _UID.fullmatch(uid):
            raise InvalidInput(path, f"{shorten(uid)!r} is not a UID", "write a pod's metadata.uid")
    return Replaced(replaced.uid, frozenset(replaced.existing))


def _selector(selector: _Selector | None, limits: SpecLimits) -> Selector:
    if selector is None:
        return EVERYTHING
    expressions = ((each.key, each.operator, each.values) for each in selector.match_expressions)
    with under("selector"):
        found = checked_selector(selector.match_labels, expressions, limits.values)
        if not found.requirements:
            raise InvalidInput("", "is empty: it matches every pod", "write matchLabels")
    return found
