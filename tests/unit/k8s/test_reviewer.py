import asyncio
import json
from typing import Any

import pytest

from reserver.errors import ApiError, TooMany
from reserver.k8s.objects.reviews import User
from reserver.k8s.reviewer import BELIEVED_S, MOST_FAILURES, MOST_PENDING, WINDOW_S, Reviewer
from tests.unit.k8s.fakes import NO_ANSWER, Request, ScriptedClient

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


class Asked(ScriptedClient):
    """An API server that answers once a test allows it.

    Attributes:
        answers: set once the API server answers.
        known: the valid tokens.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.known = {"t"}

    async def create(self, path: str, body: object) -> bytes:
        request = Request("create", path, body)
        self.requests.append(request)
        await self.answers.wait()
        if "subjectaccess" in path:
            return json.dumps({"status": {"allowed": True}}).encode()
        is_known = request.body["spec"]["token"] in self.known
        return json.dumps(KNOWN if is_known else UNKNOWN).encode()


def reviewing(client: ScriptedClient, *audiences: str) -> Reviewer:
    return Reviewer(client, "reserver-system", lambda: Time.now, audiences)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_token_is_asked_about_once_in_a_while() -> None:
    client = ScriptedClient(KNOWN, UNKNOWN, UNKNOWN)
    reviewer = reviewing(client)
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN
    assert await reviewer.authenticate("other", "10.0.0.1") is None
    Time.now += BELIEVED_S
    assert await reviewer.authenticate("t", "10.0.0.1") is None
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
        await reviewer.authenticate("t", "10.0.0.1")
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN


async def test_a_token_of_a_megabyte_is_nobodys() -> None:
    reviewer = Reviewer(ScriptedClient(), "reserver-system", lambda: 0.0)
    assert await reviewer.authenticate("x" * 2**20, "10.0.0.1") is None


async def test_fifty_calls_with_one_token_are_one_review() -> None:
    client = Asked()
    reviewer = reviewing(client)
    calls = [asyncio.create_task(reviewer.authenticate("t", "10.0.0.1")) for _ in range(50)]
    await settle()
    assert len(client.requests) == 1
    calls[0].cancel()  # The first caller does not wait any more.
    client.answers.set()
    assert await asyncio.gather(*calls[1:]) == [ANN] * 49
    assert len(client.requests) == 1


async def test_equal_questions_about_rights_are_one_review() -> None:
    client = Asked()
    reviewer = reviewing(client)
    asked = [("get", "a"), ("get", "b")] * 25
    calls = [asyncio.create_task(reviewer.may(ANN, v, "reservations", n)) for v, n in asked]
    await settle()
    assert len(client.requests) == 2
    client.answers.set()
    assert all(await asyncio.gather(*calls))


async def test_a_review_that_fails_is_told_to_all_who_wait_and_made_anew() -> None:
    client = ScriptedClient(NO_ANSWER, KNOWN)
    reviewer = reviewing(client)
    calls = [reviewer.authenticate("t", "10.0.0.1") for _ in range(5)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert outcomes == [NO_ANSWER] * 5
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN


async def flood(reviewer: Reviewer, number: int, peer: str = "10.0.0.1") -> list[Any]:
    """Return the outcomes of so many invalid tokens at once."""
    calls = [reviewer.authenticate(f"{peer}-{each}", peer) for each in range(number)]
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_junk_from_one_peer_is_asked_about_so_often_and_no_more() -> None:
    client = Asked()
    reviewer = reviewing(client)
    client.answers.set()
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN
    outcomes = await flood(reviewer, 640)
    assert len(client.requests) == 1 + MOST_FAILURES
    assert sum(isinstance(each, TooMany) for each in outcomes) == 640 - MOST_FAILURES
    # A formerly valid token is reviewed all the same, from that peer as well.
    Time.now += BELIEVED_S
    await flood(reviewer, 640)
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN
    client.known.add("new")
    with pytest.raises(TooMany, match=r"came from 10\.0\.0\.1; wait 10 seconds"):
        await reviewer.authenticate("new", "10.0.0.1")
    assert await reviewer.authenticate("new", "10.0.0.2") == ANN
    Time.now += WINDOW_S
    assert await reviewer.authenticate("newer", "10.0.0.1") is None


async def test_junk_that_is_not_answered_keeps_no_known_token_waiting() -> None:
    client = Asked()
    reviewer = reviewing(client)
    client.answers.set()
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN
    Time.now += BELIEVED_S
    client.answers.clear()
    floods = [asyncio.create_task(flood(reviewer, 50, f"10.0.1.{peer}")) for peer in range(10)]
    await settle()
    assert len(client.requests) == 1 + MOST_PENDING
    asked = asyncio.create_task(reviewer.authenticate("t", "10.0.0.1"))
    await settle()
    assert len(client.requests) == 2 + MOST_PENDING
    client.answers.set()
    assert await asked == ANN
    await asyncio.gather(*floods)


async def test_calls_without_any_token_count_as_well() -> None:
    reviewer = reviewing(ScriptedClient())
    for _ in range(MOST_FAILURES):
        assert await reviewer.authenticate("", "10.0.0.9") is None
    with pytest.raises(TooMany):
        await reviewer.authenticate("", "10.0.0.9")


async def test_new_tokens_that_are_somebodys_do_not_count() -> None:
    client = Asked()
    client.answers.set()
    client.known = {f"t{number}" for number in range(500)}
    reviewer = reviewing(client)
    for token in client.known:
        assert await reviewer.authenticate(token, "10.0.0.1") == ANN


async def test_an_api_server_that_is_away_makes_nobody_a_stranger() -> None:
    reviewer = reviewing(ScriptedClient(*[NO_ANSWER] * 200, KNOWN))
    for _ in range(200):
        with pytest.raises(ApiError):
            await reviewer.authenticate("t", "10.0.0.1")
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN


async def test_what_floods_are_remembered_by_is_bounded() -> None:
    client = Asked()
    client.answers.set()
    reviewer = reviewing(client)
    for number in range(10_000):
        await flood(reviewer, 1, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(reviewer._limits._failures) <= 4096
    assert len(reviewer._rejected) <= 4096
    assert not reviewer._in_flight


EXTRA = {"scopes.authorization.openshift.io": ["user:info"], "a/b": ["1", "2"]}


async def test_what_else_is_said_of_a_user_is_passed_on() -> None:
    known: Any = json.loads(json.dumps(KNOWN))
    known["status"]["user"]["extra"] = EXTRA
    client = ScriptedClient(known, {"status": {"allowed": False}}, {"status": {"allowed": True}})
    reviewer = reviewing(client)
    scoped = await reviewer.authenticate("t", "10.0.0.1")
    assert scoped is not None
    assert not await reviewer.may(scoped, "create", "reservations", "")
    spec = client.requests[1].body["spec"]
    assert {key: list(values) for key, values in spec["extra"].items()} == EXTRA
    # Without that it is another question.
    assert await reviewer.may(ANN, "create", "reservations", "")


@pytest.mark.parametrize(
    ("confirmed", "is_known"),
    [
        (["reserver"], True),
        (["other", "reserver"], True),
        (["https://kubernetes.default.svc"], False),
        ([], False),
        (None, False),
    ],
)
async def test_a_token_has_to_be_for_the_audience_that_is_asked_for(
    confirmed: list[str] | None, *, is_known: bool
) -> None:
    status = {**KNOWN["status"], "audiences": confirmed}
    client = ScriptedClient({"status": status})
    reviewer = reviewing(client, "reserver", "reserver.example")
    user = await reviewer.authenticate("t", "10.0.0.1")
    assert (user is not None) == is_known
    assert client.requests[0].body["spec"]["audiences"] == ["reserver", "reserver.example"]


async def test_without_audiences_tokens_are_for_the_api_server() -> None:
    client = ScriptedClient(KNOWN)
    assert await reviewing(client).authenticate("t", "10.0.0.1") == ANN
    assert "audiences" not in client.requests[0].body["spec"]


async def test_a_token_that_was_revoked_is_one_of_a_stranger_again() -> None:
    client = Asked()
    client.answers.set()
    reviewer = reviewing(client)
    assert await reviewer.authenticate("t", "10.0.0.1") == ANN
    client.known.clear()
    Time.now += BELIEVED_S
    assert await reviewer.authenticate("t", "10.0.0.1") is None
    Time.now += BELIEVED_S
    client.answers.clear()
    others = [
        asyncio.create_task(reviewer.authenticate(f"{n}", f"10.0.1.{n}"))
        for n in range(MOST_PENDING)
    ]
    await settle()
    with pytest.raises(TooMany):
        await reviewer.authenticate("t", "10.0.0.1")
    client.answers.set()
    await asyncio.gather(*others)
