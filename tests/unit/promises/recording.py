"""A history that was recorded on a real control plane, to be changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hack.promises.check import Kind, judge
from hack.promises.history import history_of
from tests.unit.promises.tape import Tape

FOLDER = Path(__file__).parent / "recorded"
SPEC_STORE = "reserver-system/e2e"
SCHEDULERS = frozenset({"reserver-scheduler"})


class Recording:
    """The recorded lines, which a test changes."""

    def __init__(self) -> None:
        self.records = _lines(FOLDER / "history.jsonl")
        self.manager = _lines(FOLDER / "manager.jsonl")

    def kinds(self) -> set[Kind]:
        history = history_of(self.records, self.manager)
        return {violation.kind for violation in judge(history, Tape.rules()).violations}

    def pod(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield each written version of a pod."""
        for record in self.records:
            if record["collection"] == "pods" and record["object"]["metadata"]["name"] == name:
                yield record["object"]

    def store(self, configmap: str) -> Iterator[dict[str, str]]:
        """Yield the data of a ConfigMap, version by version."""
        for record in self.records:
            if record["collection"] == "configmaps":
                item = record["object"]
                if f"{item['metadata']['namespace']}/{item['metadata']['name']}" == configmap:
                    yield item.setdefault("data", {})

    def rewrite(self, before: str, after: str) -> None:
        """Replace a text in an entry from the beginning."""
        for store in (SPEC_STORE, "unicore/reservation"):
            for data in self.store(store):
                for key in data:
                    data[key] = data[key].replace(before, after)
        for line in self.manager:
            line["value"] = line.get("value", "").replace(before, after)

    def keep(self, key: str) -> None:
        """Keep an entry in the store after its creation."""
        value = ""
        for data in self.store(SPEC_STORE):
            value = data.get(key, value)
            if value:
                data[key] = value

    def go_on(self, seconds: float) -> None:
        """Extend the recording by seconds."""
        self.records[-1]["at"] += seconds


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
