"""Installs stores, CRDs and the service account before Reserver starts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from hack.controlplane.kubeconfig import kubectl, service_account_kubeconfig

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "scheduler-config"
COMPONENTS = SHIPPED / "components"
CORE = [SHIPPED / "core" / name for name in ("crd.yaml", "crd-quota.yaml")]
RBAC = SHIPPED / "core/rbac-reserver.yaml"
REQUEST_CRD = ROOT / "tests/e2e/crd-provisioning.yaml"
REQUEST_RBAC = COMPONENTS / "provisioning/rbac.yaml"
MOVES = [COMPONENTS / "moves" / name for name in ("crd.yaml", "crd-group.yaml", "rbac.yaml")]
SURGE = [COMPONENTS / "surge" / name for name in ("rbac.yaml", "policy.yaml")]
WEBHOOKS = [COMPONENTS / "webhooks" / name for name in ("crd-patch.yaml", "rbac.yaml")]

SPEC_STORE = ("reserver-system", "e2e")
"""Namespace and name of the ConfigMap that is a store by its label."""

LIST_STORE = ("unicore", "reservation")
"""Namespace and name of the ConfigMap that Reserver is given by name."""


def install(
    kubeconfig: Path, folder: Path, *namespaces: str, components: Iterable[Path] = ()
) -> Path:
    """Create stores and Reserver's service account; return a kubeconfig of the latter.

    The rights are the shipped ones, and for stores elsewhere the documented ones: in the namespace
    of the storms' lists, and in `namespaces`.

    Args:
        kubeconfig: an administrator's.
        folder: the folder of the new kubeconfig.
        namespaces: further namespaces with stores.
        components: further shipped files.
    """
    shipped = [each for file in (RBAC, REQUEST_RBAC) for each in _documents(file)]
    elsewhere = [
        {**document, "metadata": {**document["metadata"], "namespace": namespace}}
        for document in shipped
        for namespace in (LIST_STORE[0], *namespaces)
        if document["kind"] in {"Role", "RoleBinding"}
    ]
    theirs = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in namespaces
    ]
    more = [each for file in (*CORE, REQUEST_CRD, *components) for each in _documents(file)]
    items = [*_stores(), *theirs, *shipped, *elsewhere, *more]
    manifest = folder / "install.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    kubectl(kubeconfig, "apply", "-f", str(manifest))
    kinds = [f"crd/{d['metadata']['name']}" for d in more if d["kind"].startswith("CustomResource")]
    kubectl(kubeconfig, "wait", "--for=condition=Established", *kinds)
    path = folder / "reserver-kubeconfig"
    service_account_kubeconfig(kubeconfig, "reserver-system", "reserver", path)
    return path


def _documents(file: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


def _stores() -> Iterator[dict[str, Any]]:
    for namespace, name in (SPEC_STORE, LIST_STORE):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        labels = {"reserver.io/store": "true"} if (namespace, name) == SPEC_STORE else {}
        metadata = {"namespace": namespace, "name": name, "labels": labels}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
