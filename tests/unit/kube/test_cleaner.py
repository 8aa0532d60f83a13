import asyncio
import json
from typing import Any

import pytest

from reserver.errors import ApiError
from reserver.kube.api.apply import Apply
from reserver.kube.loops.cleaner import Cleaner
from reserver.kube.stores.configmap.cache import ConfigMapCache
from reserver.pacer import outcome
from reserver.reservations.reservation import Ref
from reserver.wire.k8s.objects import ConfigMapObject, Metadata
from reserver.wire.spec.edits import Deletion, Edit
from tests.builders import NOW, node, ref, state_of
from tests.unit.kube.fakes import NO_ANSWER, OVERTAKEN, ScriptedClient, refused

OVER = {
    "owners": [{"pod": {"name": "a"}}],
    "resources": {"cpu": "1"},
    "node": "worker-1",
    "expiresAt": "2030-01-01T00:00:00Z",
}


class Tidying:
    """A store, and the cleaner that tidies it."""

    def __init__(self, client: ScriptedClient, **data: object) -> None:
        self.refused: list[tuple[Ref, ApiError]] = []
        self.cleaner = Cleaner(
            Apply(client, lambda: NOW),
            lambda: NOW,
            refused=lambda ref, error: self.refused.append((ref, error)),
        )
        state = state_of(node("worker-1", cpu="4"), now=0.0)
        self.store = ConfigMapCache(
            state.ledger, lambda: 0.0, lambda *_: None, self.cleaner.touched
        )
        self.put("store", **data)

    def put(self, configmap: str = "store", **data: object) -> None:
        metadata = Metadata(name=configmap, namespace="shop")
        written = {key: json.dumps(value) for key, value in data.items()}
        outcome(self.store.put(ConfigMapObject(metadata=metadata, data=written)))

    async def tidy(self) -> tuple[bool, int, int]:
        done = await self.cleaner.tidy(self.store)
        return done, self.cleaner.edits, self.cleaner.lost


def patched(client: ScriptedClient) -> list[str]:
    """Return the keys that were changed, one word for each request."""
    return [
        "+".join(op["path"].removeprefix("/data/") for op in request.body if op["op"] != "test")
        for request in client.requests
    ]


async def test_every_edit_that_is_due_is_made() -> None:
    client = ScriptedClient({})
    tidying = Tidying(client, a=OVER, b=OVER, c=OVER | {"expiresAt": "2040-01-01T00:00:00Z"})
    assert await tidying.tidy() == (True, 2, 0)
    assert patched(client) == ["a+b"]  # In one request: a burst of owners may land at once.


async def test_what_nothing_has_touched_is_not_looked_at_again() -> None:
    client = ScriptedClient({})
    tidying = Tidying(client, a=OVER)
    await tidying.tidy()
    assert await tidying.tidy() == (True, 1, 0)
    tidying.cleaner.touched(ref("gone"))
    assert await tidying.tidy() == (True, 1, 0)


async def test_an_edit_that_somebody_forestalled_is_made_anew_when_the_watch_shows_theirs() -> None:
    client = ScriptedClient(OVERTAKEN, OVERTAKEN, {}, {})
    tidying = Tidying(client, a=OVER, b=OVER)
    assert await tidying.tidy() == (True, 1, 1)
    tidying.put("store", a=OVER | {"resources": {"cpu": "2"}}, b=OVER)
    assert await tidying.tidy() == (True, 2, 1)
    assert patched(client) == ["a+b", "a", "b", "a"]


async def test_a_key_that_is_written_while_it_is_edited_is_looked_at_again() -> None:
    class Racing(Apply):
        async def edit(self, edit: Edit | Deletion) -> bool:
            if first:
                first.pop()
                tidying.put("store", a=OVER | {"resources": {"cpu": "2"}})
                return False
            return await super().edit(edit)

    first = [True]
    client = ScriptedClient({})
    tidying = Tidying(client, a=OVER)
    tidying.cleaner = Cleaner(Racing(client, lambda: NOW), lambda: NOW)
    tidying.store = ConfigMapCache(
        state_of(now=0.0).ledger, lambda: 0.0, lambda *_: None, tidying.cleaner.touched
    )
    tidying.put("store", a=OVER)
    assert await tidying.tidy() == (True, 1, 1)


@pytest.mark.parametrize(
    ("error", "tried"),
    [(NO_ANSWER, ["a+b"]), (refused(500), ["a+b"]), (refused(429), ["a+b"])],
)
async def test_what_fails_is_tried_again_later_and_keeps_no_other_store_waiting(
    error: Any, tried: list[str]
) -> None:
    client = ScriptedClient(error, {}, {})
    tidying = Tidying(client, a=OVER, b=OVER)
    tidying.put("other", c=OVER)
    assert not (await tidying.tidy())[0]
    assert patched(client) == tried
    assert await tidying.tidy() == (True, 3, 0)


IMMUTABLE = ApiError(
    422,
    "Invalid",
    'ConfigMap "store" is invalid: data: Forbidden: field is immutable when `immutable` is set',
)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(IMMUTABLE, id="an immutable ConfigMap"),
        pytest.param(
            ApiError(422, "Invalid", 'configmaps "store" is forbidden: denied by a policy'),
            id="an admission policy",
        ),
        pytest.param(refused(403), id="no right"),
        pytest.param(refused(413), id="too large"),
        pytest.param(refused(400), id="a webhook that answers nonsense"),
    ],
)
async def test_what_is_refused_rests_ever_longer_is_told_and_keeps_nobody_waiting(
    error: ApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[Any] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_later", lambda *timer: timers.append(timer))
    client = ScriptedClient(error, {}, *[error] * 9, {})
    tidying = Tidying(client, a=OVER, b=OVER)
    tidying.put("other", c=OVER)
    assert await tidying.tidy() == (True, 1, 0)
    assert patched(client) == ["a+b", "c"]
    assert tidying.refused == [(ref("a"), error), (ref("b"), error)]
    tidying.cleaner.touched(ref("a"))  # As telling of it does.
    assert await tidying.tidy() == (True, 1, 0)
    assert len(client.requests) == 2
    rests = []
    for _ in range(9):
        due, timers = timers, []
        rests.append({seconds for seconds, *_ in due})
        for _, wake, refusal in due:
            wake(refusal)
        await tidying.tidy()
    assert rests == [{5.0}, {10.0}, {20.0}, {40.0}, {80.0}, {160.0}, {300.0}, {300.0}, {300.0}]
    # What is written anew is tried at once.
    tidying.put("store", a=OVER | {"resources": {"cpu": "2"}})
    assert await tidying.tidy() == (True, 2, 0)


def test_an_item_of_a_list_stands_for_its_key() -> None:
    tidying = Tidying(ScriptedClient())
    for item in ("shop/a", "shop/b"):
        tidying.cleaner.touched(Ref("shop", "store", "worker-1", item))
    assert list(tidying.cleaner._touched) == [ref("worker-1")]
