"""Findings about the programs that manifests start: kube-scheduler, and `reserver serve`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reserver.cli.doctor import Finding
from reserver.cli.preflight_files import CONFIGURATION, Id, Object
from reserver.cli.serve_settings import unknown_variable
from reserver.errors import ConfigurationError
from reserver.printable import printable
from reserver.settings.configuration import KIND, parse
from reserver.settings.flags import declared
from reserver.settings.serve import Settings


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
                for problem in _of_file(str(text)):
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
    return {str(each.get("name")): str(each.get("value")) for each in container.get("env") or ()}


def _of_file(text: str) -> Iterator[str]:
    """Yield the problems of a text if it is a configuration file."""
    if f"kind: {KIND}" not in text:
        return
    try:
        parse(text.encode())
    except ConfigurationError as exc:
        yield from str(exc).splitlines()
