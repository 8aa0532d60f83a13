"""Reads a policy out of Helm values of the descheduler, and of Koordinator's configuration.

A field without a counterpart is ignored with a warning that names its place; a field is refused if
ignoring the field would move more pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput
from reserver.rebalance.policy import EVICTOR, PLUGINS, POINTS

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"

_HELM, _HELM_VERSION = "deschedulerPolicy", "deschedulerPolicyAPIVersion"
_KOORDINATOR = "DeschedulerConfiguration"
_MIGRATION = "MigrationController"
_ALL = "*"

_FLAGS = {
    "schedule": "write it into the CronJob",
    "cmdOptions": "give flags of `reserver rebalance run`",
    "deschedulingInterval": "give --descheduling-interval",
    "leaderElection": "give --leader-elect",
    "clientConnection": "give --client-connection-qps",
    "healthzBindAddress": "give --health-address",
    "metricsBindAddress": "give --health-address",
    "maxMigratingPerNode": "write moveLimits.maxMigratingPerNode into `serve`'s configuration",
    "maxMigratingPerNamespace": "write moveLimits.maxMigratingPerNamespace into `serve`'s",
    "maxMigratingGlobally": "write moveLimits.maxMigratingGlobally into `serve`'s configuration",
    "maxMigratingPerWorkload": "write moveLimits.maxMigratingPerWorkload into `serve`'s",
    "evictQPS": "give --client-connection-qps",
    "evictBurst": "give --client-connection-burst",
    "defaultJobMode": "give --mode reserve-first or evict-only",
}
"""The place of each field that is not part of a policy."""

_EVICTOR_FIELDS = frozenset({
    "evictSystemCriticalPods", "evictLocalStoragePods", "ignorePvcPods", "evictFailedBarePods",
    "priorityThreshold", "labelSelector", "nodeFit", "nodeSelector",
})  # fmt: skip
"""Arguments that MigrationController and `DefaultEvictor` share."""

_POLICY_FIELDS = (
    "maxNoOfPodsToEvictPerNode",
    "maxNoOfPodsToEvictPerNamespace",
    "maxNoOfPodsToEvictTotal",
)

_OPERATORS: Mapping[str, Callable[[str, str], str]] = {
    "In": lambda key, values: f"{key} in ({values})",
    "NotIn": lambda key, values: f"{key} notin ({values})",
    "Exists": lambda key, _: key,
    "DoesNotExist": lambda key, _: f"!{key}",
}

Document = dict[str, Any]


class Imported(NamedTuple):
    """A policy in the descheduler's form.

    Attributes:
        value: the outer document.
        prefix: the path to the policy in the file; empty at the top.
        warnings: ignored fields.
    """

    value: Document
    prefix: str = ""
    warnings: tuple[InvalidInput, ...] = ()


def imported(value: Document) -> Imported:
    """Return a policy, whoever's file it stands in; another document comes back as it is.

    Raises:
        InvalidInput: a part cannot be ignored, and has no counterpart.
    """
    if _HELM in value and "kind" not in value:
        return _helm(value)
    if value.get("kind") == _KOORDINATOR:
        warnings: list[InvalidInput] = []
        return Imported(_koordinator(value, warnings), warnings=tuple(warnings))
    return Imported(value)


def _helm(value: Document) -> Imported:
    """Return the policy of the descheduler's Helm values (templates/configmap.yaml)."""
    options = value.get("cmdOptions")
    if isinstance(options, dict) and options.get("dry-run", False) is not False:
        raise InvalidInput("cmdOptions.dry-run", "is not part of a policy", "give --dry-run")
    policy = _mapping(value, _HELM, "")
    version = value.get(_HELM_VERSION, API_VERSION)
    beside = [name for name in value if name not in {_HELM, _HELM_VERSION}]
    warnings = tuple(_ignored("", name) for name in beside)
    return Imported({"apiVersion": version, "kind": KIND, **policy}, _HELM, warnings)


def _koordinator(value: Document, warnings: list[InvalidInput]) -> Document:
    """Return the policy of koord-descheduler's configuration (apis/config/v1alpha2/types.go)."""
    if value.get("dryRun", False) is not False:
        raise InvalidInput("dryRun", "is not part of a policy", "give --dry-run, and remove it")
    profiles = _list(value, "profiles", "")
    selectors = [_selector(value, "")]
    made = []
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        if not isinstance(profile, dict):
            raise InvalidInput(path, "is not a mapping", "write name: and plugins:")
        if (selector := _selector(profile, path)) and len(profiles) > 1:
            problem = "would count for all profiles"
            raise InvalidInput(f"{path}.nodeSelector", problem, "write a file for each profile")
        selectors.append(selector)
        made.append(_profile(profile, path, warnings))
    known = {"apiVersion", "kind", "dryRun", "profiles", "nodeSelector", *_POLICY_FIELDS}
    warnings += (_ignored("", name) for name in value if name not in known)
    said = {name: value[name] for name in _POLICY_FIELDS if name in value}
    if text := ",".join(filter(None, selectors)):
        said["nodeSelector"] = text
    version = value.get("apiVersion", API_VERSION)
    return {"apiVersion": version, "kind": KIND, "profiles": made, **said}


