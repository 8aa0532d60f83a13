"""Reduce the API server's own OpenAPI documents to the schemas the embedded server knows.

Run as a program, it writes them anew from a real API server:

    python -m tests.contract.schema_document KUBECONFIG
"""

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from tests.contract.api import Api, server_from

SHIPPED = Path(__file__).parents[2] / "reserver_demo" / "apiserver" / "schema.json"
PREFIX = "#/components/schemas/"
ROOTS = (
    "io.k8s.api.apps.v1.Deployment",
    "io.k8s.api.apps.v1.ReplicaSet",
    "io.k8s.api.batch.v1.CronJob",
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.core.v1.Binding",
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Event",
    "io.k8s.api.core.v1.Namespace",
    "io.k8s.api.core.v1.Node",
    "io.k8s.api.core.v1.PersistentVolume",
    "io.k8s.api.core.v1.PersistentVolumeClaim",
    "io.k8s.api.core.v1.Pod",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.api.policy.v1.PodDisruptionBudget",
    "io.k8s.api.scheduling.v1.PriorityClass",
    "io.k8s.api.storage.v1.StorageClass",
)
DOCUMENTS = (
    "api/v1",
    "apis/apps/v1",
    "apis/batch/v1",
    "apis/policy/v1",
    "apis/scheduling.k8s.io/v1",
    "apis/storage.k8s.io/v1",
)


def reduce_documents(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The schemas that ROOTS need, without prose and defaults, references flattened."""
    known: dict[str, Any] = {}
    for document in documents:
        known.update(document["components"]["schemas"])
    kept: dict[str, Any] = {}
    wanted = list(ROOTS)
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept[name] = _plain(known[name])
            wanted.extend(_references(kept[name]))
    return dict(sorted(kept.items()))


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    only = schema.get("allOf", ())
    if len(only) == 1:
        schema = {**{k: v for k, v in schema.items() if k != "allOf"}, **only[0]}
    return {
        key: _plain(value)
        for key, value in sorted(schema.items())
        if not (key == "default" or (key == "description" and isinstance(value, str)))
    }


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for item in schema for name in _references(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].removeprefix(PREFIX)] if "$ref" in schema else []
    return own + [name for value in schema.values() for name in _references(value)]


async def fetch(api: Api) -> dict[str, Any]:
    """Read the documents of a server that serves all of DOCUMENTS, or the one of the embedded."""
    index = (await api.get("/openapi/v3")).body["paths"]
    served = [index[name]["serverRelativeURL"] for name in DOCUMENTS if name in index]
    return reduce_documents([(await api.get(path)).body for path in served])


async def write(kubeconfig: str) -> None:
    """Write SHIPPED, one schema a line, so that a new Kubernetes version reads well as a diff."""
    async with aiohttp.ClientSession() as session:
        schemas = await fetch(Api(server_from(kubeconfig), session, namespace=""))
    lines = (
        f"{json.dumps(name)}:{json.dumps(schema, separators=(',', ':'))}"
        for name, schema in schemas.items()
    )
    SHIPPED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1]))
