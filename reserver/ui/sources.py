"""The sources of the page: loops that read Reserver and the API server, and fill the board."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
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

    client: Client
    words: Callable[[ReservationInfo], ReservationWords]
    labels: Callable[[], Awaitable[Mapping[str, Mapping[str, str]]]]
    moves: Callable[[], Awaitable[list[Document]]]
    windows: Callable[[], Awaitable[Sequence[tuple[Window, str]]]]
    offset: Callable[[], Awaitable[float]]
    explained: Callable[[ReserverError], str]

    async def fill(self, board: Board) -> None:
        """Fill a board until cancelled."""
        ended, is_due, labelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        labels: dict[str, Mapping[str, str]] = {}
        windows: dict[str, list[str]] = {}
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reservations(board, ended, is_due))
            tasks.create_task(self._past(board, ended))
            nodes = self._nodes(board, labels, windows)
            tasks.create_task(self._repeated(board, "nodes", _NODES_S, nodes, is_due))
            maintained = self._windows(board, labels, windows, is_due)
            tasks.create_task(self._repeated(board, "windows", _WINDOWS_S, maintained, labelled))
            tasks.create_task(
                self._repeated(board, "labels", _LABELS_S, self._labels(labels, labelled))
            )
            tasks.create_task(self._repeated(board, "moves", _MOVES_S, self._moves(board)))
            tasks.create_task(self._repeated(board, "clock", _CLOCK_S, self._clock(board)))

    async def _reservations(
        self, board: Board, ended: asyncio.Event, is_due: asyncio.Event
    ) -> None:
        """Watch reservations; the client resumes a broken watch, also at a new leader."""
        while True:
            try:
                async for kind, info in self._changes(board):
                    key, is_gone = info.id, kind is ChangeKind.DELETED
                    found = None if is_gone else documents.reservation(info, self.words(info))
                    board.put("reservations", key, found)
                    is_due.set()
                    if is_gone:
                        ended.set()
            except ReserverError as exc:
                self._note(board, "reservations", self.explained(exc))
            await asyncio.sleep(_PAUSE_S)

    async def _changes(self, board: Board) -> AsyncIterator[tuple[ChangeKind, ReservationInfo]]:
        async for change in self.client.watch():
            self._note(board, "reservations", "")
            yield change

    async def _past(self, board: Board, ended: asyncio.Event) -> None:
        """Read the history whenever a reservation has ended."""
        since = datetime.now(UTC) - _PAST
        keys: dict[str, None] = {}
        while True:
            ended.clear()
            try:
                async for info in self.client.history(since=since):
                    since = max(since, info.ended)
                    key = documents.past_key(info)
                    keys[key] = None
                    board.put("past", key, documents.past(info))
                for key in [*keys][: max(0, len(keys) - MOST_PAST)]:
                    del keys[key]
                    board.put("past", key, None)
                self._note(board, "past", "")
            except ReserverError as exc:
                self._note(board, "past", self.explained(exc))
                ended.set()
            await asyncio.sleep(_PAUSE_S)
            await ended.wait()

    def _nodes(
        self,
        board: Board,
        labels: Mapping[str, Mapping[str, str]],
        windows: Mapping[str, Sequence[str]],
    ) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            found = {
                each.node: documents.node(
                    each, labels.get(each.node, {}), windows.get(each.node, ())
                )
                async for each in self.client.capacity.nodes()
            }
            board.replace("nodes", found)

        return read

    def _windows(
        self,
        board: Board,
        labels: Mapping[str, Mapping[str, str]],
        windows: dict[str, list[str]],
        is_due: asyncio.Event,
    ) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            found = await self.windows()
            board.replace("windows", {one.name: documents.window(one, far) for one, far in found})
            windows.clear()
            windows.update(documents.windows_by_node([one for one, _ in found], labels))
            is_due.set()  # Read the nodes again, with labels and windows.

        return read

    def _labels(
        self, labels: dict[str, Mapping[str, str]], labelled: asyncio.Event
    ) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            found = await self.labels()
            labels.clear()
            labels.update(found)
            labelled.set()  # Read the windows again, which may select nodes by label.

        return read

    def _moves(self, board: Board) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            found = [documents.move(each) for each in await self.moves()]
            board.replace("moves", {f"{each['namespace']}/{each['name']}": each for each in found})

        return read

    def _clock(self, board: Board) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            board.put("status", "offset", {"seconds": round(await self.offset(), 1)})

        return read

    async def _repeated(
        self,
        board: Board,
        source: str,
        every_s: float,
        read: Callable[[], Awaitable[None]],
        is_due: asyncio.Event | None = None,
    ) -> None:
        """Read a source periodically and after a change, and show its problem on the board."""
        is_due = is_due or asyncio.Event()
        while True:
            began = time.monotonic()
            is_due.clear()
            try:
                await read()
            except ReserverError as exc:
                self._note(board, source, self.explained(exc))
                await asyncio.sleep(max(_PAUSE_S, min(every_s, _PAUSE_MOST_S)))
                continue
            self._note(board, source, "")
            least_s = rest_s(time.monotonic() - began)
            await asyncio.sleep(least_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, every_s - least_s)):
                    await is_due.wait()

    def _note(self, board: Board, source: str, problem: str) -> None:
        """Set the problem of a source, and its start, on the board; empty if it can be read."""
        since = (board.get("status", source) or {}).get("since") if problem else None
        if problem and since is None:
            since = board.by_reservers_clock(time.time())
        board.put("status", source, {"problem": problem, "since": since})
