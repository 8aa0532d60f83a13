"""The certificate of the webhooks in its Secret, and the configurations that trust it."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest

from reserver.errors import ApiError
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.k8s.objects.objects import encode
from reserver.webhook import certificate_rotation
from reserver.webhook.certificate_rotation import ServedCertificate
from reserver.webhook.certificate_secret import (
    CONFIGURATIONS,
    SECRET,
    ServingPair,
    secrets_path,
    show_secret,
)
from tests.builders import NOW

WHERE = secrets_path("home", SECRET)


def pem(number: int) -> bytes:
    return f"-----BEGIN CERTIFICATE-----\n{number}\n-----END CERTIFICATE-----\n".encode()


class Maker:
    """Makes numbered certificates."""

    def __init__(self) -> None:
        self.made = 0
        self.due: set[bytes] = set()

    def make(self, now: float) -> ServingPair:
        assert now == NOW
        self.made += 1
        return ServingPair(b"%d" % self.made, b"key", pem(self.made))

    def is_due(self, pair: ServingPair, now: float) -> bool:
        assert now == NOW
        return pair.certificate in self.due


class ApiServer(ApiClient):
    """Keeps a Secret and the configurations of webhooks, and records the order of writes."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {
            path: {"webhooks": [{"name": "one", "clientConfig": {}}]} for path in CONFIGURATIONS
        }
        self.events: list[Any] = []
        self.fails: set[str] = set()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        assert params is None
        if path not in self.objects:
            raise ApiError(404, "NotFound", path)
        return encode(self.objects[path])

    async def create(self, path: str, body: object) -> bytes:
        return self._written(f"{path}/{SECRET}", body)

    async def replace(self, path: str, body: object) -> bytes:
        return self._written(path, body)

    def _written(self, path: str, body: Any) -> bytes:
        if "secret" in self.fails:
            raise ApiError(409, "Conflict", "somebody was faster")
        self.events.append("written")
        self.objects[path] = {**body, "metadata": {"resourceVersion": "7"}}
        return b"{}"

    async def patch(self, path: str, body: Any, content_type: str = MERGE_PATCH) -> bytes:
        assert content_type.startswith("application/json-patch")
        test, add = body
        assert (test["op"], test["value"], add["op"]) == ("test", "one", "add")
        self.objects[path]["webhooks"][0]["clientConfig"]["caBundle"] = add["value"]
        self.events.append("trusted")
        return b"{}"

    def trusted(self) -> set[bytes]:
        found = (self.objects[path]["webhooks"][0]["clientConfig"] for path in CONFIGURATIONS)
        return {base64.b64decode(each["caBundle"]) for each in found}


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api, self.maker = ApiServer(), Maker()
        monkeypatch.setattr(asyncio, "sleep", self._slept)
        self.begin()

    def begin(self) -> None:
        serve = self._serve
        self.kept = ServedCertificate(self.api, "home", self.maker, serve, lambda: NOW)

    async def _slept(self, seconds: float) -> None:
        self.api.events.append(seconds)

    def _serve(self, pair: ServingPair) -> None:
        self.api.events.append(f"serves {pair.certificate.decode()}")

    async def look(self) -> list[Any]:
        self.api.events = []
        await self.kept.look()
        return self.api.events


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_the_first_one_is_made_trusted_kept_and_served(world: World) -> None:
    assert await world.look() == ["trusted", "trusted", "written", "serves 1"]
    assert world.api.trusted() == {pem(1)}
    assert await world.look() == []


async def test_one_that_is_kept_is_served_after_a_restart(world: World) -> None:
    await world.look()
    world.begin()
    assert await world.look() == ["serves 1"]


@pytest.mark.parametrize("way", ["due", "deleted", "broken"])
async def test_another_one_is_trusted_before_it_is_served(world: World, way: str) -> None:
    await world.look()
    if way == "due":
        world.maker.due.add(b"1")
    elif way == "deleted":
        del world.api.objects[WHERE]
    else:
        world.api.objects[WHERE]["data"] = {"tls.crt": "no base64"}
    spread = certificate_rotation.SPREAD_S
    assert await world.look() == ["trusted", "trusted", spread, "written", "serves 2"]
    assert world.api.trusted() == {pem(2) + pem(1)}
    assert await world.look() == []
    world.maker.due.add(b"2")
    await world.look()
    assert world.api.trusted() == {pem(3) + pem(2)}  # Former certificates are not served any more.


async def test_a_configuration_that_is_applied_anew_trusts_it_again(world: World) -> None:
    await world.look()
    world.api.objects[CONFIGURATIONS[0]]["webhooks"][0]["clientConfig"] = {}
    assert await world.look() == ["trusted"]
    assert world.api.trusted() == {pem(1)}


async def test_one_of_the_configurations_may_be_missing(world: World) -> None:
    del world.api.objects[CONFIGURATIONS[1]]
    assert await world.look() == ["trusted", "written", "serves 1"]


async def test_who_was_slower_serves_what_the_other_one_has_written(world: World) -> None:
    world.api.fails.add("secret")
    with pytest.raises(ApiError):
        await world.look()
    other = ServingPair(b"9", b"key", pem(9))
    secret = show_secret("home", other, "")
    world.api.objects[WHERE] = {**secret, "metadata": {"resourceVersion": "8"}}
    assert await world.look() == ["trusted", "trusted", "serves 9"]
