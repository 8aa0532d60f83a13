"""An API server that plays a script."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from reserver.errors import ApiError
from reserver.k8s.client import MERGE_PATCH, ApiClient
from reserver.stores.writer import Patience

NO_ANSWER = ApiError(0, "Unreachable", "connection refused")


AT_ONCE = Patience(0.0, 0.0, 0.0)
"""Lets writers try again at once, and wait for no watch."""


async def always() -> bool:
    return True


async def never() -> bool:
    return False


def refused(status: int, reason: str = "") -> ApiError:
    return ApiError(status, reason, f"the API server said {status}")


OVERTAKEN = ApiError(
    422, "Invalid", "the server rejected our request due to an error in our request"
)
"""The API server's error for a failed test of a JSON patch."""

REPLACED = ApiError(
    422,
    "Invalid",
    'Pod "web-0" is invalid: metadata.uid: Invalid value: "uid-web-0": field is immutable',
)
"""The API server's error for a patch with the UID of a former pod of the name."""


def patched(there: Mapping[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an object with a JSON patch applied, as the API server does.

    Raises:
        ApiError: a test failed, or a field to remove or replace is missing.
    """
    after = deepcopy(dict(there))
    for step in patch:
        *way, last = (p.replace("~1", "/") for p in step["path"].removeprefix("/").split("/"))
        at = after
        for part in way:
            at = at.get(part) or {}
        if step["op"] == "test":
            is_done = at.get(last) == step["value"]
        elif step["op"] == "remove":
            is_done = at.pop(last, None) is not None
        else:
            is_done = step["op"] == "replace" and last in at
            at[last] = step["value"]
        if not is_done:
            raise OVERTAKEN
    return after


class Request(NamedTuple):
    verb: str
    path: str
    body: Any = None
    params: Mapping[str, str] | None = None
    content_type: str = ""


class ScriptedClient(ApiClient):
    """A client whose answers are scripted.

    Attributes:
        script: the answers, in turn: JSON, an error, for a watch a list of lines, errors and
            events of asyncio to wait for; or a function that returns one of these.
        requests: the received requests.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.requests: list[Request] = []

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        return await self._answer(Request("get", path, params=params))

    async def get_bounded(
        self, path: str, most_bytes: int, params: Mapping[str, str] | None = None
    ) -> bytes:
        answer = await self._answer(Request("get", path, params=params))
        if len(answer) > most_bytes:
            raise ApiError(0, "TooLarge", "the answer is too long")
        return answer

    async def create(self, path: str, body: object) -> bytes:
        return await self._answer(Request("create", path, body))

    async def patch(self, path: str, body: object, content_type: str = MERGE_PATCH) -> bytes:
        return await self._answer(Request("patch", path, body, content_type=content_type))

    async def delete(self, path: str, options: object) -> bytes:
        return await self._answer(Request("delete", path, options))

    async def watch(
        self, path: str, params: Mapping[str, str], idle_limit_s: float
    ) -> AsyncGenerator[bytes]:
        assert idle_limit_s > 0
        for line in await self._next(Request("watch", path, params=params)):
            if isinstance(line, Exception):
                raise line
            if isinstance(line, asyncio.Event):
                await line.wait()
                continue
            yield line if isinstance(line, bytes) else json.dumps(line).encode()

    async def _answer(self, request: Request) -> bytes:
        answer = await self._next(request)
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    async def _next(self, request: Request) -> Any:
        self.requests.append(request)
        if not self.script:
            await self.ended()
        answer = self.script.pop(0)
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ended(self) -> None:
        raise AssertionError(f"not in the script: {self.requests[-1]}")


class PatientClient(ScriptedClient):
    """A client that never answers a request beyond the end of its script.

    Attributes:
        played: set at the first such request.
    """

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.played = asyncio.Event()

    async def ended(self) -> None:
        self.played.set()
        await asyncio.Event().wait()
