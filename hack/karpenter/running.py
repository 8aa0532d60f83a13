"""A Karpenter that adds and removes nodes, for as long as a test needs it.

The Cluster Autoscaler, which reads the same CapacityBuffers, is not here: the Go module proxy does
not have its module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes.client import CustomObjectsApi
from kubernetes.config import new_client_from_config

from hack.controlplane.process import Process, answers, start_on_free_port, stop
from hack.go_tool import KARPENTER

_CLASS = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
}
_POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "pool"},
    "spec": {
        # As eager as it can be: a node that is empty goes at once.
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"},
        "template": {
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.kwok.sh",
                    "kind": "KWOKNodeClass",
                    "name": "default",
                },
                "requirements": [
                    {
                        "key": "node.kubernetes.io/instance-type",
                        "operator": "In",
                        "values": ["c-4x-amd64-linux"],
                    }
                ],
            }
        },
    },
}


def source() -> Path:
    """Return the folder of Karpenter's source; its CRDs, CapacityBuffers among them, are there.

    Raises:
        BuildError: no usable Go, or a failed download.
    """
    return KARPENTER.source("sigs.k8s.io/karpenter")


def crds() -> list[Path]:
    """Return the files of the CRDs that Karpenter needs, and its kwok provider."""
    folders = (source() / "kwok" / each for each in ("charts/crds", "apis/crds"))
    return sorted(file for folder in folders for file in folder.glob("*.yaml"))


@contextmanager
def provisioning(kubeconfig: Path, log: Path) -> Iterator[None]:
    """Run Karpenter with CapacityBuffers and one NodePool, of nodes with four cores.

    Args:
        kubeconfig: of an administrator of a cluster that has Karpenter's CRDs.
        log: file that its log is written to.
    """
    custom: Any = CustomObjectsApi(new_client_from_config(str(kubeconfig)))
    custom.create_cluster_custom_object("karpenter.kwok.sh", "v1alpha1", "kwoknodeclasses", _CLASS)
    custom.create_cluster_custom_object("karpenter.sh", "v1", "nodepools", _POOL)

    def start(port: int) -> tuple[Process, int]:
        command: list[str | Path] = [
            "/usr/bin/env",
            f"KUBECONFIG={kubeconfig}",
            "SYSTEM_NAMESPACE=kube-system",
            KARPENTER.build(),
            "--feature-gates=CapacityBuffer=true",
            "--disable-leader-election=true",
            "--metrics-port=0",
            f"--health-probe-port={port}",
            "--batch-idle-duration=200ms",
            "--batch-max-duration=1s",
        ]
        process = Process(command, log)
        process.wait_until(lambda: answers(port, "/healthz"))
        return process, port

    process, _ = start_on_free_port(start)
    try:
        yield
    finally:
        stop([process])
