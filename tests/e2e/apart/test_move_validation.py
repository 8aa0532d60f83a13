"""PodMoves that the API server refuses, at their creation or a change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from tests.e2e.apart.moving import Moving
from tests.e2e.cluster import Corner

pytestmark = pytest.mark.controlplane


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no pod": ({"pod": {"name": ""}}, "spec.pod.name"),
    "a move that follows itself": ({"pod": {"name": "web-0", "after": "bad"}}, "spec.pod.after"),
    "a pod that has yet to come, by its UID": (
        {"pod": {"name": "web-0", "after": "first", "uid": "u"}},
        "spec.pod",
    ),
    "a node and labels": ({"to": {"node": "a", "nodeSelector": {"b": "c"}}}, "spec.to"),
    "an endless move": ({"timeout": "25h"}, "spec.timeout"),
    "no time": ({"timeout": "0s"}, "spec.timeout"),
    "a group without seats": (
        {"mode": "EvictOnly", "group": {"name": "drain", "size": 2}},
        "spec.group",
    ),
    "a group of nobody": ({"group": {"name": "drain", "size": 0}}, "spec.group.size"),
    "an unknown mode": ({"mode": "Now"}, "spec.mode"),
    "a grace period of a week": (
        {"deleteOptions": {"gracePeriodSeconds": 604_800}},
        "spec.deleteOptions.gracePeriodSeconds",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_refused_at_once_is_refused_with_the_name_of_the_field(
    corner: Corner, case: str
) -> None:
    spec, field = REFUSED[case]
    with pytest.raises(ApiException) as refusal:
        Moving(corner).move("bad", **({"pod": {"name": "web-0"}} | spec))
    causes = json.loads(refusal.value.body or "")["details"]["causes"]
    assert (refusal.value.status, field in [cause["field"] for cause in causes]) == (422, True)


def test_of_a_move_only_whether_it_is_paused_and_kept_may_change(corner: Corner) -> None:
    moving = Moving(corner)
    moving.move("web", "web-0", to={"node": "a"}, timeout="1h30m")
    moving.change("web", paused=True, ttlSecondsAfterFinished=60)
    for change in ({"pod": {"name": "web-1"}}, {"to": None}, {"timeout": "2h"}):
        with pytest.raises(ApiException, match="cannot be changed"):
            moving.change("web", **change)
