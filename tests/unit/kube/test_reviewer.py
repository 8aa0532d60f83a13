import pytest

from reserver.errors import ApiError
from reserver.kube.reviewer import BELIEVED_S, Reviewer
from reserver.wire.reviews import User
from tests.unit.kube.fakes import NO_ANSWER, ScriptedClient

ANN = User("ann", "u-1", ("people",))
KNOWN = {
    "status": {
        "authenticated": True,
        "user": {"username": "ann", "uid": "u-1", "groups": ["people"]},
    }
}
UNKNOWN = {"status": {"error": "invalid bearer token"}}


class Time:
    now = 0.0


async def test_a_token_is_asked_about_once_in_a_while() -> None:
    client = ScriptedClient(KNOWN, UNKNOWN, UNKNOWN)
    reviewer = Reviewer(client, "reserver-system", lambda: Time.now)
    assert await reviewer.authenticate("t") == ANN
    assert await reviewer.authenticate("t") == ANN
    assert await reviewer.authenticate("other") is None
    Time.now += BELIEVED_S
    assert await reviewer.authenticate("t") is None
    assert [request.body["spec"]["token"] for request in client.requests] == ["t", "other", "t"]


async def test_a_right_is_asked_for_in_the_words_of_rbac() -> None:
    client = ScriptedClient({"status": {"allowed": True}}, {"status": {"allowed": False}})
    reviewer = Reviewer(client, "reserver-system", lambda: 0.0)
    assert await reviewer.may(ANN, "create", "reservations/scheduler", "")
    assert await reviewer.may(ANN, "create", "reservations/scheduler", "")
    assert not await reviewer.may(ANN, "delete", "reservations", "web")
    first, second = (request.body["spec"] for request in client.requests)
    assert (first["user"], first["groups"]) == ("ann", ("people",))
    assert first["resourceAttributes"] == {
        "namespace": "reserver-system",
        "verb": "create",
        "group": "reserver.io",
        "resource": "reservations",
        "subresource": "scheduler",
        "name": "",
    }
    assert second["resourceAttributes"]["name"] == "web"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("shop/web", ("shop", "web")),
        ("shop/store/web", ("reserver-system", "shop/store/web")),
    ],
)
async def test_a_right_on_an_object_is_one_in_its_namespace(
    name: str, place: tuple[str, str]
) -> None:
    client = ScriptedClient({"status": {"allowed": True}})
    reviewer = Reviewer(client, "reserver-system", lambda: 0.0)
    assert await reviewer.may(ANN, "delete", "reservations", name)
    asked = client.requests[0].body["spec"]["resourceAttributes"]
    assert (asked["namespace"], asked["name"]) == place


async def test_what_is_not_answered_is_not_remembered() -> None:
    client = ScriptedClient(NO_ANSWER, KNOWN)
    reviewer = Reviewer(client, "reserver-system", lambda: 0.0)
    with pytest.raises(ApiError):
        await reviewer.authenticate("t")
    assert await reviewer.authenticate("t") == ANN


async def test_a_token_of_a_megabyte_is_nobodys() -> None:
    reviewer = Reviewer(ScriptedClient(), "reserver-system", lambda: 0.0)
    assert await reviewer.authenticate("x" * 2**20) is None
