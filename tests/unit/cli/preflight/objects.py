"""Objects of a cluster that `preflight` reads."""

from __future__ import annotations

import json
from typing import Any

from reserver.cli import preflight_files, preflight_holds
from reserver.cli.preflight_holds import WrittenSpec
from reserver.k8s.objects.objects import LabelledConfigMap, LabelledMetadata, decode
from reserver.stores.object.codec import ReservationObject
from tests.builders import NOW

HOME = "reserver-system"
SPEC = {
    "owners": [{"pod": {"name": "web-0", "namespace": "shop"}}],
    "node": "worker-1",
    "resources": {"cpu": "2"},
}
OWN = SPEC | {"owners": [{"pod": {"name": "w"}}]}


def keys(companion: dict[str, str], **specs: Any) -> list[WrittenSpec]:
    data = {key: spec if isinstance(spec, str) else json.dumps(spec) for key, spec in specs.items()}
    configmap = LabelledConfigMap(LabelledMetadata("reservations", HOME), data)
    return list(preflight_holds.keys_of(configmap, companion, NOW))


def reservation(spec: dict[str, Any], status: dict[str, Any] | None = None) -> WrittenSpec:
    whole = {"phase": "Active", "observedGeneration": 1, "claimed": 0, "placements": []}
    item = {
        "metadata": {"name": "web", "namespace": "shop", "generation": 1},
        "spec": spec,
        "status": None if status is None else whole | {"claims": [], "conditions": []} | status,
    }
    found = decode(ReservationObject, json.dumps(item).encode())
    return preflight_holds.object_of(found, HOME, NOW)


def an(kind: str, name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"kind": kind, "metadata": metadata, **more}


def of(*objects: dict[str, Any]) -> Any:
    return preflight_files.identified(objects, HOME)


def role(*rules: dict[str, Any]) -> dict[str, Any]:
    return an("ClusterRole", "reserver", rules=list(rules))
