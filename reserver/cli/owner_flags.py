"""Owners of a reservation as flags and kubectl write them, and ``NAME=VALUE``."""

from __future__ import annotations

from typing import Any

from reserver.cli.failure import WrongUsage, did_you_mean
from reserver.cluster.quantity import shorten

OWNER_FORMS = "write pod/NAME, KIND/NAME or LABEL=VALUE,…"


def _split_namespace(text: str) -> tuple[str, str]:
    """Return the namespace in front of an owner, as `get -o wide` prints it, and the rest.

    A label's own prefix has a dot, or another one stands before it.
    """
    first, slash, rest = text.partition("/")
    has_two = "/" in rest.partition("=")[0]
    is_one = has_two if "=" not in text else slash and "=" not in first and "." not in first
    return (first, rest) if is_one or has_two else ("", text)


def owner(text: str, namespace: str) -> dict[str, Any]:
    """Return an entry of ``owners`` for ``pod/NAME``, ``KIND/NAME`` or ``LABEL=VALUE,…``.

    ``NAMESPACE/`` before the text overrides `namespace`.

    Raises:
        Failed: the text has another form.
    """
    own, text = _split_namespace(text)
    namespace = own or namespace
    if "=" in text:
        labels = dict(pair("--owner", each, "app=web") for each in text.split(","))
        return {"selector": {"matchLabels": labels, "namespace": namespace}}
    kind, slash, name = text.partition("/")
    if not (kind and slash and name):
        raise WrongUsage(f"--owner: {shorten(text)!r} is not an owner; {OWNER_FORMS}")
    if kind in {"pod", "Pod", "pods", "po"}:
        return {"pod": {"name": name, "namespace": namespace}}
    kind = kind_of(kind)
    return {"controller": {"kind": kind, "name": name, "namespace": namespace}}


def pair(flag: str, text: str, example: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``.

    Raises:
        Failed: it is not of that form.
    """
    name, equals, value = text.rpartition("=") if flag == "--resource" else text.partition("=")
    if not (name and equals and value):
        problem = f"{shorten(text)!r} is not of the form NAME=VALUE"
        raise WrongUsage(f"{flag}: {problem}; write e.g. {example}")
    return name, value


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
    low = text.lower()
    known = _KINDS.get(low) or _KINDS.get(low.removesuffix("s"))
    if known or not text[0].islower():
        return known or text
    remedy = did_you_mean(low, (*_KINDS, "pod"), "write the kind as in YAML, e.g. ReplicaSet")
    raise WrongUsage(f"--owner: {shorten(text)!r} is not a kind; {remedy}")