def _profile(profile: Document, path: str, warnings: list[InvalidInput]) -> Document:
    configs = list(_configs(profile, path, warnings))
    plugins = {}
    for point, given in _mapping(profile, "plugins", path).items():
        where = f"{path}.plugins.{point}"
        enabled = []
        for name in _names(given, where):
            if name in POINTS.get(point, ()):
                enabled.append(name)
            elif name != _MIGRATION:
                warnings.append(InvalidInput(where, f"{shorten(name)} is ignored", _without(name)))
        if point in POINTS:
            plugins[point] = {"enabled": enabled}
        # Koordinator runs a plugin without an entry with its defaults.
        there = {each.get("name") for each in configs}
        configs += ({"name": name, "args": {}} for name in enabled if name not in there)
    known = {"name", "pluginConfig", "plugins", "nodeSelector"}
    warnings += (_ignored(path, name) for name in profile if name not in known)
    return {"name": profile.get("name", ""), "pluginConfig": configs, "plugins": plugins}


def _configs(profile: Document, path: str, warnings: list[InvalidInput]) -> Iterator[Document]:
    """Yield the entries of ``pluginConfig``; `_MIGRATION`'s is one of the evictor."""
    for index, entry in enumerate(_list(profile, "pluginConfig", path)):
        where = f"{path}.pluginConfig[{index}]"
        if not isinstance(entry, dict):
            raise InvalidInput(where, "is not a mapping", "write name: and args:")
        name = str(entry.get("name", ""))
        if name == _MIGRATION:
            args = _mapping(entry, "args", where)
            if args.get("dryRun", False) is not False:
                raise InvalidInput(
                    f"{where}.args.dryRun", "is not part of a policy", "give --dry-run"
                )
            yield {
                "name": EVICTOR,
                "args": {name: args[name] for name in args if name in _EVICTOR_FIELDS},
            }
            known = _EVICTOR_FIELDS | {"apiVersion", "kind", "dryRun"}
            warnings += (_ignored(f"{where}.args", name) for name in args if name not in known)
        elif name in PLUGINS:
            yield entry
        else:
            warnings.append(InvalidInput(where, f"{shorten(name)} is ignored", _without(name)))


def _names(given: object, path: str) -> Iterator[str]:
    """Yield the names of the plugins that are enabled at a point; Koordinator has ``- name: X``."""
    found = given or {}
    if not isinstance(found, dict):
        raise InvalidInput(path, "is not a mapping", "write enabled:")
    for each in _list(found, "enabled", path):
        name = each.get("name") if isinstance(each, dict) else each
        if not isinstance(name, str):
            raise InvalidInput(f"{path}.enabled", "has an entry without a name", "write - name: X")
        if name != _ALL:
            yield name


def _selector(of: Document, path: str) -> str:
    """Return a label selector as the text that the descheduler has."""
    selector = _mapping(of, "nodeSelector", path)
    where = f"{path}.nodeSelector".lstrip(".")
    parts = [f"{key}={value}" for key, value in _mapping(selector, "matchLabels", where).items()]
    for each in _list(selector, "matchExpressions", where):
        if not isinstance(each, dict) or each.get("operator") not in _OPERATORS:
            problem, remedy = "has an unknown operator", f"write one of {', '.join(_OPERATORS)}"
            raise InvalidInput(f"{where}.matchExpressions", problem, remedy)
        values = ",".join(map(str, _list(each, "values", f"{where}.matchExpressions")))
        parts.append(_OPERATORS[each["operator"]](str(each.get("key", "")), values))
    return ",".join(parts)


def _mapping(of: Document, field: str, path: str) -> Document:
    found = of.get(field) or {}
    if not isinstance(found, dict):
        raise InvalidInput(
            f"{path}.{field}".lstrip("."), "is not a mapping", "write its fields below"
        )
    return found


def _list(of: Document, field: str, path: str) -> list[Any]:
    found = of.get(field) or []
    if not isinstance(found, list):
        problem, remedy = "is not a list", "write each item after a dash"
        raise InvalidInput(f"{path}.{field}".lstrip("."), problem, remedy)
    return found


def _ignored(path: str, name: str) -> InvalidInput:
    remedy = _FLAGS.get(name, "remove it")
    return InvalidInput(f"{path}.{shorten(name)}".lstrip("."), "is ignored", remedy)


def _without(name: str) -> str:
    return f"Reserver has no {shorten(name)}; its plugins are {', '.join(PLUGINS)}"
