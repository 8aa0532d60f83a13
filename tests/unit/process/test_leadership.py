"""The label by which Services find the leader's pod, and a standby that could not lead."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

import pytest

from reserver.errors import ApiError
from reserver.k8s.client import ApiClient
from reserver.k8s.watch.reflector import Reflector
from reserver.process import leadership, readiness
from reserver.process.leadership import LeaderLabel
from reserver.process.readiness import Standby

SERVING = "reserver.io/serving"
HOME = "/api/v1/namespaces/reserver-system/pods"


class Pods:
    """The pods of a namespace, and whether each has the label; each refusal happens once."""

    def __init__(self, **serving: bool) -> None:
        self.serving = serving
        self.costs: dict[str, str | None] = {}
        self.refused: list[str] = []

    async def get(self, path: str, params: Mapping[str, str]) -> bytes:
        assert (path, params["labelSelector"].partition(",")[0]) == (HOME, f"{SERVING}=true")
        items = [{"metadata": {"name": name}} for name, has in self.serving.items() if has]
        return json.dumps({"items": items}).encode()

    async def patch(self, path: str, body: dict[str, Any]) -> bytes:
        name, _, subresource = path.removeprefix(f"{HOME}/").partition("/")
        assert subresource == "status"
        if name in self.refused:
            self.refused.remove(name)
            raise ApiError(503, "ServiceUnavailable", "try later")
        if name not in self.serving:
            raise ApiError(404, "NotFound", f"no pod {name}")
        (label,) = body["metadata"]["labels"].values()
        (self.costs[name],) = body["metadata"]["annotations"].values()
        self.serving[name] = label == "true"
        return b"{}"


def label(pods: Pods) -> LeaderLabel:
    return LeaderLabel(cast("ApiClient", pods), "reserver-system", "a")


async def turns(work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a loop for some turns, then cancel it."""
    task = asyncio.create_task(work())
    for _ in range(50):
        await asyncio.sleep(0)
    task.cancel()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leadership, "_RETRY_S", 0)
    monkeypatch.setattr(readiness, "_RETRY_S", 0)


async def test_the_label_is_on_the_leaders_pod_and_on_no_other() -> None:
    pods = Pods(a=False, b=True, c=False)
    await turns(label(pods).keep)
    assert pods.serving == {"a": True, "b": False, "c": False}
    assert pods.costs == {"a": "1", "b": None}, "a ReplicaSet deletes the leader last"


async def test_what_cannot_be_labelled_is_retried() -> None:
    pods = Pods(a=False, b=True)
    pods.refused = ["a", "b", "a"]
    await turns(label(pods).keep)
    assert pods.serving == {"a": True, "b": False}


async def test_a_container_that_led_before_its_restart_takes_the_label_off() -> None:
    pods = Pods(a=True, b=False)
    pods.refused = ["a"]
    await label(pods).clear()
    assert pods.serving == {"a": False, "b": False}


class Collection:
    """A collection that a leader lists."""

    path, selector = "/apis/reserver.io/v1alpha1/reservations", {"labelSelector": "x"}

    def __init__(self, *, is_optional: bool = False) -> None:
        self.is_optional = is_optional

    def __str__(self) -> str:
        return "reservations"

    async def require_kept(self, revision: int) -> None:
        assert revision > 1 << 60


@pytest.mark.parametrize(
    ("failure", "is_optional", "is_able"),
    [
        (None, False, True),
        (ApiError(403, "Forbidden", "no right"), False, False),
        (ApiError(404, "NotFound", "no CRD"), False, False),
        (ApiError(404, "NotFound", "no CRD"), True, True),
    ],
)
async def test_a_standby_is_able_once_it_could_list_what_a_leader_lists(
    failure: ApiError | None, *, is_optional: bool, is_able: bool
) -> None:
    class Client:
        async def get(self, path: str, params: Mapping[str, str]) -> bytes:
            assert (path, params) == (Collection.path, {**Collection.selector, "limit": "1"})
            if failure is not None:
                raise failure
            return b"{}"

    waiting = Standby()
    assert waiting.obstacles, "it has not tried yet"
    collection = cast("Reflector", Collection(is_optional=is_optional))
    await turns(lambda: waiting.run(cast("ApiClient", Client()), (collection,)))
    assert (not waiting.obstacles) is is_able
    assert is_able or "reservations cannot be listed" in waiting.obstacles[0]
