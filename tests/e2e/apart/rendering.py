"""Manifests that the chart and kustomize render, and the differences that are on purpose."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.chart import CHART
from hack.controlplane.build import bin_dir

pytestmark = pytest.mark.controlplane  # for its kubectl

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "scheduler-config"
HOME = "reserver-system"
Key = tuple[str, str, str]

ROUNDS_COMPONENT = "emptying"
"""The component of rebalancing, which the chart has with `rebalance.settings.defragment`."""

COMPONENTS = tuple(
    sorted(
        each.name for each in (MANIFESTS / "components").iterdir() if each.name != ROUNDS_COMPONENT
    )
)
BASES = {"base": "sidecar", "standby": "standby"}
BASE_COMPONENT = "grpc"
"""The component that `standby` has in it."""

TEMPLATE = (
    "template",
    "reserver",
    str(CHART),
    "--namespace=reserver-system",
    "--kube-version=v1.37.0",
)
VALUES = {"capacity-buffers": "capacityBuffers"}
"""The values of components that have another name there."""

KEEP = {"helm.sh/resource-policy": "keep"}


def render(helm: Path, *flags: str) -> dict[Key, Any]:
    """Return the objects that the chart renders for the cluster's own version."""
    return by_key(stdout_of(helm, *TEMPLATE, *flags))


def render_like_kustomize(helm: Path, *flags: str) -> dict[Key, Any]:
    """Return the same, with the tag that the manifests name, and without the pod of `helm test`."""
    found = render(helm, "--set=image.tag=dev", *flags)
    return {key: each for key, each in found.items() if key != ("Pod", HOME, "reserver-test")}


def kustomize(folder: Path) -> dict[Key, Any]:
    return by_key(stdout_of(bin_dir() / "kubectl", "kustomize", folder))


def stdout_of(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_key(text: str) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for each in filter(None, yaml.load_all(text, yaml.CSafeLoader)):
        metadata = each["metadata"]
        name = metadata["name"]
        if name.startswith("kube-scheduler-configuration-"):
            name = "kube-scheduler-configuration"
        key = (each["kind"], metadata.get("namespace", ""), name)
        assert key not in found, f"{key} is rendered twice"
        found[key] = each
    return found


def without_differences(rendered: dict[Key, Any]) -> dict[Key, Any]:
    """Return the objects without the differences between kustomize and Helm that are on purpose.

    - The namespace: Helm's is the release's, which `--create-namespace` makes; an object of the
      chart with that name would be in its way.
    - CRDs and the store stay when a release is uninstalled.
    - The hash in the name of kube-scheduler's configuration comes from another function.
    - A list of things with names has no order for Kubernetes, and comments are no content.
    """
    found = {}
    for key, each in rendered.items():
        if key[0] == "Namespace":
            continue
        metadata = each["metadata"]
        is_kept = key[0] == "CustomResourceDefinition" or key[::2] == ("ConfigMap", "reservations")
        if is_kept and metadata.get("annotations") == KEEP:
            del metadata["annotations"]
        if key[2] == "kube-scheduler-configuration":
            metadata["name"] = key[2]
        if key[0] == "ConfigMap":
            each["data"] = {
                name: yaml.safe_load(text) for name, text in each.get("data", {}).items()
            }
        found[key] = _by_name(each)
    return found


def _by_name(value: Any) -> Any:
    if isinstance(value, dict):
        if (
            (value.get("configMap") or {})
            .get("name", "")
            .startswith("kube-scheduler-configuration-")
        ):
            value = {**value, "configMap": {"name": "kube-scheduler-configuration"}}
        return {key: _by_name(each) for key, each in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and "name" in each for each in value):
            return {each["name"]: _by_name(each) for each in value}
        return [_by_name(each) for each in value]
    return value


CALLERS = "192.0.2.0/28"
"""The addresses of API servers, which may call webhooks (docs/patches.md)."""


def enabled(components: tuple[str, ...]) -> list[str]:
    found = [f"--set={VALUES.get(each, each)}.enabled=true" for each in components]
    if "webhooks" in components:
        found.append(f"--set=networkPolicy.webhooksFrom={{{CALLERS}}}")
    return found


def components_of(base: str) -> tuple[str, ...]:
    return tuple(each for each in COMPONENTS if base == "base" or each != BASE_COMPONENT)
