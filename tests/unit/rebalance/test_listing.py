from typing import Any

import pytest

from reserver.errors import ApiError
from reserver.rebalance.dump import COLLECTIONS, list_cluster
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused

EMPTY: list[dict[str, Any]] = [{"kind": "List", "items": []}] * (len(COLLECTIONS) - 1)


def nodes(*names: str, following: str = "") -> dict[str, Any]:
    items = [{"metadata": {"name": name}} for name in names]
    return {"kind": "NodeList", "metadata": {"continue": following}, "items": items}


async def test_a_large_collection_comes_in_pages() -> None:
    client = ScriptedClient(nodes("n1", following="more"), nodes("n2"), *EMPTY)
    dump = await list_cluster(client)
    assert list(dump.inventory.nodes) == ["n1", "n2"]
    assert [request.params for request in client.requests[:2]] == [
        {"limit": "500"},
        {"limit": "500", "continue": "more"},
    ]


async def test_pages_that_are_too_old_begin_anew_as_one() -> None:
    client = ScriptedClient(
        nodes("n1", following="more"), refused(410, "Expired"), nodes("n1", "n2"), *EMPTY
    )
    dump = await list_cluster(client)
    assert list(dump.inventory.nodes) == ["n1", "n2"]
    assert dump.broken == ()
    assert client.requests[2].params is None


async def test_an_object_that_cannot_be_read_is_named() -> None:
    broken = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "many"}}}
    answer = {"kind": "NodeList", "items": [broken, {"metadata": {"name": "n2"}}]}
    dump = await list_cluster(ScriptedClient(answer, *EMPTY))
    assert list(dump.inventory.nodes) == ["n2"]
    assert [broken.what for broken in dump.broken] == ["Node n1"]


@pytest.mark.parametrize("error", [NO_ANSWER, refused(403, "Forbidden")], ids=str)
async def test_what_cannot_be_listed_ends_the_round(error: ApiError) -> None:
    with pytest.raises(ApiError) as raised:
        await list_cluster(ScriptedClient(error))
    assert raised.value is error


async def test_all_that_a_round_looks_at_is_listed() -> None:
    client = ScriptedClient(*EMPTY, {"kind": "List", "items": []})
    await list_cluster(client)
    assert tuple(request.path for request in client.requests) == COLLECTIONS
