"""Reads SchedPatch objects of reserver.io/v1alpha1.

Injected fields become part of a pod, which the API server then validates. So all fields that the
API server would refuse in a pod are refused here: else a patch could keep a namespace from
creating pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reserver.cluster.labels import Selector
from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput, under
from reserver.k8s.objects import names
from reserver.k8s.objects.limits import TENANT, check_bytes, check_count, check_number
from reserver.k8s.objects.objects import CustomResource, StrictStruct, decode
from reserver.k8s.objects.selectors import StrictSelector, checked_selector
from reserver.k8s.objects.times import parse_duration, parse_moment
from reserver.patches.model import (
    KINDS,
    MOST_BYTES,
    NODE_AFFINITY,
    PREFERRED,
    REQUIRED,
    Json,
    PatchName,
    SchedPatch,
    Scheduling,
    size,
)
from reserver.stores.codec import placement_codec
from reserver.stores.codec.lifetime_codec import DEFAULT_TTL_S, MAX_TTL_S
from reserver.stores.object.codec import API_VERSION

KIND = "SchedPatch"
COLLECTION = f"/apis/{API_VERSION}/schedpatches"
"""The path of all SchedPatches of a cluster."""

MOST_PODS = 1_000
"""The greatest `maxCount`: each slot is recorded by its number."""

MOST_WEIGHT = 100
_SEVERAL = "nodeSelectorTerms"


class PatchSpec(StrictStruct, frozen=True):
    """The spec of a SchedPatch."""

    selector: StrictSelector
    max_count: int
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    tolerations: list[dict[str, Any]] | None = None
    ttl: str | int | None = None
    expires_at: str | None = None


class PatchObject(CustomResource, frozen=True):
    """A SchedPatch on the wire."""

    @property
    def name(self) -> PatchName:
        """Namespace and name."""
        return PatchName(self.metadata.namespace, self.metadata.name)


def collection(namespace: str) -> str:
    """Return the path of the SchedPatches of a namespace."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/schedpatches"


def object_path(name: PatchName) -> str:
    """Return the path of a SchedPatch."""
    return f"{collection(name.namespace)}/{name.name}"


def read_object(item: PatchObject) -> SchedPatch:
    """Return the patch of a SchedPatch.

    Raises:
        InvalidInput: a field is invalid; the error carries its path.
    """
    with under("spec"):
        check_bytes(len(bytes(item.spec)), TENANT.spec_bytes)
        return _read(decode(PatchSpec, item.spec or b"{}"), item)


def _read(spec: PatchSpec, item: PatchObject) -> SchedPatch:
    if not 1 <= spec.max_count <= MOST_PODS:
        problem = f"{shorten(str(spec.max_count))} is out of range"
        raise InvalidInput("maxCount", problem, f"write how many pods to patch, 1 to {MOST_PODS}")
    injected = _injected(spec, item.metadata.namespace)
    if not (injected.node_selector or injected.affinity or injected.tolerations):
        remedy = "write some of affinity, tolerations, nodeSelector"
        raise InvalidInput("", "injects nothing", remedy)
    return SchedPatch(
        name=item.name,
        uid=item.metadata.uid,
        selector=_selector(spec.selector),
        max_count=spec.max_count,
        injected=injected,
        expires_at=_expiry(spec, item.metadata.creation_timestamp),
    )


def _selector(written: StrictSelector) -> Selector:
    expressions = written.match_expressions or []
    labels = written.match_labels or {}
    if not labels and not expressions:
        remedy = "write the labels of the pods to patch, e.g. matchLabels: {app: web}"
        raise InvalidInput("selector", "selects everything", remedy)
    terms = ((each.key, each.operator, each.values or ()) for each in expressions)
    with under("selector"):
        read = checked_selector(labels, terms, TENANT.values)
    check_number(len(read.requirements), "selector", TENANT.labels, "labels")
    return read


def _expiry(spec: PatchSpec, created: str) -> float | None:
    if spec.expires_at is not None:
        if spec.ttl is not None:
            raise InvalidInput("ttl", "cannot be set together with expiresAt", "keep one of them")
        return _at("expiresAt", parse_moment, spec.expires_at)
    ttl = DEFAULT_TTL_S if spec.ttl is None else _at("ttl", parse_duration, str(spec.ttl))
    if ttl > MAX_TTL_S:
        raise InvalidInput("ttl", "is more than a hundred years", "write 0 for one that never ends")
    return parse_moment(created) + ttl if ttl else None


def _at(path: str, read: Any, text: str) -> float:  # noqa: ANN401 - a reader of a text
    with under(path):
        return float(read(text))


