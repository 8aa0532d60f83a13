"""The strategies of nodes, namespaces, ConfigMaps, events, budgets and priority classes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reserver_demo.apiserver.status import (
    Cause,
    Json,
    forbidden_value,
    invalid_value,
    required,
    too_long,
)
from reserver_demo.apiserver.strategy import Strategy, keep, show_times

_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_MAX_DATA_KEY = 253
_MAX_DATA = 1024 * 1024


def _keep_status(new: Json, old: Json) -> None:
    keep("status", new, old)


def _keep_spec(new: Json, old: Json) -> None:
    keep("spec", new, old)


def _prepare_node(node: Json) -> None:
    """Set defaults: allocatable is the capacity (`SetDefaults_NodeStatus`)."""
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", status["capacity"])
    show_times(status, "lastHeartbeatTime", "lastTransitionTime")


def _prepare_node_update(new: Json, old: Json) -> None:
    keep("status", new, old)
    spec = new.setdefault("spec", {})
    # A boolean with omitempty: false is the same as absent.
    if spec.get("unschedulable") is False:
        del spec["unschedulable"]


def _prepare_node_status(new: Json, old: Json) -> None:
    keep("spec", new, old)
    show_times(new.get("status", {}), "lastHeartbeatTime", "lastTransitionTime")


NODE = Strategy(
    prepare_create=_prepare_node,
    prepare_update=_prepare_node_update,
    prepare_status=_prepare_node_status,
)


def _prepare_namespace(namespace: Json) -> None:
    metadata = namespace["metadata"]
    name_label = {"kubernetes.io/metadata.name": metadata["name"]}
    metadata["labels"] = metadata.get("labels", {}) | name_label
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _prepare_namespace_update(new: Json, old: Json) -> None:
    keep("spec", new, old)
    keep("status", new, old)


NAMESPACE = Strategy(
    prepare_create=_prepare_namespace,
    prepare_update=_prepare_namespace_update,
    prepare_status=_keep_spec,
    returns_deleted=True,
)


def _check_config_map(config_map: Json) -> Iterator[Cause]:
    """Check keys and size (`ValidateConfigMap`)."""
    data, binary = config_map.get("data", {}), config_map.get("binaryData", {})
    for field, entries in (("data", data), ("binaryData", binary)):
        for key in entries:
            if problem := _data_key_problem(key):
                yield invalid_value(f"{field}[{key}]", key, problem)
    for key in data.keys() & binary.keys():
        yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    # The API server counts the values only, not the keys.
    if sum(len(value.encode()) for value in (*data.values(), *binary.values())) > _MAX_DATA:
        yield too_long("", f"may not be more than {_MAX_DATA} bytes")


def _data_key_problem(key: str) -> str:
    """Return the problem of a key of a ConfigMap; empty if valid (`IsConfigMapKey`)."""
    if len(key) > _MAX_DATA_KEY:
        return f"must be no more than {_MAX_DATA_KEY} characters"
    if not _DATA_KEY.fullmatch(key):
        return (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
            "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')"
        )
    if key in {".", ".."}:
        return f"must not be '{key}'"
    return "must not start with '..'" if key.startswith("..") else ""


def _check_config_map_update(new: Json, old: Json) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    for field in ("data", "binaryData"):
        if new.get(field) != old.get(field):
            yield forbidden_value(field, "field is immutable when `immutable` is set")
    if not new.get("immutable"):
        yield forbidden_value("immutable", "field is immutable when `immutable` is set")


CONFIG_MAP = Strategy(check=_check_config_map, check_update=_check_config_map_update)


def _check_event(event: Json) -> Iterator[Cause]:
    """Check that the event is in the namespace of its object (`legacyValidateEvent`)."""
    namespace = event["metadata"].get("namespace")
    involved = event.get("involvedObject", {}).get("namespace", "")
    where = "involvedObject.namespace"
    mismatch = invalid_value(where, involved, "does not match event.namespace")
    if "eventTime" not in event:
        if namespace != (involved or "default"):
            yield mismatch
        return
    if not involved and namespace not in {"default", "kube-system"}:
        yield mismatch
    for field in ("reportingComponent", "reportingInstance", "action", "reason"):
        if not event.get(field):
            yield required(field)


EVENT = Strategy(check=_check_event)


def _prepare_budget(budget: Json) -> None:
    budget["metadata"]["generation"] = 1
    counts = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    budget["status"] = dict.fromkeys(counts, 0)


def _prepare_budget_update(new: Json, old: Json) -> None:
    keep("status", new, old)
    if new.get("spec") != old.get("spec"):
        new["metadata"]["generation"] = old["metadata"]["generation"] + 1


def _check_budget(budget: Json) -> Iterator[Cause]:
    spec = budget.get("spec", {})
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid_value("spec", "", "minAvailable and maxUnavailable cannot be both set")


BUDGET = Strategy(
    prepare_create=_prepare_budget,
    prepare_update=_prepare_budget_update,
    prepare_status=_keep_spec,
    check=_check_budget,
)


def _prepare_priority_class(priority_class: Json) -> None:
    priority_class["metadata"]["generation"] = 1
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _check_priority_class_update(new: Json, old: Json) -> Iterator[Cause]:
    if new.get("value") != old.get("value"):
        yield forbidden_value("value", "may not be changed in an update.")


PRIORITY_CLASS = Strategy(
    prepare_create=_prepare_priority_class,
    prepare_update=_keep_status,
    check_update=_check_priority_class_update,
)
