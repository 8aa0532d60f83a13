"""KubeVirt's live migrations: the pod that a virtual machine moves to runs before the old one ends.

Who evicts the old pod is answered 429 by a webhook, and the migration begins (KubeVirt's
docs/evacuation.md). A budget of KubeVirt forbids evictions that would end the machine.
"""

from __future__ import annotations

from reserver.cluster.pod import Controller, Pod

MACHINE = "VirtualMachineInstance"
"""The kind of what controls the pods of a virtual machine."""

TARGET_LABEL = "kubevirt.io/migrationJobUID"
"""The label of a pod that a virtual machine migrates to, or has migrated to."""


def migrates(controller: Controller) -> bool:
    """Return whether the pods of a controller move by live migrations."""
    return controller.kind == MACHINE


def is_target(pod: Pod) -> bool:
    """Return whether a live migration has made a pod."""
    return migrates(pod.controller) and TARGET_LABEL in pod.labels
