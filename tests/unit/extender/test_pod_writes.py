from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from reserver.errors import ApiError
from reserver.extender.pod_writes import PodWrites
from reserver.scheduling.verdicts import Activate, Effect, Nominate, Recall, Retry
from reserver.stores.edits import Edit
from reserver.stores.writer import StoreEdits
from tests.builders import pod, ref, reservation
from tests.unit.k8s.fakes import (
    NO_ANSWER,
    OVERTAKEN,
    REPLACED,
    Request,
    ScriptedClient,
    always,
    never,
    refused,
)

WEB = pod("web-0", cpu="1")
SEAT = reservation("r", owners=("web-0",), cpu="1")
PATH = "/api/v1/namespaces/shop/pods/web-0"


def shown(node: str = "", uid: str = WEB.uid) -> dict[str, Any]:
    return {
        "metadata": {"name": "web-0", "namespace": "shop", "uid": uid},
        "spec": {"nodeName": node} if node else {},
    }


async def bind(client: ScriptedClient, *claims: str) -> list[str]:
    """Bind the pod to worker-1; return the verbs of the requests."""
    await PodWrites(client, lambda: 0.0).bind(WEB, "worker-1", claims, always)
    return [request.verb for request in client.requests]


async def test_a_binding_carries_uid_and_claims_in_one_write() -> None:
    client = ScriptedClient({})
    await bind(client, SEAT.identity)
    assert client.requests == [
        Request(
            "create",
            f"{PATH}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {
                    "name": "web-0",
                    "namespace": "shop",
                    "uid": "uid-web-0",
                    "annotations": {"reserver.io/claims": f'["{SEAT.identity}"]'},
                },
                "target": {"apiVersion": "v1", "kind": "Node", "name": "worker-1"},
            },
        )
    ]


async def test_a_binding_is_of_the_pod_as_it_was_judged() -> None:
    client = ScriptedClient({})
    judged = replace(WEB, revision=17)
    await PodWrites(client, lambda: 0.0).bind(judged, "worker-1", (), always)
    assert client.requests[0].body["metadata"]["resourceVersion"] == "17"


async def test_a_binding_that_claims_nothing_annotates_nothing() -> None:
    client = ScriptedClient({})
    await bind(client)
    assert "annotations" not in client.requests[0].body["metadata"]


@pytest.mark.parametrize(
    ("script", "verbs"),
    [
        pytest.param([NO_ANSWER, {}], ["create"] * 2, id="no answer: asked again"),
        pytest.param([NO_ANSWER] * 20 + [{}], ["create"] * 21, id="as long as it takes"),
        pytest.param([refused(503), refused(500), {}], ["create"] * 3, id="a failing server"),
        pytest.param([refused(429), {}], ["create"] * 2, id="a busy server"),
        pytest.param([refused(408), {}], ["create"] * 2, id="a server that took too long"),
        pytest.param(
            [NO_ANSWER, refused(409), shown("worker-1")],
            ["create", "create", "get"],
            id="the unanswered one was carried out",
        ),
        pytest.param(
            [NO_ANSWER, refused(403), shown("worker-1")],
            ["create", "create", "get"],
            id="the unanswered one was carried out, and none is allowed any more",
        ),
        pytest.param(
            [*[refused(500)] * 4, shown("worker-1")],
            [*["create"] * 4, "get"],
            id="a server that failed after it was carried out",
        ),
        pytest.param(
            [*[refused(500)] * 4, NO_ANSWER, {}],
            [*["create"] * 4, "get", "create"],
            id="a server that fails at everything for a while",
        ),
        pytest.param(
            [NO_ANSWER, refused(409), NO_ANSWER, refused(409), shown("worker-1")],
            ["create", "create", "get", "create", "get"],
            id="carried out, but the pod cannot be read at once",
        ),
        pytest.param(
            [NO_ANSWER, refused(409), refused(500), refused(409), shown("worker-1")],
            ["create", "create", "get", "create", "get"],
            id="carried out, but reading the pod fails at first",
        ),
    ],
)
async def test_a_binding_is_asked_for_until_it_is_known_to_have_happened(
    script: list[Any], verbs: list[str], pauses: list[float]
) -> None:
    client = ScriptedClient(*script)
    assert await bind(client) == verbs
    assert all(0 < pause < 8 for pause in pauses)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        pytest.param([refused(404)], 404, id="no such pod"),
        pytest.param([refused(403)], 403, id="forbidden"),
        pytest.param([refused(422)], 422, id="invalid"),
        pytest.param([refused(409), shown("worker-2")], 409, id="bound to another node"),
        pytest.param([refused(409), shown()], 409, id="not bound at all"),
        pytest.param([refused(409), shown("worker-1", uid="other")], 409, id="another pod"),
        pytest.param([refused(409), refused(404)], 409, id="gone in the meantime"),
        pytest.param([NO_ANSWER, refused(404)], 404, id="no answer, then gone"),
        pytest.param([*[refused(500)] * 4, shown()], 500, id="a server that keeps failing"),
        pytest.param([*[NO_ANSWER, refused(503)] * 4, shown()], 503, id="on and off"),
    ],
)
async def test_a_binding_that_will_not_happen_is_given_up(
    script: list[Any], status: int, pauses: list[float]
) -> None:
    client = ScriptedClient(*script)
    with pytest.raises(ApiError) as failure:
        await bind(client)
    assert failure.value.status == status
    assert client.script == []
    assert len(pauses) < len(client.requests)


