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
"""So many reservations that are over are shown, the latest."""

_PAST = timedelta(days=31)
_NODES_S = 5.0
_MOVES_S = 1.0
_LABELS_S = 600.0
_WINDOWS_S = 30.0
_CLOCK_S = 300.0
_SHARE = 40
"""A list is read again after so many times as long as it took."""

_SOONEST_S, _LATEST_S = 0.5, 10.0
_PAUSE_S, _PAUSE_MOST_S = 2.0, 30.0


def rest_s(took_s: float) -> float:
    """Return how long a source is left alone at least after a read, in seconds.

    A read may have taken long because it waited for Reserver's successor.
    """
    return min(max(_SOONEST_S, _SHARE * took_s), _LATEST_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What fills the board.

    Attributes:
        words: puts reservations into words.
        labels: returns the labels of each node, from the API server.
        moves: returns the PodMoves, from the API server.
        windows: returns the maintenance windows, each with its progress, from the API server.
        offset: returns by how many seconds Reserver's clock is ahead of this machine's.
        explained: puts a failure into words.
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
        ended, stirred, labelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        labels: dict[str, Mapping[str, str]] = {}
        windows: dict[str, list[str]] = {}
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reservations(board, ended, stirred))
            tasks.create_task(self._past(board, ended))
            nodes = self._nodes(board, labels, windows)
            tasks.create_task(self._repeated(board, "nodes", _NODES_S, nodes, stirred))
            maintained = self._windows(board, labels, windows, stirred)
            tasks.create_task(self._repeated(board, "windows", _WINDOWS_S, maintained, labelled))
            tasks.create_task(
                self._repeated(board, "labels", _LABELS_S, self._labels(labels, labelled))
            )
            tasks.create_task(self._repeated(board, "moves", _MOVES_S, self._moves(board)))
            tasks.create_task(self._repeated(board, "clock", _CLOCK_S, self._clock(board)))

    async def _reservations(
        self, board: Board, ended: asyncio.Event, stirred: asyncio.Event
    ) -> None:
        """Follow reservations; the client resumes a watch that breaks, also at a successor."""
        while True:
            try:
                async for kind, info in self._changes(board):
                    key, is_gone = info.id, kind is ChangeKind.DELETED
                    found = None if is_gone else documents.reservation(info, self.words(info))
                    board.put("reservations", key, found)
                    stirred.set()
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
        stirred: asyncio.Event,
    ) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            found = await self.windows()
            board.replace("windows", {one.name: documents.window(one, far) for one, far in found})
            windows.clear()
            windows.update(documents.windows_by_node([one for one, _ in found], labels))
            stirred.set()  # The nodes are read again, with labels and windows.

        return read

    def _labels(
        self, labels: dict[str, Mapping[str, str]], labelled: asyncio.Event
    ) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            found = await self.labels()
            labels.clear()
            labels.update(found)
            labelled.set()  # The windows are read again: they may select by label.

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
        what: str,
        every_s: float,
        read: Callable[[], Awaitable[None]],
        stirred: asyncio.Event | None = None,
    ) -> None:
        """Read again and again, sooner after a change, and note why it fails."""
        stirred = stirred or asyncio.Event()
        while True:
            began = time.monotonic()
            stirred.clear()
            try:
                await read()
            except ReserverError as exc:
                self._note(board, what, self.explained(exc))
                await asyncio.sleep(max(_PAUSE_S, min(every_s, _PAUSE_MOST_S)))
                continue
            self._note(board, what, "")
            least_s = rest_s(time.monotonic() - began)
            await asyncio.sleep(least_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, every_s - least_s)):
                    await stirred.wait()

    def _note(self, board: Board, what: str, problem: str) -> None:
        """Note whether a source can be read, and since when it cannot."""
        since = (board.get("status", what) or {}).get("since") if problem else None
        if problem and since is None:
            since = board.by_reservers_clock(time.time())
        board.put("status", what, {"problem": problem, "since": since})
