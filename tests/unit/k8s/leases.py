"""An API server that knows one Lease, and whose answers may be lost."""

import json
from typing import Any

from reserver.errors import ApiError
from reserver.k8s.lease import Lease
from reserver.k8s.objects.objects import encode
from tests.builders import NOW
from tests.unit.k8s.fakes import NO_ANSWER, Request, ScriptedClient


class LeaseServer(ScriptedClient):
    """An API server with one Lease.

    Attributes:
        lease: it, as JSON; None while there is none.
        elapsed: seconds, by the clock of all who look at it.
        faults: what becomes of the next requests: "lost" before or "unanswered" after they are
            carried out; all others are answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.elapsed = 1000.0
        self.faults: list[str] = []

    def candidate(self, identity: str) -> Lease:
        return Lease(self, ("system", "reserver"), identity, lambda: NOW, lambda: self.elapsed)

    async def replace(self, path: str, body: object) -> bytes:
        return await self._answer(Request("replace", path, body))

    async def _next(self, request: Request) -> Any:
        self.requests.append(request)
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "lost":
            raise NO_ANSWER
        answer = self._carry_out(request)
        if fault == "unanswered":
            raise NO_ANSWER
        return answer

    def _carry_out(self, request: Request) -> Any:
        if request.verb == "get":
            if self.lease is None:
                raise ApiError(404, "NotFound", "no such lease")
            return self.lease
        written: Any = json.loads(encode(request.body))
        known = self.lease["metadata"]["resourceVersion"] if self.lease else None
        if written["metadata"].get("resourceVersion") != known:
            raise ApiError(409, "Conflict", "somebody was faster")
        self.version += 1
        written["metadata"]["resourceVersion"] = str(self.version)
        self.lease = written
        return written