@pytest.mark.parametrize(
    ("script", "verbs", "happened"),
    [
        pytest.param([{}], ["create"], True, id="it is sent once in any case"),
        pytest.param([NO_ANSWER, shown("worker-1")], ["create", "get"], True, id="it happened"),
        pytest.param([NO_ANSWER, shown()], ["create", "get"], False, id="it did not"),
        pytest.param([NO_ANSWER, refused(404)], ["create", "get"], False, id="the pod is gone"),
        pytest.param(
            [NO_ANSWER, NO_ANSWER, refused(503), shown("worker-1")],
            ["create", "get", "get", "get"],
            True,
            id="looked at until that is known",
        ),
    ],
)
@pytest.mark.usefixtures("pauses")
async def test_what_nobody_waits_for_any_more_is_looked_at_and_not_sent_again(
    script: list[Any], verbs: list[str], *, happened: bool
) -> None:
    client = ScriptedClient(*script)
    binding = PodWrites(client, lambda: 0.0).bind(WEB, "worker-1", (), never)
    with nullcontext() if happened else pytest.raises(ApiError):
        await binding
    assert [request.verb for request in client.requests] == verbs


async def test_pauses_between_tries_grow_up_to_some_seconds(pauses: list[float]) -> None:
    await bind(ScriptedClient(*[NO_ANSWER] * 12, {}))
    assert pauses[0] < 0.2
    assert all(pause < 2.5 * before + 5 for before, pause in pairwise(pauses))
    assert 2 < pauses[-1] < 8


async def test_a_pod_is_steered_by_nominating_a_node_for_exactly_that_pod() -> None:
    client = ScriptedClient({})
    await PodWrites(client, lambda: 0.0).carry_out(Nominate(WEB, "worker-1"))
    body = {"status": {"nominatedNodeName": "worker-1"}, "metadata": {"uid": "uid-web-0"}}
    assert client.requests == [
        Request("patch", f"{PATH}/status", body, content_type="application/merge-patch+json")
    ]


async def test_a_pod_is_roused_by_a_nomination_that_is_taken_back() -> None:
    client = ScriptedClient({}, {})
    await PodWrites(client, lambda: 0.0).carry_out(Activate(WEB, "worker-1"))
    assert [request.path for request in client.requests] == [f"{PATH}/status"] * 2
    assert [request.body["status"] for request in client.requests] == [
        {"nominatedNodeName": "worker-1"},
        {"nominatedNodeName": None},
    ]


