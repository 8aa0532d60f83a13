"""The PodMoves that are known, and their changes for those who watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from reserver.cluster.pod import PodName
from reserver.pacer import Pacer
from reserver.server.rpc.feed import Feed
from reserver.v1 import move_pb2 as pb
from reserver.wire.migration import moveform
from reserver.wire.migration.podmove import MoveMetadata
from reserver.wire.migration.statusform import StatusObject

SHOWN_S = 2.0
"""How long a call waits until the watch shows what it wrote, in seconds."""


class Known(Protocol):
    """A PodMove as it was last read (`kube.migration.moves.KnownMove`)."""

    @property
    def metadata(self) -> MoveMetadata:
        """Of the object."""

    @property
    def spec(self) -> bytes:
        """As written."""

    @property
    def said(self) -> StatusObject | None:
        """Its status; None if it has none that Reserver wrote."""


class Moves(Protocol):
    """All PodMoves (`kube.migration.moves.Moves`)."""

    def get(self, name: PodName) -> Known | None:
        """Return a PodMove; None if there is none."""


class MoveFeed(Feed[PodName]):
    """The changes of PodMoves, in their order."""

    def __init__(self, moves: Moves) -> None:
        """Tell the changes of moves."""
        super().__init__()
        self._moves = moves
        self._stirred = asyncio.Event()

    def touched(self, key: PodName) -> None:
        """Note that a PodMove was written or is gone; returns at once."""
        super().touched(key)
        self._stirred.set()
        self._stirred = asyncio.Event()

    def find(self, name: PodName) -> pb.PodMove | None:
        """Return a PodMove as it is now; None if there is none."""
        known = self._moves.get(name)
        return moveform.show(known.metadata, known.spec, known.said) if known else None

    def known(self, name: PodName) -> Known | None:
        """Return a PodMove as it was last read; None if there is none."""
        return self._moves.get(name)

    async def until(self, name: PodName, is_so: Callable[[Known | None], bool]) -> Known | None:
        """Return a PodMove once the watch shows that something is so of it, or has had its time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_S):
                while not is_so(self._moves.get(name)):
                    await self._stirred.wait()
        return self._moves.get(name)

    async def _look(self, key: PodName, pacer: Pacer) -> dict[str, bytes]:  # noqa: ARG002
        shown = self.find(key)
        return {shown.uid: shown.SerializeToString(deterministic=True)} if shown else {}
