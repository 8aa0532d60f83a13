"""Reservations in store ConfigMaps of the largest size, and their acknowledgement."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from hack.bed.api import Api, ApiFault, at_once
from hack.bench.starting.fill import node_name

_HOME = "/api/v1/namespaces/reserver-system/configmaps"
_ENTRIES = 5_000
"""Entries of one ConfigMap: about 0.8 MB, below the API server's bound of 1 MiB."""

_CONNECTIONS = 4
_ACKNOWLEDGED_S = 300.0
_LOOK_S = 0.5
"""Seconds between two checks: reading a megabyte takes kube-apiserver milliseconds."""


def create_reservations(api: Api, count: int, nodes: int) -> Sequence[tuple[str, int]]:
    """Write reservations of 50m CPU, spread evenly; return the stores, each with its entries."""
    stores = {
        f"bulk-{first // _ENTRIES:03}": range(first, min(first + _ENTRIES, count))
        for first in range(0, count, _ENTRIES)
    }
    at_once(lambda name: _create(api, name, stores[name], nodes), stores, _CONNECTIONS)
    return [(name, len(entries)) for name, entries in stores.items()]


def wait_acknowledged(api: Api, stores: Sequence[tuple[str, int]]) -> None:
    """Return once all entries of all stores have a status.

    Raises:
        TimeoutError: five minutes have passed.
    """
    deadline = time.monotonic() + _ACKNOWLEDGED_S
    for name, entries in stores:
        while (found := _statuses(api, name)) < entries:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{found} of {entries} entries of {name} are acknowledged")
            time.sleep(_LOOK_S)


def _create(api: Api, name: str, entries: range, nodes: int) -> None:
    data = {
        f"r-{number:06}": json.dumps(
            {
                "owners": [{"pod": {"name": f"batch-{number:06}"}}],
                "node": node_name(number % nodes),
                "resources": {"cpu": "50m"},
            }
        )
        for number in entries
    }
    metadata = {"name": name, "labels": {"reserver.io/store": "true"}}
    api.create(_HOME, {"metadata": metadata, "data": data})


def _statuses(api: Api, name: str) -> int:
    try:
        return len(api.get(f"{_HOME}/{name}-status").get("data") or {})
    except ApiFault as fault:
        if fault.is_definite:
            return 0  # Nothing is acknowledged yet.
        raise