async def test_a_pod_is_retried_by_an_annotation_that_differs_each_time() -> None:
    client = ScriptedClient({}, {})
    times = iter([1.0, 2.5])
    apply = PodWrites(client, lambda: next(times))
    for _ in range(2):
        await apply.carry_out(Retry(WEB, 3))
    assert [request.path for request in client.requests] == [f"{PATH}/status"] * 2
    assert [request.body["metadata"] for request in client.requests] == [
        {"annotations": {"reserver.io/retry": "1.000"}, "uid": "uid-web-0"},
        {"annotations": {"reserver.io/retry": "2.500"}, "uid": "uid-web-0"},
    ]


@pytest.mark.parametrize("status", [404, 409, 403, 500, 0])
@pytest.mark.parametrize("effect", [Nominate(WEB, "worker-1"), Retry(WEB, 1), Activate(WEB, "w")])
async def test_it_is_told_why_a_pod_cannot_be_sent_back(effect: Effect, status: int) -> None:
    client = ScriptedClient(refused(status))
    with pytest.raises(ApiError) as failure:
        await PodWrites(client, lambda: 0.0).carry_out(effect)
    assert failure.value.status == status
    assert len(client.requests) == 1


EDIT = Edit(ref("web"), "old", "new", "")


@pytest.mark.parametrize(
    ("answer", "done"), [({}, True), (OVERTAKEN, False), (refused(404), False)]
)
async def test_an_edit_is_made_only_if_nobody_was_faster(answer: Any, *, done: bool) -> None:
    client = ScriptedClient(answer)
    assert await StoreEdits(client).edit(EDIT) == done
    assert client.requests == [
        Request(
            "patch",
            "/api/v1/namespaces/shop/configmaps/store",
            EDIT.patch(),
            content_type="application/json-patch+json",
        )
    ]


@pytest.mark.parametrize("status", [0, 403, 409, 413, 422, 500])
async def test_an_edit_that_fails_otherwise_says_so(status: int) -> None:
    with pytest.raises(ApiError):
        await StoreEdits(ScriptedClient(refused(status))).edit(EDIT)


@pytest.mark.parametrize("script", [[{}, {}], [refused(404)], [{}, refused(404)], [REPLACED]])
async def test_a_borrower_is_deleted_with_a_reason_and_two_minutes(script: list[Any]) -> None:
    client = ScriptedClient(*script)
    owner = pod("owner", cpu="1")
    await PodWrites(client, lambda: 0.0).carry_out(Recall(owner, "worker-1", (WEB,)))
    patch, *deletes = client.requests
    assert (patch.verb, patch.path) == ("patch", f"{PATH}/status")
    (condition,) = patch.body["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
    assert patch.body["metadata"]["uid"] == WEB.uid
    for each in deletes:
        assert (each.verb, each.path) == ("delete", PATH)
        assert each.body == {"preconditions": {"uid": WEB.uid}, "gracePeriodSeconds": 120}


async def test_a_borrower_that_is_not_deleted_is_an_error() -> None:
    client = ScriptedClient({}, refused(403))
    with pytest.raises(ApiError):
        await PodWrites(client, lambda: 0.0).recall([WEB])


async def test_no_borrower_is_deleted_by_who_may_not_decide_any_more() -> None:
    """The effect of a Filter call may be carried out long after it: the Lease may be lost."""
    client, allowed = ScriptedClient({}, {}), [True, False]

    async def may_delete() -> bool:
        return allowed.pop(0)

    writes = PodWrites(client, lambda: 0.0, may_delete)
    with pytest.raises(ApiError, match="does not see the cluster"):
        await writes.carry_out(Recall(pod("owner"), "worker-1", (WEB, replace(WEB, uid="other"))))
    assert [request.verb for request in client.requests] == ["patch", "delete"]
    assert not allowed


async def test_one_borrower_that_cannot_be_deleted_keeps_no_other() -> None:
    client = ScriptedClient({}, refused(403), {}, {})
    with pytest.raises(ApiError):
        await PodWrites(client, lambda: 0.0).recall([WEB, replace(WEB, uid="other")])
    assert [each.verb for each in client.requests] == ["patch", "delete", "patch", "delete"]
    client = ScriptedClient(NO_ANSWER)
    with pytest.raises(ApiError):
        await PodWrites(client, lambda: 0.0).recall([WEB, WEB])
    assert len(client.requests) == 1
