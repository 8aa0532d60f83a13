"""Kinds of controllers, as kubectl's users write them."""

from __future__ import annotations

from reserver.cli.failure import ExitStatus, Failed
from reserver.cluster.quantity import shorten

_KINDS = {
    "cj": "CronJob",
    "cronjob": "CronJob",
    "daemonset": "DaemonSet",
    "deploy": "Deployment",
    "deployment": "Deployment",
    "ds": "DaemonSet",
    "job": "Job",
    "podgroup": "PodGroup",
    "rc": "ReplicationController",
    "replicaset": "ReplicaSet",
    "replicationcontroller": "ReplicationController",
    "rs": "ReplicaSet",
    "statefulset": "StatefulSet",
    "sts": "StatefulSet",
}


def word_of(kind: str) -> str:
    """Return a kind as it is printed: in small letters if it is taken so."""
    low = kind.lower()
    return low if _KINDS.get(low) == kind else kind


def kind_of(text: str) -> str:
    """Return the kind of a controller, which may be written as kubectl takes it.

    Raises:
        Failed: it is none, and no kind begins with a small letter.
    """
    from reserver.cli.similar import did_you_mean

    low = text.lower()
    known = _KINDS.get(low) or _KINDS.get(low.removesuffix("s"))
    if known or not text[0].islower():
        return known or text
    remedy = did_you_mean(low, (*_KINDS, "pod"), "write the kind as in YAML, e.g. ReplicaSet")
    raise Failed(ExitStatus.USAGE, f"--owner: {shorten(text)!r} is not a kind; {remedy}")
