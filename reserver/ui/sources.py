"""The sources of the page: loops that read Reserver and the API server, and fill the board."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from reserver.client import ChangeKind, Client, ReservationInfo
from reserver.errors import ReserverError
from reserver.maintenance.model import Window
from reserver.ui import documents
from reserver.ui.board import Board
from reserver.ui.documents import Document, ReservationWords

MOST_PAST = 5000
"""Most ended reservations that are shown, the latest ones."""

_PAST = timedelta(days=31)
_NODES_S = 5.0
_MOVES_S = 1.0
_LABELS_S = 600.0
_WINDOWS_S = 30.0
_CLOCK_S = 300.0
_SHARE = 40
"""The ratio of the pause after a read to the duration of the read."""

_SOONEST_S, _LATEST_S = 0.5, 10.0
_PAUSE_S, _PAUSE_MOST_S = 2.0, 30.0


def rest_s(took_s: float) -> float:
    """Return the shortest pause after a read, in seconds.

    The pause is bounded, as a read may have waited long for a new leader.
    """
    return min(max(_SOONEST_S, _SHARE * took_s), _LATEST_S)


@dataclass(slots=True, kw_only=True)
class Sources:
    """The loops that fill the board.

    Attributes:
        words: returns the CLI's words for a reservation.
        labels: returns the labels of each node, from the API server.
        moves: returns the PodMoves, from the API server.
        windows: returns the maintenance windows, each with its progress, from the API server.
        offset: returns the seconds by which Reserver's clock is ahead of this machine's.
        explained: returns the message for an error.
    """

    board: Board
    client: Client
    words: Callable[[ReservationInfo], ReservationWords]
    labels: Callable[[], Awaitable[Mapping[str, Mapping[str, str]]]]
    moves: Callable[[], Awaitable[list[Document]]]
    windows: Callable[[], Awaitable[Sequence[tuple[Window, str]]]]
    offset: Callable[[], Awaitable[float]]
    explained: Callable[[ReserverError], str]
    _labels_of: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    _windows_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    _are_nodes_due: asyncio.Event = field(default_factory=asyncio.Event)
    _are_windows_due: asyncio.Event = field(default_factory=asyncio.Event)

    async def fill(self) -> None:
        """Fill the board until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reservations())
            tasks.create_task(self._past())
            for source, every_s, read, is_due in (
                ("nodes", _NODES_S, self._read_nodes, self._are_nodes_due),
                ("windows", _WINDOWS_S, self._read_windows, self._are_windows_due),
                ("labels", _LABELS_S, self._read_labels, asyncio.Event()),
                ("moves", _MOVES_S, self._read_moves, asyncio.Event()),
                ("clock", _CLOCK_S, self._read_clock, asyncio.Event()),
            ):
                tasks.create_task(self._repeated(source, every_s, read, is_due))

    async def _reservations(self) -> None:
        """Watch reservations; the client resumes a broken watch, also at a new leader."""
        while True:
            try:
                async for kind, info in self.client.watch():
                    self._note("reservations", "")
                    is_gone = kind is ChangeKind.DELETED
                    found = None if is_gone else documents.reservation(info, self.words(info))
                    self.board.put("reservations", info.id, found)
                    self._are_nodes_due.set()
                    if is_gone:
                        self._has_ended.set()
            except ReserverError as exc:
                self._note("reservations", self.explained(exc))
            await asyncio.sleep(_PAUSE_S)

    async def _past(self) -> None:
        """Read the history whenever a reservation has ended."""
        since = datetime.now(UTC) - _PAST
        keys: dict[str, None] = {}
        while True:
            self._has_ended.clear()
            try:
                async for info in self.client.history(since=since):
                    since = max(since, info.ended)
                    key = documents.past_key(info)
                    keys[key] = None
                    self.board.put("past", key, documents.past(info))
                for key in [*keys][: max(0, len(keys) - MOST_PAST)]:
                    del keys[key]
                    self.board.put("past", key, None)
                self._note("past", "")
            except ReserverError as exc:
                self._note("past", self.explained(exc))
                self._has_ended.set()
            await asyncio.sleep(_PAUSE_S)
            await self._has_ended.wait()

    async def _read_nodes(self) -> None:
        labels, windows = self._labels_of, self._windows_of
        found = {
            each.node: documents.node(each, labels.get(each.node, {}), windows.get(each.node, ()))
            async for each in self.client.capacity.nodes()
        }
        self.board.replace("nodes", found)

    async def _read_windows(self) -> None:
        found = await self.windows()
        shown = {each.name: documents.window(each, progress) for each, progress in found}
        self.board.replace("windows", shown)
        self._windows_of = documents.windows_by_node([each for each, _ in found], self._labels_of)
        self._are_nodes_due.set()  # Read the nodes again, with labels and windows.

    async def _read_labels(self) -> None:
        self._labels_of = await self.labels()
        self._are_windows_due.set()  # Read the windows again, which may select nodes by label.

    async def _read_moves(self) -> None:
        found = [documents.move(each) for each in await self.moves()]
        self.board.replace("moves", {f"{each['namespace']}/{each['name']}": each for each in found})

    async def _read_clock(self) -> None:
        self.board.put("status", "offset", {"seconds": round(await self.offset(), 1)})

    async def _repeated(
        self,
        source: str,
        every_s: float,
        read: Callable[[], Awaitable[None]],
        is_due: asyncio.Event,
    ) -> None:
        """Read a source periodically and after a change, and show its problem on the board."""
        while True:
            began = time.monotonic()
            is_due.clear()
            try:
                await read()
            except ReserverError as exc:
                self._note(source, self.explained(exc))
                await asyncio.sleep(max(_PAUSE_S, min(every_s, _PAUSE_MOST_S)))
                continue
            self._note(source, "")
            least_s = rest_s(time.monotonic() - began)
            await asyncio.sleep(least_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, every_s - least_s)):
                    await is_due.wait()

    def _note(self, source: str, problem: str) -> None:
        """Set the problem of a source, and its start, on the board; empty if it can be read."""
        since = (self.board.get("status", source) or {}).get("since") if problem else None
        if problem and since is None:
            since = self.board.by_reservers_clock(time.time())
        self.board.put("status", source, {"problem": problem, "since": since})
