"""The served resources."""

from __future__ import annotations

from reserver_demo.apiserver.crds import crds
from reserver_demo.apiserver.custom import strategy_of, structure_of
from reserver_demo.apiserver.pod_strategy import POD
from reserver_demo.apiserver.resource import Resource, reader, readers
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
from reserver_demo.apiserver.validation import dns_label
from reserver_demo.apiserver.workload_strategies import CRON_JOB, DEPLOYMENT, JOB, REPLICA_SET

_CORE = "io.k8s.api.core.v1."


POD_RESOURCE = Resource(
    kind="Pod",
    plural="pods",
    short_names=("po",),
    categories=("all",),
    schema=f"{_CORE}Pod",
    fields=readers(
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
    fields=readers() | {"spec.unschedulable": reader("spec.unschedulable", "false")},
    strategy=NODE,
)
NAMESPACE_RESOURCE = Resource(
    kind="Namespace",
    plural="namespaces",
    namespaced=False,
    short_names=("ns",),
    schema=f"{_CORE}Namespace",
    name_rule=dns_label,
    fields=readers("status.phase"),
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
    fields=readers(
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
    | {"source": reader("source.component")},
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
    fields=readers(),
    strategy=VOLUME,
)
STORAGE_CLASS_RESOURCE = Resource(
    kind="StorageClass",
    plural="storageclasses",
    group="storage.k8s.io",
    namespaced=False,
    short_names=("sc",),
    schema="io.k8s.api.storage.v1.StorageClass",
    fields=readers(),
    strategy=STORAGE_CLASS,
)
JOB_RESOURCE = Resource(
    kind="Job",
    plural="jobs",
    group="batch",
    categories=("all",),
    schema="io.k8s.api.batch.v1.Job",
    fields=readers("metadata.namespace", "status.successful"),
    strategy=JOB,
)
CRON_JOB_RESOURCE = Resource(
    kind="CronJob",
    plural="cronjobs",
    group="batch",
    short_names=("cj",),
    categories=("all",),
    schema="io.k8s.api.batch.v1.CronJob",
    strategy=CRON_JOB,
)
REPLICA_SET_RESOURCE = Resource(
    kind="ReplicaSet",
    plural="replicasets",
    group="apps",
    short_names=("rs",),
    categories=("all",),
    schema="io.k8s.api.apps.v1.ReplicaSet",
    fields=readers("metadata.namespace", "status.replicas"),
    strategy=REPLICA_SET,
)
DEPLOYMENT_RESOURCE = Resource(
    kind="Deployment",
    plural="deployments",
    group="apps",
    short_names=("deploy",),
    categories=("all",),
    schema="io.k8s.api.apps.v1.Deployment",
    strategy=DEPLOYMENT,
)


def _custom(crd: Json) -> Resource:
    """Return the custom resource of a CRD."""
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
    CRON_JOB_RESOURCE,
    DEPLOYMENT_RESOURCE,
    EVENT_RESOURCE,
    JOB_RESOURCE,
    NAMESPACE_RESOURCE,
    NODE_RESOURCE,
    POD_RESOURCE,
    PRIORITY_CLASS_RESOURCE,
    REPLICA_SET_RESOURCE,
    STORAGE_CLASS_RESOURCE,
    VOLUME_RESOURCE,
    *map(_custom, crds()),
)
"""All served resources."""
