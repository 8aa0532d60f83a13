"""The resources that are served: one entry each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reserver_demo.apiserver.crds import crds
from reserver_demo.apiserver.custom import strategy_of, structure_of
from reserver_demo.apiserver.pod_strategy import POD
from reserver_demo.apiserver.schema import DOCUMENT, Conformed, Schema, conform
from reserver_demo.apiserver.selectors import Fields
from reserver_demo.apiserver.status import Json
from reserver_demo.apiserver.storage_strategies import CLAIM, STORAGE_CLASS, VOLUME
from reserver_demo.apiserver.strategies import (
    BUDGET,
    CONFIG_MAP,
    EVENT,
    NAMESPACE,
    NODE,
    PRIORITY_CLASS,
)
from reserver_demo.apiserver.strategy import Strategy
from reserver_demo.apiserver.structural import fill_in, pruned
from reserver_demo.apiserver.validation import Rule, dns_label, dns_subdomain

_CORE = "io.k8s.api.core.v1."


def _reader(path: str, default: str = "") -> Callable[[Json], str]:
    """Return what reads a field for a field selector."""
    steps = path.split(".")

    def read(content: Json) -> str:
        value: object = content
        for step in steps:
            value = value.get(step, default) if isinstance(value, dict) else default
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def _readers(*paths: str) -> dict[str, Callable[[Json], str]]:
    return {path: _reader(path) for path in ("metadata.name", *paths)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of the API.

    Attributes:
        kind: its kind.
        plural: its name in paths.
        group: its API group; empty for the core group.
        version: its API version.
        namespaced: whether its objects live in namespaces.
        short_names: what kubectl also calls it.
        categories: what kubectl groups it under.
        schema: its type in the OpenAPI document; None for one that a CRD defines.
        structure: the schema of that CRD.
        printer_columns: the columns of that CRD.
        name_rule: what its objects may be called.
        fields: what its objects can be selected on.
        strategy: how its objects are written.
        actions: subresources that are posted to, and the kind that is posted.
    """

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    schema: str | None = None
    structure: Schema = field(default_factory=dict)
    printer_columns: tuple[Json, ...] = ()
    name_rule: Rule = dns_subdomain
    fields: Fields = field(default_factory=lambda: _readers("metadata.namespace"))
    strategy: Strategy = field(default_factory=Strategy)
    actions: Mapping[str, str] = field(default_factory=dict)

    @property
    def api_version(self) -> str:
        """Group and version, as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The plural with its group, as messages name the resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind with its group, as messages name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def typed(self) -> Schema:
        """The schema of its objects."""
        schema: Schema = self.structure if self.schema is None else DOCUMENT[self.schema]
        return schema

    def decode(self, value: Json) -> Conformed:
        """Decode an object of it.

        Raises:
            MismatchError: a value has the wrong type.
        """
        conformed = self.typed_only(value)
        fill_in(conformed.value, self.structure)
        return conformed

    def typed_only(self, value: Json) -> Conformed:
        """Decode an object of it, without adding defaults.

        Raises:
            MismatchError: a value has the wrong type.
        """
        conformed = conform(self.schema, value)
        if self.schema is not None:
            return conformed
        unknown = list(conformed.unknown)
        kept = pruned(conformed.value, self.structure, "", unknown)
        return Conformed(kept, tuple(unknown))

    @property
    def has_status(self) -> bool:
        """Whether it has a status subresource."""
        return self.strategy.prepare_status is not None


POD_RESOURCE = Resource(
    kind="Pod",
    plural="pods",
    short_names=("po",),
    categories=("all",),
    schema=f"{_CORE}Pod",
    fields=_readers(
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    strategy=POD,
    actions={"binding": "Binding", "eviction": "Eviction"},
)
NODE_RESOURCE = Resource(
    kind="Node",
    plural="nodes",
    namespaced=False,
    short_names=("no",),
    schema=f"{_CORE}Node",
    fields=_readers() | {"spec.unschedulable": _reader("spec.unschedulable", "false")},
    strategy=NODE,
)
NAMESPACE_RESOURCE = Resource(
    kind="Namespace",
    plural="namespaces",
    namespaced=False,
    short_names=("ns",),
    schema=f"{_CORE}Namespace",
    name_rule=dns_label,
    fields=_readers("status.phase"),
    strategy=NAMESPACE,
)
CONFIG_MAP_RESOURCE = Resource(
    kind="ConfigMap",
    plural="configmaps",
    short_names=("cm",),
    schema=f"{_CORE}ConfigMap",
    strategy=CONFIG_MAP,
)
EVENT_RESOURCE = Resource(
    kind="Event",
    plural="events",
    short_names=("ev",),
    schema=f"{_CORE}Event",
    fields=_readers(
        "metadata.namespace",
        *(
            f"involvedObject.{name}"
            for name in (
                "kind",
                "namespace",
                "name",
                "uid",
                "apiVersion",
                "resourceVersion",
                "fieldPath",
            )
        ),
        "reason",
        "reportingComponent",
        "type",
    )
    | {"source": _reader("source.component")},
    strategy=EVENT,
)
BUDGET_RESOURCE = Resource(
    kind="PodDisruptionBudget",
    plural="poddisruptionbudgets",
    group="policy",
    short_names=("pdb",),
    schema="io.k8s.api.policy.v1.PodDisruptionBudget",
    strategy=BUDGET,
)
PRIORITY_CLASS_RESOURCE = Resource(
    kind="PriorityClass",
    plural="priorityclasses",
    group="scheduling.k8s.io",
    namespaced=False,
    short_names=("pc",),
    schema="io.k8s.api.scheduling.v1.PriorityClass",
    strategy=PRIORITY_CLASS,
)
CLAIM_RESOURCE = Resource(
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    short_names=("pvc",),
    schema=f"{_CORE}PersistentVolumeClaim",
    strategy=CLAIM,
)
VOLUME_RESOURCE = Resource(
    kind="PersistentVolume",
    plural="persistentvolumes",
    namespaced=False,
    short_names=("pv",),
    schema=f"{_CORE}PersistentVolume",
    fields=_readers(),
    strategy=VOLUME,
)
STORAGE_CLASS_RESOURCE = Resource(
    kind="StorageClass",
    plural="storageclasses",
    group="storage.k8s.io",
    namespaced=False,
    short_names=("sc",),
    schema="io.k8s.api.storage.v1.StorageClass",
    fields=_readers(),
    strategy=STORAGE_CLASS,
)


def _custom(crd: Json) -> Resource:
    """Return the resource that a CRD defines."""
    spec, structure = crd["spec"], structure_of(crd)
    (version,) = spec["versions"]
    return Resource(
        kind=spec["names"]["kind"],
        plural=spec["names"]["plural"],
        group=spec["group"],
        version=version["name"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(spec["names"].get("shortNames", ())),
        categories=tuple(spec["names"].get("categories", ())),
        structure=structure,
        printer_columns=tuple(version.get("additionalPrinterColumns", ())),
        strategy=strategy_of(structure, has_status="status" in version.get("subresources", {})),
    )


RESOURCES = (
    BUDGET_RESOURCE,
    CLAIM_RESOURCE,
    CONFIG_MAP_RESOURCE,
    EVENT_RESOURCE,
    NAMESPACE_RESOURCE,
    NODE_RESOURCE,
    POD_RESOURCE,
    PRIORITY_CLASS_RESOURCE,
    STORAGE_CLASS_RESOURCE,
    VOLUME_RESOURCE,
    *map(_custom, crds()),
)
"""All resources."""
