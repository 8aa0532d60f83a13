import json
from typing import Any

import pytest

from reserver.kube.apply import Apply
from reserver.kube.cleaner import Cleaner
from reserver.kube.store import Store
from reserver.wire.objects import ConfigMapObject, Metadata
from tests.builders import NOW, node, state_of
from tests.unit.kube.fakes import NO_ANSWER, ScriptedClient, refused

OVER = {
    "owners": [{"pod": {"name": "a"}}],
    "resources": {"cpu": "1"},
    "node": "worker-1",
    "expiresAt": "2030-01-01T00:00:00Z",
}


def cleaner(client: ScriptedClient, **data: object) -> Cleaner:
    state = state_of(node("worker-1", cpu="4"), now=0.0)
    store = Store(state.ledger, lambda: 0.0, lambda *_: None)
    metadata = Metadata(name="store", namespace="shop")
    written = {key: json.dumps(value) for key, value in data.items()}
    store.put(ConfigMapObject(metadata=metadata, data=written))
    apply = Apply(client, lambda: NOW)
    return Cleaner(store, apply, state.snapshot.has_node, lambda: NOW, 30.0)


def patched(client: ScriptedClient) -> list[str]:
    return [request.body[1]["path"] for request in client.requests]


async def test_every_edit_that_is_due_is_made() -> None:
    client = ScriptedClient({}, {})
    tidying = cleaner(client, a=OVER, b=OVER, c=OVER | {"expiresAt": "2040-01-01T00:00:00Z"})
    await tidying.tidy()
    assert patched(client) == ["/data/a", "/data/b"]
    assert (tidying.edits, tidying.lost) == (2, 0)


async def test_an_edit_that_somebody_forestalled_is_left_to_them() -> None:
    client = ScriptedClient(refused(422), {})
    tidying = cleaner(client, a=OVER, b=OVER)
    await tidying.tidy()
    assert patched(client) == ["/data/a", "/data/b"]
    assert (tidying.edits, tidying.lost) == (1, 1)


@pytest.mark.parametrize("error", [NO_ANSWER, refused(403), refused(500)])
async def test_a_pass_that_fails_is_made_again_later(error: Any) -> None:
    client = ScriptedClient(error, {}, {})
    tidying = cleaner(client, a=OVER, b=OVER)
    await tidying.tidy()
    assert patched(client) == ["/data/a"]
    await tidying.tidy()
    assert tidying.edits == 2


async def test_nodes_that_do_not_exist_are_counted() -> None:
    missing = {"node": "ghost", "expiresAt": "2040-01-01T00:00:00Z"}
    tidying = cleaner(ScriptedClient(), a=OVER | missing)
    await tidying.tidy()
    assert tidying.unknown_nodes == 1
