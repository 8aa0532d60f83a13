"""Manifests of reservations, for tests of commands that read files."""

from __future__ import annotations

import json

import yaml

from tests.integration.cli.runs import Run

OWNERS = [{"pod": {"name": "web-0", "namespace": "shop"}}]


def manifest(name: str, **spec: object) -> str:
    whole = {"owners": OWNERS, "node": "worker-1", "resources": {"cpu": "1"}, **spec}
    return yaml.safe_dump({"name": name, "spec": whole})


async def spec_of(run: Run, name: str) -> dict[str, object]:
    told: dict[str, object] = json.loads((await run("get", name, "-o", "json")).stdout)["spec"]
    return told
