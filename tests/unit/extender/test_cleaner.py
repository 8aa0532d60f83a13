import asyncio
import json
from dataclasses import replace
from functools import partial

import pytest

from reserver.base.pacer import Pacer, outcome
from reserver.errors import ApiError
from reserver.extender import cleaner as cleaner_module
from reserver.extender.cleaner import REFUSED, Cleaner, written_together
from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.k8s.work_queue import WorkQueue
from reserver.reservations.reservation import Ref
from reserver.stores import edits
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.writer import StoreEdits
from tests.builders import NOW, node, ref, state_of
from tests.unit.k8s.clocks import ManualTime, worked_off
from tests.unit.k8s.fakes import NO_ANSWER, OVERTAKEN, ScriptedClient, always, refused

OVER = {
    "owners": [{"pod": {"name": "a"}}],
    "resources": {"cpu": "1"},
    "node": "worker-1",
    "expiresAt": "2030-01-01T00:00:00Z",
}


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of turns, so that a script is read in its order."""
    monkeypatch.setattr(cleaner_module, "Pacer", partial(Pacer, timer=lambda: 0.0))


class Tidying:
    """A store, and the cleaner that tidies it."""

    def __init__(self, client: ScriptedClient, **data: object) -> None:
        self.refused: list[tuple[Ref, ApiError]] = []
        self.endings: list[str] = []
        self.time = ManualTime()
        self.cleaner = self.clean(StoreEdits(client))
        self.state = state_of(node("worker-1", cpu="4"), now=0.0)
        self.store = ConfigMapCache(
            self.state.ledger, lambda: 0.0, lambda *_: None, self.cleaner.on_reservation_changed
        )
        self.put("store", **data)

    def put(self, configmap: str = "store", **data: object) -> None:
        metadata = Metadata(name=configmap, namespace="shop")
        written = {key: json.dumps(value) for key, value in data.items()}
        outcome(self.store.put(ConfigMapObject(metadata=metadata, data=written)))

    def clean(self, edits: StoreEdits) -> Cleaner:
        return Cleaner(
            edits,
            lambda: NOW,
            lambda edit: self.endings.extend(f"{e.reservation.ref}: {e}" for e in edit.endings),
            refused=lambda ref, error: self.refused.append((ref, error)),
            queue=WorkQueue(
                "cleaner",
                replace(REFUSED, chance=lambda: 1.0),
                group=written_together,
                time=self.time,
            ),
        )

    async def tidy(self, seconds: float = 0.0) -> tuple[int, int]:
        """Advance the clock and run to the end; return the numbers of made and of lost edits."""
        self.time.now += seconds
        await worked_off(self.cleaner.run(self.store, always), self.cleaner.queue)
        return self.cleaner.edits, self.cleaner.lost


def patched(client: ScriptedClient) -> list[str]:
    """Return the changed keys, one word per request."""
    return [
        "+".join(op["path"].removeprefix("/data/") for op in request.body if op["op"] != "test")
        for request in client.requests
    ]


async def test_every_edit_that_is_due_is_made() -> None:
    client = ScriptedClient({})
    tidying = Tidying(client, a=OVER, b=OVER, c=OVER | {"expiresAt": "2040-01-01T00:00:00Z"})
    assert await tidying.tidy() == (2, 0)
    assert patched(client) == ["a+b"]  # In one request: a burst of owners may land at once.


async def test_one_request_makes_hundreds_of_edits_that_are_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = ScriptedClient(*[{}] * 3)
    tidying = Tidying(client, **{f"r-{number}": OVER for number in range(1_200)})
    assert await tidying.tidy() == (1_200, 0)
    assert [len(keys.split("+")) for keys in patched(client)] == [500, 500, 200]
    monkeypatch.setattr(cleaner_module, "_MOST_CHARACTERS", 3 * len(json.dumps(OVER)))
    few = ScriptedClient(*[{}] * 4)
    tidying = Tidying(few, **{f"r-{number}": OVER for number in range(10)})
    assert await tidying.tidy() == (10, 0)
    assert [len(keys.split("+")) for keys in patched(few)] == [3, 3, 3, 1]


async def test_of_many_edits_those_that_somebody_forestalled_are_found_in_few_requests() -> None:
    halves = 7  # 64, 32, 16, 8, 4, 2 and 1: the first key of all.
    client = ScriptedClient(*[OVERTAKEN] * halves, *[{}] * 6)
    tidying = Tidying(client, **{f"r-{number:02}": OVER for number in range(64)})
    assert await tidying.tidy() == (63, 1)
    assert len(client.requests) == 13


async def test_what_is_removed_is_told_with_what_became_of_it() -> None:
    item = {"namespace": "shop", "cpu": 1, "mem": 1}
    early = [item | {"pod": pod, "expire": 1893456000} for pod in ("a", "b")]
    tidying = Tidying(ScriptedClient({}), web=OVER)
    tidying.put("lists", list=[*early, item | {"pod": "c", "expire": 2208988800}])
    tidying.cleaner = tidying.clean(StoreEdits(ScriptedClient({}, OVERTAKEN)))
    for over in (ref("web"), Ref("shop", "lists", "list")):
        tidying.cleaner.on_reservation_changed(over)
    assert await tidying.tidy() == (1, 1)
    assert tidying.endings == [
        "shop/store/web: expired unclaimed"
    ]  # The writer of the list reports the end.
    tidying.cleaner = tidying.clean(StoreEdits(ScriptedClient({})))
    tidying.cleaner.on_reservation_changed(Ref("shop", "lists", "list"))
    await tidying.tidy()
    reported = [f"shop/lists/list[shop/{pod}]: expired unclaimed" for pod in ("a", "b")]
    assert tidying.endings[1:] == reported


async def test_what_nothing_has_touched_is_not_looked_at_again() -> None:
    client = ScriptedClient({})
    tidying = Tidying(client, a=OVER)
    await tidying.tidy()
    assert await tidying.tidy() == (1, 0)
    tidying.cleaner.on_reservation_changed(ref("gone"))
    assert await tidying.tidy() == (1, 0)


async def test_an_edit_that_somebody_forestalled_is_made_anew_when_the_watch_shows_theirs() -> None:
    client = ScriptedClient(OVERTAKEN, OVERTAKEN, {}, {})
    tidying = Tidying(client, a=OVER, b=OVER)
    assert await tidying.tidy() == (1, 1)
    tidying.put("store", a=OVER | {"resources": {"cpu": "2"}}, b=OVER)
    assert await tidying.tidy() == (2, 1)
    assert patched(client) == ["a+b", "a", "b", "a"]


async def test_a_key_that_is_written_while_it_is_edited_is_looked_at_again() -> None:
    class Racing(StoreEdits):
        async def edit(self, edit: edits.Tidying) -> bool:
            if first:
                first.pop()
                tidying.put("store", a=OVER | {"resources": {"cpu": "2"}})
                return False
            return await super().edit(edit)

    first = [True]
    client = ScriptedClient({})
    tidying = Tidying(client, a=OVER)
    tidying.cleaner = tidying.clean(Racing(client))
    tidying.store = ConfigMapCache(
        state_of(now=0.0).ledger,
        lambda: 0.0,
        lambda *_: None,
        tidying.cleaner.on_reservation_changed,
    )
    tidying.put("store", a=OVER)
    assert await tidying.tidy() == (1, 1)


@pytest.mark.parametrize("error", [NO_ANSWER, refused(429), refused(503)], ids=str)
async def test_while_the_api_server_is_away_one_request_finds_out_for_all(error: ApiError) -> None:
    client = ScriptedClient(*[error] * 6, *[{}] * 10)
    tidying = Tidying(client)
    for number in range(10):
        tidying.put(f"store-{number}", a=OVER)
    assert await tidying.tidy() == (0, 0)
    assert len(client.requests) == 4  # The requests that were under way at once.
    for asked in (5, 6):
        assert await tidying.tidy(5.0) == (0, 0)
        assert len(client.requests) == asked
    assert await tidying.tidy(5.0) == (10, 0)
    assert tidying.refused == []


async def test_a_webhook_that_fails_for_one_store_keeps_nothing_else_waiting() -> None:
    client = ScriptedClient(refused(500), {}, {}, refused(500), {})
    tidying = Tidying(client, a=OVER, b=OVER)
    tidying.put("other", c=OVER)
    assert await tidying.tidy() == (1, 0)
    tidying.put("third", d=OVER)  # As an entry that was claimed.
    assert await tidying.tidy(5.0) == (2, 0)
    assert patched(client) == ["a+b", "c", "d", "a+b"]
    assert await tidying.tidy(5.0) == (4, 0)  # However often it has failed: a claim goes soon.


async def test_a_request_that_hangs_keeps_nothing_else_waiting() -> None:
    class Hanging(StoreEdits):
        async def edit(self, edit: edits.Tidying) -> bool:
            if edit.ref.key == "a":
                await asyncio.Event().wait()
            return await super().edit(edit)

    tidying = Tidying(ScriptedClient({}, {}))
    tidying.cleaner = tidying.clean(Hanging(ScriptedClient({}, {})))
    tidying.store = ConfigMapCache(
        state_of(now=0.0).ledger,
        lambda: 0.0,
        lambda *_: None,
        tidying.cleaner.on_reservation_changed,
    )
    tidying.put("store", a=OVER)
    tidying.put("other", b=OVER)
    cleaning = asyncio.create_task(tidying.cleaner.run(tidying.store, always))
    await tidying.time.settle()
    tidying.put("third", c=OVER)
    await tidying.time.settle()
    assert tidying.cleaner.edits == 2
    cleaning.cancel()


async def test_each_request_waits_until_it_may_be_made() -> None:
    """Between two edits etcd may be replaced by one without the reason for the edits."""
    client = ScriptedClient(*[{}] * 3)
    tidying = Tidying(client, **{f"r-{number}": OVER for number in range(1_200)})
    answers = iter([True, False])

    async def may_write() -> bool:
        return next(answers)

    await worked_off(tidying.cleaner.run(tidying.store, may_write), tidying.cleaner.queue)
    assert (tidying.cleaner.edits, len(client.requests)) == (500, 1)
    assert await tidying.tidy(5.0) == (1_200, 0)


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
    error: ApiError,
) -> None:
    client = ScriptedClient(error, {}, *[error] * 9, {})
    tidying = Tidying(client, a=OVER, b=OVER)
    tidying.put("other", c=OVER)
    assert await tidying.tidy() == (1, 0)
    assert patched(client) == ["a+b", "c"]
    assert tidying.refused == [(ref("a"), error), (ref("b"), error)]
    tidying.cleaner.on_reservation_changed(ref("a"))  # As the report of the error does.
    assert await tidying.tidy() == (1, 0)
    assert len(client.requests) == 2
    for rest in (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0):
        asked = len(client.requests)
        await tidying.tidy(rest - 0.5)
        assert len(client.requests) == asked
        await tidying.tidy(0.5)
        assert len(client.requests) == asked + 1
    # A changed entry is tried at once.
    tidying.put("store", a=OVER | {"resources": {"cpu": "2"}})
    assert await tidying.tidy() == (2, 0)


async def test_an_item_of_a_list_stands_for_its_key() -> None:
    tidying = Tidying(ScriptedClient())
    for item in ("shop/a", "shop/b"):
        tidying.cleaner.on_reservation_changed(Ref("shop", "store", "worker-1", item))
    assert tidying.cleaner.queue.take_all() == [ref("worker-1")]