def _injected(spec: PatchSpec, namespace: str) -> Scheduling:
    affinity = dict(spec.affinity or {})
    if unknown := affinity.keys() - set(KINDS):
        problem = "is not known"
        raise InvalidInput(
            f"affinity.{shorten(min(unknown))}", problem, f"write {', '.join(KINDS)}"
        )
    required = {kind: _part(kind, affinity.get(kind), REQUIRED) for kind in KINDS}
    _check_placement(
        {
            "nodeSelector": spec.node_selector,
            "affinity": {kind: part for kind, part in required.items() if part},
            "tolerations": spec.tolerations,
        },
        namespace,
    )
    terms = required[NODE_AFFINITY].get(REQUIRED)
    if terms is not None and not (terms or {}).get(_SEVERAL):
        path = f"affinity.{NODE_AFFINITY}.{REQUIRED}.{_SEVERAL}"
        raise InvalidInput(path, "is empty", "write an alternative that nodes can meet")
    for kind in KINDS:
        for path, term in _preferences(kind, affinity.get(kind)):
            _check_preference(kind, path, term, namespace)
    _check_namespaces(affinity)
    for index, toleration in enumerate(spec.tolerations or ()):
        _check_toleration(toleration, f"tolerations[{index}]")
    found = Scheduling(
        node_selector=spec.node_selector or {},
        affinity={kind: part for kind, part in affinity.items() if part},
        tolerations=tuple(spec.tolerations or ()),
    )
    if (injected := size(found)) > MOST_BYTES:
        problem = f"what it injects takes {injected} bytes, more than any pod may say after a merge"
        raise InvalidInput("", problem, f"keep it under {MOST_BYTES}")
    return found


def _part(kind: str, written: Any, name: str) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return a kind of affinity with only its field `name`; empty without that."""
    if written is None:
        return {}
    if not isinstance(written, Mapping):
        raise InvalidInput(f"affinity.{kind}", "is not a mapping", "write it as in a pod's spec")
    if unknown := written.keys() - {REQUIRED, PREFERRED}:
        path = f"affinity.{kind}.{shorten(min(unknown))}"
        raise InvalidInput(path, "is not known", f"write {REQUIRED} or {PREFERRED}")
    return {name: written[name]} if written.get(name) is not None else {}


def _check_placement(parts: Mapping[str, Any], namespace: str) -> None:
    """Check scheduling fields by the rules for the placement of a Reservation."""
    said = {name: part for name, part in parts.items() if part}
    placement_codec.read(said, namespace, TENANT)


def _preferences(kind: str, written: Any) -> Iterator[tuple[str, Json]]:  # noqa: ANN401 - any JSON
    terms = _part(kind, written, PREFERRED).get(PREFERRED, [])
    path = f"affinity.{kind}.{PREFERRED}"
    if not isinstance(terms, list):
        raise InvalidInput(path, "is not a list", "write it as in a pod's spec")
    check_count(terms, path, TENANT.terms)
    for index, term in enumerate(terms):
        if not isinstance(term, Mapping):
            raise InvalidInput(f"{path}[{index}]", "is not a mapping", "write weight and what for")
        yield f"{path}[{index}]", term


def _check_preference(kind: str, path: str, term: Json, namespace: str) -> None:
    name = "preference" if kind == NODE_AFFINITY else "podAffinityTerm"
    if term.keys() != {"weight", name}:
        raise InvalidInput(path, "has other fields", f"write weight and {name}")
    weight = term["weight"]
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= MOST_WEIGHT:
        problem = f"{shorten(repr(weight))} is out of range"
        raise InvalidInput(f"{path}.weight", problem, f"write 1 to {MOST_WEIGHT}")
    demanded: Any = [term[name]]
    if kind == NODE_AFFINITY:
        demanded = {_SEVERAL: demanded}
    try:
        _check_placement({"affinity": {kind: {REQUIRED: demanded}}}, namespace)
    except InvalidInput as exc:
        problem = f"{exc.path.rpartition(']')[2].lstrip('.')}: {exc.problem}".removeprefix(": ")
        raise InvalidInput(f"{path}.{name}", problem, exc.remedy) from exc


def _check_namespaces(affinity: Json) -> None:
    for kind in KINDS[1:]:
        part = affinity.get(kind) or {}
        preferred = [term["podAffinityTerm"] for term in part.get(PREFERRED) or ()]
        for term in [*(part.get(REQUIRED) or ()), *preferred]:
            for each in term.get("namespaces") or ():
                names.check_label(each, f"affinity.{kind}", "a namespace's name")


def _check_toleration(written: Json, path: str) -> None:
    """Refuse values of a toleration that the API server refuses (ValidateTolerations)."""
    key, operator = written.get("key", ""), written.get("operator") or "Equal"
    if key:
        names.check_label_key(key, f"{path}.key")
    if operator == "Exists" and written.get("value"):
        remedy = "remove it, or write operator Equal"
        raise InvalidInput(f"{path}.value", "has no place beside operator Exists", remedy)
    names.check_label_value(written.get("value", ""), f"{path}.value")
    if written.get("tolerationSeconds") is not None and written.get("effect") != "NoExecute":
        problem = "needs effect NoExecute"
        raise InvalidInput(f"{path}.tolerationSeconds", problem, "write it, or remove the seconds")
