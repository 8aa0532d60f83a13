"""Moves whose replacement gets its node from a SchedPatch."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reserver.cli import move
from reserver.cli.failure import Failed
from reserver.cli.output import Output
from reserver.cluster.pod import PodName
from reserver.errors import ApiError
from reserver.moves.manifests import SharedFields
from reserver.patches.model import PREFERRED
from tests.unit.cli.moves.api import PATCHES, Api, specs

# By a SchedPatch


def by_patch(api: Api, to: str = "worker-2", **how: Any) -> None:
    labels = {"app": "web", "pod-template-hash": "5d8f7c9b9d"}
    spec: dict[str, Any] = {"nodeName": "worker-1", "containers": [{"name": "main"}]}
    spec |= {"affinity": {"nodeAffinity": {}}, "ephemeralContainers": []}
    found = {"metadata": {"uid": "u", "labels": labels}, "spec": spec, "status": {}}
    api.others["/api/v1/namespaces/shop/pods/web-0"] = found
    leaving, terms = PodName("shop", "web-0"), SharedFields(timeout="5m")
    given = {"wait": True} | how
    asyncio.run(move.moved_by_patch(api, leaving, to, terms, Output.TABLE, **given))


@pytest.mark.parametrize(
    ("to", "operator", "node"), [("worker-2", "In", "worker-2"), ("", "NotIn", "worker-1")]
)
def test_a_move_by_patch_goes_on_once_the_patch_is_active_and_the_patch_ends_with_it(
    to: str, operator: str, node: str
) -> None:
    api = Api()
    by_patch(api, to)
    (spec,) = specs(api)
    assert (spec["mode"], spec["paused"], spec["pod"]["uid"]) == ("EvictOnly", False, "u")
    patch = api.patch_read
    assert (patch.max_count, patch.expires_at) == (1, 1_767_225_600 + 300)
    assert patch.matches({"app": "web", "pod-template-hash": "5d8f7c9b9d"}, 0)
    assert not patch.matches({"app": "web", "pod-template-hash": "other"}, 0)
    (term,) = patch.injected.affinity["nodeAffinity"][PREFERRED]
    (field,) = term["preference"]["matchFields"]
    assert (field["operator"], field["values"]) == (operator, [node])
    assert api.gone == [f"{PATCHES}/web-0-0"]


def test_without_waiting_the_patch_stays_and_belongs_to_the_move() -> None:
    api = Api()
    by_patch(api, wait=False)
    (owner,) = api.others[f"{PATCHES}/web-0-0"]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("PodMove", "web-0-0", "uid-0")
    assert api.gone == []


def test_nothing_is_evicted_while_nobody_patches_pods() -> None:
    api = Api()
    api.active = "False"
    with pytest.raises(Failed, match="web-0-0 patches no pods; Said: so"):
        by_patch(api, patience_s=0.01)
    assert specs(api) == []


def test_nothing_is_evicted_in_a_namespace_whose_pods_are_not_patched() -> None:
    api = Api()
    api.patches = False
    with pytest.raises(
        Failed, match=r"namespace shop; nothing was evicted.*reserver.io/webhooks=false"
    ):
        by_patch(api)
    assert specs(api) == []


def test_where_no_pod_may_be_tried_the_move_goes_on_and_its_end_is_judged() -> None:
    api = Api()
    api.patches = ApiError(403, "Forbidden", "exceeded quota")
    by_patch(api)
    assert [spec["paused"] for spec in specs(api)] == [False]


@pytest.mark.parametrize("to", ["worker-2", ""])
def test_a_replacement_that_its_scheduler_puts_elsewhere_is_told(to: str) -> None:
    api = Api(landed="worker-3" if to else "worker-1")
    with pytest.raises(Failed, match="its scheduler chose that"):
        by_patch(api, to)
