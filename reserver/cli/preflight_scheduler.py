"""Findings about the kube-scheduler that manifests give: its version and its configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from reserver.cli.checkup import Finding
from reserver.cli.preflight_files import CONFIGURATION, Id, Object


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
    pod = deployment["spec"]["template"]["spec"]
    for container in (*(pod.get("initContainers") or ()), *pod["containers"]):
        yield container.get("image", "")


def _minor(version: str) -> tuple[int, ...]:
    """Return major and minor of a version such as v1.37.0; empty for anything else."""
    parts = version.removeprefix("v").split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
