"""An invalid object that is edited again and again takes no more memory each time."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from reserver.base.pacer import outcome
from reserver.k8s.objects.objects import ConfigMapObject, CustomResource, decode, encode
from reserver.maintenance.codec import WindowObject
from reserver.maintenance.observe import KnownWindows
from reserver.moves.index import MoveIndex
from reserver.moves.podmove import MoveObject
from reserver.patches.codec import PatchObject
from reserver.patches.controller import SchedPatches
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.object.cache import ObjectCache
from reserver.stores.object.codec import ReservationObject
from tests.builders import NOW, node, state_of
from tests.unit.k8s.fakes import ScriptedClient

Put = Callable[[Any], None]

_EDITS = 50


def _ignore(*_: Any) -> None:
    return


def _patches() -> Put:
    return SchedPatches(ScriptedClient(), "one", lambda: NOW, tuple).put


def _objects() -> Put:
    ledger = state_of(node("worker-1")).ledger
    return ObjectCache(ledger, lambda: NOW, _ignore, home="reserver-system").put


def _configmaps() -> Put:
    cache = ConfigMapCache(state_of(node("worker-1")).ledger, lambda: NOW, _ignore)
    return lambda configmap: outcome(cache.put(configmap))


@pytest.mark.parametrize(
    ("kind", "cache"),
    [
        (MoveObject, lambda: MoveIndex(_ignore).put),
        (WindowObject, lambda: KnownWindows(lambda: None).put),
        (PatchObject, _patches),
        (ReservationObject, _objects),
        (ConfigMapObject, _configmaps),
    ],
)
def test_an_error_keeps_no_former_version(
    kind: type[CustomResource], cache: Callable[[], Put]
) -> None:
    put = cache()

    def edit(first: int) -> int:
        for version in range(first, first + _EDITS):
            labels = {"reserver.io/store": "true"}
            metadata = {"namespace": "shop", "name": "web", "uid": "u", "labels": labels}
            metadata |= {
                "resourceVersion": str(version),
                "creationTimestamp": "2026-01-31T00:00:00Z",
            }
            invalid = {"spec": {"owners": version}, "data": {"key": f"owners: {version}"}}
            put(decode(kind, encode({"metadata": metadata, **invalid})))
        gc.collect()
        return len(gc.get_objects())

    before = edit(1)
    assert edit(1 + _EDITS) - before < _EDITS
