"""The cost of a call in function calls, which do not depend on the machine."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import reserver
from reserver.extender.server import EXTENDER_LIMITS, Routes
from reserver.http.access import Access
from reserver.http.connection import HttpConnection
from reserver.http.connections import Hosts
from tests.builders import node, pod, reservation
from tests.unit.extender.conftest import Served
from tests.unit.extender.server.calls import bind_call, filter_call, metrics

CODE = str(Path(reserver.__file__).parent)
NAMES = [f"node-{number}" for number in range(2_000)]


class Wire(asyncio.Transport):
    """A connection without a client; keeps the answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = asyncio.Queue[bytes]()

    def write(self, data: Any) -> None:
        self.answered.put_nowait(bytes(data))

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        """Do nothing."""


class Listener:
    """Reserver's listener without a socket."""

    def __init__(self, served: Served) -> None:
        routes = Routes(served.extender, metrics(served), lambda: served.readiness.said)
        door = Access(EXTENDER_LIMITS, Hosts.of("127.0.0.1", ()), lambda _: None)
        door.serves(routes.paths())
        no_socket: Any = None
        self.connection = HttpConnection(door, EXTENDER_LIMITS, no_socket, "127.0.0.1", None)
        self.wire = Wire()
        self.connection.connection_made(self.wire)

    async def cost(self, path: str, body: bytes) -> int:
        """Return the number of functions of Reserver, and of their callees, that one call runs."""
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        raw = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        count = 0

        def note(frame: FrameType, event: str, _: object) -> None:
            nonlocal count
            if event in {"call", "c_call"} and frame.f_code.co_filename.startswith(CODE):
                count += 1

        sys.setprofile(note)
        try:
            self.connection.data_received(raw)
            answer = await self.wire.answered.get()
        finally:
            sys.setprofile(None)
        head_text, _, said = answer.partition(b"\r\n\r\n")
        assert b" 200 " in head_text.splitlines()[0]
        assert json.loads(said).get("Error", "") == ""
        return count

    async def hot(self, path: str, *bodies: bytes) -> int:
        """Return the least cost of some calls: any call may meet periodic work."""
        return min([await self.cost(path, body) for body in bodies])


@pytest.fixture
async def listener(served: Served) -> Listener:
    for name in NAMES:
        served.show(node(name, cpu="32"))
    return Listener(served)


def hold(served: Served, count: int, first: int = 0) -> None:
    """Hold room on the nodes with the last names."""
    for number in range(first, count):
        where = NAMES[-1 - number % 500]
        served.show(reservation(f"r-{number}", node=where, cpu="1"))


async def test_a_filter_call_runs_few_functions_however_many_nodes_it_names(
    listener: Listener,
) -> None:
    few = await listener.hot("/filter", *[filter_call("a", *NAMES[:500])] * 3)
    many = await listener.hot("/filter", *[filter_call("a", *NAMES)] * 3)
    assert few == many
    assert few < 215  # 179 with Python 3.11


async def test_a_filter_call_runs_as_many_functions_whatever_is_held(
    served: Served, listener: Listener
) -> None:
    costs: list[int] = []
    for count in (1, 4_000):
        hold(served, count, first=len(costs))
        costs.append(await listener.hot("/filter", *[filter_call("a", *NAMES)] * 3))
    assert costs[0] == costs[1]
    refused = filter_call("a", *NAMES[-500:], cpu="31")
    assert await listener.hot("/filter", *[refused] * 3) < 990  # 804


@pytest.mark.parametrize("fitting", [2_000, 1_900])
async def test_where_all_nodes_have_holds_names_cost_nothing_either(
    served: Served, listener: Listener, fitting: int
) -> None:
    for number, name in enumerate(NAMES):
        cpu = "1" if number < fitting else "32"
        served.show(reservation(f"r-{number}", node=name, cpu=cpu))
    few = await listener.hot("/filter", *[filter_call("a", *NAMES[:500])] * 3)
    assert (
        few == await listener.hot("/filter", *[filter_call("a", *NAMES)] * 3) < 250
    )  # 194 and 196


async def test_a_bind_call_runs_few_functions(served: Served, listener: Listener) -> None:
    served.show(*(pod(name, cpu="1") for name in "abc"))
    assert await listener.hot("/bind", *(bind_call(name, NAMES[0]) for name in "abc")) < 260  # 213
