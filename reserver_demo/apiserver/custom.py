"""Custom resources: apiextensions-apiserver/pkg/registry/customresource."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reserver_demo.apiserver.schema import OBJECT_META, PREFIX, Schema
from reserver_demo.apiserver.status import Cause, Json
from reserver_demo.apiserver.strategy import Strategy, keep
from reserver_demo.apiserver.structural import causes


def structure_of(crd: Json) -> Schema:
    """Return the schema of a CRD's only version, including metadata."""
    (version,) = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    metadata = {"$ref": f"{PREFIX}{OBJECT_META}", "x-kubernetes-preserve-unknown-fields": True}
    properties = schema["properties"] | {"metadata": metadata}
    kind = {
        "group": crd["spec"]["group"],
        "kind": crd["spec"]["names"]["kind"],
        "version": version["name"],
    }
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [kind]}


def strategy_of(structure: Schema, *, has_status: bool) -> Strategy:
    """Return the strategy for objects of a schema."""
    return Strategy(
        prepare_create=_prepare,
        prepare_update=_prepare_update,
        prepare_status=_prepare_status if has_status else None,
        check=partial(_check, structure),
    )


def _check(structure: Schema, custom: Json) -> Iterator[Cause]:
    rest = {k: v for k, v in custom.items() if k != "metadata"}
    return causes(rest, structure, "")


def _prepare(custom: Json) -> None:
    custom.pop("status", None)
    custom["metadata"]["generation"] = 1


def _prepare_update(new: Json, old: Json) -> None:
    keep("status", new, old)
    if new.get("spec") != old.get("spec"):
        new["metadata"]["generation"] = old["metadata"]["generation"] + 1


def _prepare_status(new: Json, old: Json) -> None:
    keep("spec", new, old)
    new["metadata"] = dict(old["metadata"])
