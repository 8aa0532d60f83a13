"""Findings about the programs that manifests start: kube-scheduler, and `reserver serve`.

Among the settings of `serve` is the ceiling on all tenants, which an older version does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reserver.cli.doctor import Finding
from reserver.cli.preflight_files import CONFIGURATION, Id, Object
from reserver.cli.preflight_holds import WrittenSpec
from reserver.cli.serve import unknown_variable
from reserver.cluster import quantity
from reserver.errors import ConfigurationError
from reserver.printable import printable
from reserver.reservations.quota import HELD, show_amount, usage
from reserver.settings.configuration import KIND, Values, parse
from reserver.settings.flags import NO_PERCENT, declared, read_percent
from reserver.settings.serve import CEILING, Settings


def of_scheduler(
    here: Mapping[Id, Object], there: Mapping[Id, Object], version: str
) -> Iterator[Finding]:
    """Yield findings about kube-scheduler, its version and its configuration.

    `version` is the API server's.
    """
    for id_ in sorted(there):
        for image in _images(there[id_]) if id_.kind == "Deployment" else ():
            name, _, tag = image.partition("@")[0].rpartition(":")
            if name.endswith("/kube-scheduler") and _minor(tag) > _minor(version):
                said = f"{id_} has kube-scheduler {tag}, newer than the API server ({version})"
                yield Finding("kube-scheduler", False, said, f"give it the tag {version}")
    old, new = _configurations(here), _configurations(there)
    if new and old and not new <= old:
        said = "kube-scheduler restarts with another configuration"
        yield Finding("kube-scheduler", True, said)
    if there and not new:
        said = "the files have no kube-scheduler that calls Reserver"
        where = "scheduler-config/standby/kube-scheduler-extender.yaml of both versions"
        yield Finding("kube-scheduler", True, f"{said}: compare {where}")


def _configurations(objects: Mapping[Id, Object]) -> set[str]:
    return {
        json.dumps(found.get("data"), sort_keys=True)
        for id_, found in objects.items()
        if id_.kind == "ConfigMap" and id_.name.startswith(CONFIGURATION)
    }


def _images(deployment: Object) -> Iterator[str]:
    for container in containers(deployment):
        yield container.get("image", "")


def containers(deployment: Object) -> Iterator[Object]:
    """Yield the containers of a Deployment's pods, sidecars among them."""
    pod = deployment["spec"]["template"]["spec"]
    yield from (*(pod.get("initContainers") or ()), *pod["containers"])


def _minor(version: str) -> tuple[int, ...]:
    """Return major and minor of a version such as v1.37.0; empty for anything else."""
    parts = version.removeprefix("v").split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


_CHECK = "settings"
_SERVE = ["reserver", "serve"]


def of_settings(there: Mapping[Id, Object]) -> Iterator[Finding]:
    """Yield findings about flags, variables and files with which this version would not start."""
    remedy = "correct the files before they are applied"
    for id_ in sorted(there):
        if id_.kind == "Deployment":
            for problem in _of_deployment(there[id_]):
                yield Finding(_CHECK, False, f"{id_}: {problem}", remedy)
        if id_.kind == "ConfigMap":
            for key, text in (there[id_].get("data") or {}).items():
                for problem in _read(str(text))[1]:
                    said = f"{id_}: {printable(str(key))}: {problem}"
                    yield Finding(_CHECK, False, said, remedy)


def _of_deployment(deployment: Object) -> Iterator[str]:
    known = {each.name: each.kind for each in declared(Settings)}
    for container in containers(deployment):
        command = [*(container.get("command") or ()), *(container.get("args") or ())]
        if command[:2] != _SERVE:
            continue
        for argument in command[2:]:
            name = str(argument).partition("=")[0]
            switch = name.replace("--no-", "--", 1)
            is_known = name in known or known.get(switch) is bool
            if name.startswith("--") and not is_known:
                yield f"{printable(name)} is not a flag of this version"
        if problem := unknown_variable(_variables(container)):
            yield problem


def _variables(container: Mapping[str, Any]) -> dict[str, str]:
    variables = container.get("env") or ()  # One of a Secret has no value here.
    return {str(each.get("name")): str(each.get("value") or "") for each in variables}


def _read(text: str) -> tuple[Values, list[str]]:
    """Return the values and the problems of a configuration file; of another text, nothing."""
    if f"kind: {KIND}" not in text:
        return {}, []
    try:
        return parse(text.encode()), []
    except ConfigurationError as exc:
        return {}, str(exc).splitlines()


_FLAG = "--tenant-ceiling-cluster="
_VARIABLE = "RESERVER_TENANT_CEILING_CLUSTER"
_BUFFERS = "--capacity-buffers"


def of_ceiling(
    written: Iterable[WrittenSpec],
    nodes: Iterable[Object],
    there: Mapping[Id, Object],
    home: str,
) -> Iterator[Finding]:
    """Yield a finding if tenants hold more than the ceiling of the files.

    Args:
        written: the written reservations.
        nodes: the Node objects.
        there: the files.
        home: Reserver's own namespace, which is no tenant.
    """
    percent = read_percent(_ceiling(there))
    if percent is None:
        return
    reservations = (one for each in written if each.is_object for one in each.entries.reservations)
    tenants = (one for one in reservations if one.ref.namespace != home)
    held = quantity.total(usage(one, one.slots) for one in tenants)
    offered = quantity.total(map(_allocatable, nodes))
    over = [
        f"{HELD}{name}={show_amount(f'{HELD}{name}', held[f'{HELD}{name}'])}"
        for name, amount in sorted(offered.items())
        if held.get(f"{HELD}{name}", 0) * 100 > amount * percent
    ]
    if over:
        said = f"tenants hold more than {percent}% of the nodes' resources: {', '.join(over)}"
        remedy = "they hold on, and no tenant is admitted more: set tenantCeiling.cluster"
        yield Finding("ceiling", False, said, remedy)


def _allocatable(node: Object) -> Mapping[str, int]:
    offered: Mapping[str, Any] = (node.get("status") or {}).get("allocatable") or {}
    return {name: quantity.amount(name, str(text)) for name, text in offered.items()}


def _ceiling(there: Mapping[Id, Object]) -> str:
    """Return the share that the files set, by flag, variable or configuration; else the default."""
    has_buffers = False
    for id_, each in there.items():
        for text in (each.get("data") or {}).values() if id_.kind == "ConfigMap" else ():
            values, _ = _read(str(text))
            if found := values.get("tenant_ceiling_cluster"):
                return str(found)
            has_buffers |= bool(values.get("capacity_buffers"))
        for container in containers(each) if id_.kind == "Deployment" else ():
            args = [str(arg) for arg in container.get("args") or ()]
            if given := [arg.removeprefix(_FLAG) for arg in args if arg.startswith(_FLAG)]:
                return given[-1]
            if variable := _variables(container).get(_VARIABLE):
                return variable
            has_buffers |= _BUFFERS in args
    return NO_PERCENT if has_buffers else CEILING
