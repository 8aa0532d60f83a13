"""The managers' watches of the storm's pods, directly from the API server."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from typing import Any, Protocol

from hack.bed.api import Api, ApiFault
from hack.chaos.book import SeenPod
from hack.chaos.pods import CLAIMS, FORGED

_PAUSE = 0.2  # seconds, after the API server went away


class Account(Protocol):
    """An account of pods."""

    def pods(self) -> list[SeenPod]:
        """Return all pods that exist."""

    def pod_seen(self, pod: SeenPod) -> None:
        """Update a pod that exists."""

    def pod_gone(self, name: str) -> None:
        """Remove a pod that no longer exists."""

    def pod_missed(self, name: str) -> None:
        """Remove a pod that was deleted during a gap of the watch."""


class Eye:
    """Keeps an account up to date with the pods of a namespace."""

    def __init__(self, api: Api, namespace: str, account: Account) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._account = account
        self._version = ""
        self.looked = threading.Event()  # all pods have been listed once

    def follow(self, stop: threading.Event) -> None:
        """List, then watch, until stopped; an idle watch ends with the next event."""
        while not stop.is_set():
            try:
                if not self._version:
                    self._list()
                for event in self._api.watch(self._path, self._version):
                    self._take(event["type"], event["object"])
                    if stop.is_set():
                        return
            except ApiFault as fault:
                if fault.status == HTTPStatus.GONE:
                    self._version = ""
                stop.wait(_PAUSE)

    def _list(self) -> None:
        answer = self._api.get(self._path)
        listed = {item["metadata"]["name"] for item in answer["items"]}
        for pod in self._account.pods():
            if pod.name not in listed:
                self._account.pod_missed(pod.name)
        for item in answer["items"]:
            self._take("ADDED", item)
        self._version = answer["metadata"]["resourceVersion"]
        self.looked.set()

    def _take(self, kind: str, pod: dict[str, Any]) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        self._version = metadata["resourceVersion"]
        if kind == "DELETED":
            self._account.pod_gone(metadata["name"])
            return
        cpu = spec["containers"][0]["resources"]["requests"]["cpu"]
        millicores = int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
        node = spec.get("nodeName", "")
        self._account.pod_seen(
            SeenPod(
                name=metadata["name"],
                uid=metadata["uid"],
                node=node,
                cpu=millicores,
                claims=_claims(metadata.get("annotations") or {}),
            )
        )


def _claims(annotations: dict[str, str]) -> frozenset[str]:
    """Return the refs in a pod's claims annotation, without UIDs and slots.

    Claims that the storm has forged do not count.
    """
    identities = [] if FORGED in annotations else json.loads(annotations.get(CLAIMS, "[]"))
    return frozenset(each.rpartition("@")[0].partition("#")[0] for each in identities)
