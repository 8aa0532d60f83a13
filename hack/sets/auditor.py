"""An auditor that shares no code with Reserver's decisions, and sums up the holds in the stores."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from reserver.k8s import credentials
from reserver.k8s.client import ApiClient

SYSTEM = "reserver-system"
PREFIX = "race"
"""The prefix of the names of sets."""

_CONFIGMAPS = f"/api/v1/namespaces/{SYSTEM}/configmaps"
_OBJECTS = f"/apis/reserver.io/v1alpha1/namespaces/{SYSTEM}/reservations"


class Auditor:
    """Sums up the holds after each write, by set and by node.

    In a ConfigMap a set is one write, and never incomplete before its release part by part. As
    objects a set may be incomplete while it is written: a set that was never whole leaves no part
    in the end.

    Attributes:
        writes: the number of states.
        wrong: violations.
    """

    def __init__(self, parts: int, cpu: int) -> None:
        """Expect sets of so many parts, and nodes of so many CPUs."""
        self.writes = 0
        self.wrong: list[str] = []
        self._parts = parts
        self._cpu = cpu
        self._held: Counter[str] = Counter()
        self._present: Counter[str] = Counter()
        self._keys: dict[str, dict[str, str]] = {}
        self._whole: set[str] = set()

    def see_keys(self, configmap: str, data: Mapping[str, str]) -> None:
        """Read the new content of a ConfigMap."""
        self.writes += 1
        touched = self._exchange(configmap, dict(data))
        for name in touched:
            if 0 < self._present[name] < self._parts and name not in self._whole:
                self.wrong.append(f"half a set: {name} has {self._present[name]}")

    def see_object(self, kind: str, item: Mapping[str, Any]) -> None:
        """Read a watch event of an object."""
        self.writes += 1
        name = item["metadata"]["name"]
        self._exchange(name, {} if kind == "DELETED" else {name: json.dumps(item["spec"])})

    def end(self) -> None:
        """Note that all calls have been answered."""
        for name, count in self._present.items():
            if 0 < count < self._parts and name not in self._whole:
                self.wrong.append(f"half a set is left: {name} has {count}")

    def _exchange(self, place: str, new: dict[str, str]) -> set[str]:
        """Replace the parts of a place; return the sets that have gained or lost a part."""
        new = {key: text for key, text in new.items() if _is_of_race(key)}
        old = self._keys.get(place, {})
        self._keys[place] = new
        gone = {key: text for key, text in old.items() if new.get(key) != text}
        come = {key: text for key, text in new.items() if old.get(key) != text}
        for sign, changed in ((-1, gone), (1, come)):
            for key, text in changed.items():
                spec = json.loads(text)
                self._held[spec["node"]] += sign * int(spec["resources"]["cpu"])
                self._present[key.rpartition("-")[0]] += sign
        touched = {key.rpartition("-")[0] for key in gone | come}
        self._whole |= {name for name in touched if self._present[name] == self._parts}
        for node in {json.loads(text)["node"] for text in come.values()}:
            if self._held[node] > self._cpu:
                self.wrong.append(f"too much is held: {self._held[node]} CPUs of {node}")
        return touched

    async def follow(self, kubeconfig: Path, begun: asyncio.Event) -> None:
        """See every state of both stores, until cancelled; `begun` is set when that has begun."""
        async with (
            ApiClient(await credentials.load(kubeconfig)) as client,
            asyncio.TaskGroup() as tasks,
        ):
            objects = await self._version(client, _OBJECTS)
            configmaps = await self._version(client, _CONFIGMAPS)
            begun.set()
            tasks.create_task(self._follow_objects(client, objects))
            tasks.create_task(self._follow_configmaps(client, configmaps))

    async def has_seen_all(self, kubeconfig: Path) -> bool:
        """Return whether the watches have shown the current state."""
        async with ApiClient(await credentials.load(kubeconfig)) as client:
            objects = json.loads(await client.get(_OBJECTS))["items"]
            configmaps = json.loads(await client.get(_CONFIGMAPS))["items"]
        data = (configmap.get("data") or {} for configmap in configmaps)
        keys = [key for each in data for key in each] + [o["metadata"]["name"] for o in objects]
        seen = [key for each in self._keys.values() for key in each]
        return sorted(filter(_is_of_race, keys)) == sorted(seen)

    @staticmethod
    async def _version(client: ApiClient, path: str) -> dict[str, str]:
        listed = json.loads(await client.get(path))
        return {"resourceVersion": listed["metadata"]["resourceVersion"]}

    async def _follow_objects(self, client: ApiClient, since: dict[str, str]) -> None:
        async for kind, found in _changes(client, _OBJECTS, since):
            self.see_object(kind, found)

    async def _follow_configmaps(self, client: ApiClient, since: dict[str, str]) -> None:
        stores = since | {"labelSelector": "reserver.io/store=true,!reserver.io/status-of"}
        async for _, found in _changes(client, _CONFIGMAPS, stores):
            self.see_keys(found["metadata"]["name"], found.get("data") or {})


async def _changes(
    client: ApiClient, path: str, params: dict[str, str]
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield kind and object of each change; the API server ends the watch of a slow client.

    Raises:
        RuntimeError: changes were missed.
    """
    while True:
        async for line in client.watch(path, params, 3600):
            if line:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise RuntimeError(f"changes were missed: {event['object']}")
                params["resourceVersion"] = event["object"]["metadata"]["resourceVersion"]
                yield event["type"], event["object"]


def _is_of_race(name: str) -> bool:
    return name.startswith(PREFIX)
