"""ConfigMaps: keys, size and immutability."""

import pytest

from tests.contract.api import Api, Json

MIB = 1024 * 1024


@pytest.mark.parametrize("key", ["a", "A-Z_0.9", "worker-7", "x" * 253, "-", "a..b"])
async def test_keys_that_are_allowed(api: Api, key: str) -> None:
    assert (await api.config_map("one", {key: "x"})).status == 201


@pytest.mark.parametrize("key", ["", "a b", "a/b", "ä", "x" * 254, ".", "..", "..a"])
async def test_keys_that_are_not(api: Api, key: str) -> None:
    answer = await api.config_map("one", {key: "x"})
    assert answer.outline == (422, "Invalid")
    (cause,) = answer.body["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", f"data[{key}]")


async def test_values_are_strings(api: Api) -> None:
    for value in (7, True, ["x"], {"a": "b"}):
        answer = await api.config_map("one", {"a": value})
        assert answer.outline == (400, "BadRequest")


async def test_a_mebibyte_is_the_limit(api: Api) -> None:
    over = await api.config_map("one", {"a": "x" * (MIB // 2), "b": "x" * (MIB // 2 + 1)})
    assert over.outline == (422, "Invalid")
    (cause,) = over.body["details"]["causes"]
    assert cause["reason"] == "FieldValueTooLong"
    just = await api.config_map("one", {"long-key": "x" * (MIB // 2), "b": "x" * (MIB // 2)})
    assert just.status == 201


async def test_the_limit_counts_bytes(api: Api) -> None:
    answer = await api.config_map("one", {"a": "ä" * (MIB // 2), "b": "x"})
    assert answer.outline == (422, "Invalid")


async def test_updates_follow_the_same_rules(api: Api) -> None:
    await api.config_map("one")
    path = api.path("configmaps", "one")
    assert (await api.patch(path, {"data": {"a b": "x"}})).outline == (422, "Invalid")
    assert (await api.patch(path, {"data": {"a": "x" * (MIB + 1)}})).outline == (422, "Invalid")


async def test_an_immutable_one_stays(api: Api) -> None:
    body = {"metadata": {"name": "one"}, "data": {"a": "1"}, "immutable": True}
    await api.post(api.path("configmaps"), body)
    path = api.path("configmaps", "one")
    for patch in ({"data": {"a": "2"}}, {"immutable": None}):
        assert (await api.patch(path, patch)).outline == (422, "Invalid")
    assert (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).status == 200


async def test_empty_fields_vanish(api: Api) -> None:
    body: Json = {
        "metadata": {"name": "one", "labels": {}, "annotations": None, "finalizers": []},
        "data": {},
        "binaryData": None,
    }
    made = await api.post(api.path("configmaps"), body)
    assert made.status == 201
    assert set(made.body) == {"kind", "apiVersion", "metadata"}
    assert {"labels", "annotations", "finalizers"}.isdisjoint(made.body["metadata"])


async def test_values_may_be_empty(api: Api) -> None:
    made = await api.config_map("one", {"a": ""})
    assert made.body["data"] == {"a": ""}
