"""The ways to write a reservation for a pod."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

STORE = ("reserver-system", "e2e")
"""A ConfigMap with the label that makes it a store."""

NAMED_STORE = ("unicore", "reservation")
"""A ConfigMap without the label, which a flag of Reserver names."""

OBJECTS = ("reserver.io", "v1alpha1")
"""Group and version of Reservation objects."""


@dataclass(frozen=True)
class Form:
    """One way to write a reservation for a pod: into a ConfigMap, or as an object."""

    name: str
    store: tuple[str, str]
    write: Callable[..., str]

    @property
    def is_list(self) -> bool:
        """Whether a node's reservations stand in one list under the node's name."""
        return self in {SHORT, LONG}

    @property
    def is_object(self) -> bool:
        """Whether a reservation is an object of its own, in the namespace of its owners."""
        return self is OBJECT


def _spec(node: str, pod: str, namespace: str, expires: float, **resources: str) -> dict[str, Any]:
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
    owner = {"pod": {"name": pod, "namespace": namespace}}
    return {"owners": [owner], "resources": resources, "node": node, "expiresAt": moment}


def _short(_: str, pod: str, namespace: str, expires: float, *, cpu: str, memory: str) -> str:
    amounts = {"cpu": int(cpu.removesuffix("m")), "mem": int(memory)}
    return json.dumps({"pod": pod, "namespace": namespace, **amounts, "expire": int(expires)})


def _long(_: str, pod: str, namespace: str, expires: float, *, cpu: str, memory: str) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
    owner = {"reservingPod": pod, "reservingPodNamespace": namespace}
    amounts = {"cpuMilli": int(cpu.removesuffix("m")), "memMilli": int(memory)}
    return json.dumps({**owner, **amounts, "expireAt": moment})


SPEC = Form("spec", STORE, lambda *a, **k: yaml.safe_dump(_spec(*a, **k)))

SHORT = Form("short-list", NAMED_STORE, _short)

LONG = Form("long-list", NAMED_STORE, _long)

OBJECT = Form("object", OBJECTS, SPEC.write)

CONFIG_MAP_FORMS = (SPEC, SHORT, LONG)

FORMS = (*CONFIG_MAP_FORMS, OBJECT)

OBJECT_FIRST = (
    OBJECT,
    *(pytest.param(each, marks=pytest.mark.release) for each in CONFIG_MAP_FORMS),
)
"""All forms for a test that takes long: `make e2e` writes objects only."""
